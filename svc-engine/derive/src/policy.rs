//! The version of each derivation's rules.
//!
//! A report states the rules that it was derived by. The version changes whenever a floor, a window
//! or a formula does, so reports with the same versions were derived by the same rules.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use svc_model::ingest::CiResult;
use svc_model::reports::Provenance;

use super::ci;
use super::spend::COST_TOLERANCE;
use super::usage::APART_MAX_MICROSECONDS;

/// A derivation whose rules have a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Which call wrote the lines that a commit adds.
    Attribution,
    /// The rows of the model report, and the comparison of two models.
    ModelReport,
    /// The status of Sessions.
    Abandonment,
    /// What became of edits.
    Fate,
    /// What CI says about commits.
    CiResolution,
    /// What remained in merged pull requests.
    MergeRetention,
    /// The share of commits that notes tie to calls.
    AttributionShare,
    /// The panels of the lifecycle report.
    Lifecycle,
    /// What calls cost, and what the spend became.
    Spend,
    /// The figures of the overview.
    Overview,
}

impl Policy {
    /// Returns the version, an opaque text that can only be compared.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Abandonment | Self::Fate | Self::CiResolution => "1",
            Self::Attribution | Self::AttributionShare | Self::MergeRetention | Self::Overview => {
                "2"
            }
            Self::ModelReport | Self::Lifecycle => "3",
            Self::Spend => "spend-1",
        }
    }

    /// Returns the rules that a result was derived by, and the quarantine revision that it was made
    /// under.
    pub fn provenance(self, quarantine_revision: u64) -> Provenance {
        Provenance {
            policy_version: self.version().to_owned(),
            quarantine_revision,
            policy_digest: self.rules().map(|rules| digest(&rules)),
        }
    }
}

impl Policy {
    /// Returns the numbers in the rules as a JSON document, if there is one.
    fn rules(self) -> Option<String> {
        match self {
            Self::CiResolution => Some(ci_rules()),
            Self::Spend => Some(spend_rules()),
            _ => None,
        }
    }
}

/// The numbers in the rules of spend, as a JSON document.
fn spend_rules() -> String {
    format!(
        "{{\"apart_microseconds\":{APART_MAX_MICROSECONDS},\"cost_tolerance\":{COST_TOLERANCE},\
         \"policy_version\":\"{}\"}}",
        Policy::Spend.version(),
    )
}

/// The numbers in the rules of CI, as a JSON document.
fn ci_rules() -> String {
    let verdicts: Vec<String> = CiResult::ALL
        .iter()
        .filter(|result| ci::verdict_of(**result).is_some())
        .map(|result| format!("\"{result}\""))
        .collect();
    format!(
        "{{\"absent_attempt\":{},\"policy_version\":\"{}\",\"verdicts\":[{}]}}",
        ci::ABSENT_ATTEMPT,
        Policy::CiResolution.version(),
        verdicts.join(","),
    )
}

fn digest(rules: &str) -> String {
    Sha256::digest(rules.as_bytes())
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
            text
        })
}

#[cfg(test)]
mod tests;
