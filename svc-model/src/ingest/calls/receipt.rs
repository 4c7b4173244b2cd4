use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
#[cfg(feature = "schema")]
use crate::ingest::receipt::counts_by;
use crate::ingest::receipt::total;
use crate::open::Open;

closed_set! {
    /// Why a call is not stored although nothing is wrong with it.
    pub enum SkippedCall {
        /// It is stored under another Session, which this one continues.
        Copied = "copied",
    }
}

closed_set! {
    /// Why a call cannot be stored.
    pub enum RejectedCall {
        /// The call that its input continues is not stored. It can be sent again with its whole
        /// input, or later.
        AfterUnknown = "after_unknown",
        /// The content of the call that its input continues was erased.
        AfterErased = "after_erased",
        /// Its input would have more than 64 MiB or 100,000 messages.
        InputTooLarge = "input_too_large",
        /// Its ids belong to two stored calls of its Session.
        InferenceCallIdentityConflict = "inference_call_identity_conflict",
    }
}

/// The receipt for calls. Its counts add up to the calls that were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CallsReceipt {
    /// The number of calls that became new facts.
    pub stored: u64,
    /// The number of calls that were already stored.
    pub duplicates: u64,
    /// Calls that need not be stored, by reason.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by::<SkippedCall>"))]
    pub skipped: BTreeMap<Open<SkippedCall>, u64>,
    /// Calls that could not be stored, by reason.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "counts_by::<RejectedCall>")
    )]
    pub rejected: BTreeMap<Open<RejectedCall>, u64>,
}

impl CallsReceipt {
    /// Returns the number of calls that the receipt accounts for.
    pub fn total(&self) -> u64 {
        let by_reason = self.skipped.values().chain(self.rejected.values());
        total([self.stored, self.duplicates], by_reason)
    }
}
