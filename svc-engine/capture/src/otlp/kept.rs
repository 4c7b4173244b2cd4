//! The records that are kept with a decision.

use svc_model::json::{Json, Object};
use svc_model::limit::LOG_COPIED_BYTES_MAX;

use super::attribute::{flat, without_account};

/// The form in which a decision keeps its records. Attributes that name a person's account are
/// removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordsForm {
    /// The record itself.
    Record,
    /// `{"decision": record, "result": record or null}`.
    Records,
    /// `{"decision": attributes, "result": attributes or null}`, with the attributes as flat maps.
    Attributes,
    /// `{"decision": attributes}`.
    OwnAttributes,
}

/// The records to keep with a decision, by their indexes in the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptRecords {
    pub(super) form: RecordsForm,
    pub(super) decision: usize,
    pub(super) result: Option<usize>,
}

impl KeptRecords {
    /// Returns one record in its own form.
    pub(super) const fn only(place: usize) -> Self {
        Self {
            form: RecordsForm::Record,
            decision: place,
            result: None,
        }
    }

    fn places(self) -> impl Iterator<Item = usize> {
        [Some(self.decision), self.result].into_iter().flatten()
    }
}

/// Gives each decision its records. The last decision that needs a record gets the original, the
/// others get copies, as long as the copies of the request stay within [`LOG_COPIED_BYTES_MAX`].
#[derive(Debug)]
pub(super) struct Keeper {
    records: Vec<RecordSlot>,
    copied_bytes_left: usize,
}

#[derive(Debug)]
struct RecordSlot {
    /// The record, until its last decision gets it.
    record: Json,
    /// The number of decisions that still need it.
    wanted: usize,
    /// Its length as canonical JSON, once computed.
    bytes: Option<usize>,
}

impl Keeper {
    /// Collects the records that decisions keep.
    pub(super) fn new(
        records: impl Iterator<Item = Json>,
        all: impl Iterator<Item = KeptRecords>,
    ) -> Self {
        let mut records: Vec<RecordSlot> = records
            .map(|record| RecordSlot {
                record,
                wanted: 0,
                bytes: None,
            })
            .collect();
        for place in all.flat_map(KeptRecords::places) {
            records[place].wanted += 1;
        }
        Self {
            records,
            copied_bytes_left: LOG_COPIED_BYTES_MAX,
        }
    }

    /// Returns the records of a decision.
    pub(super) fn raw(&mut self, kept: KeptRecords) -> Json {
        let form = match kept.form {
            RecordsForm::Record | RecordsForm::Records => without_account,
            RecordsForm::Attributes | RecordsForm::OwnAttributes => flat,
        };
        let decision = Json::from(self.take(kept.decision).map(form));
        let members = match kept.form {
            RecordsForm::Record => return decision,
            RecordsForm::OwnAttributes => vec![("decision", decision)],
            RecordsForm::Records | RecordsForm::Attributes => {
                let result = kept.result.and_then(|place| self.take(place));
                vec![("decision", decision), ("result", result.map(form).into())]
            }
        };
        Object::from_iter(members).into()
    }

    fn take(&mut self, place: usize) -> Option<Object> {
        let slot = &mut self.records[place];
        slot.wanted -= 1;
        if slot.wanted == 0 {
            return std::mem::take(&mut slot.record).into_object();
        }
        let bytes = *slot
            .bytes
            .get_or_insert_with(|| slot.record.canonical_len());
        self.copied_bytes_left = self.copied_bytes_left.checked_sub(bytes)?;
        slot.record.clone().into_object()
    }
}
