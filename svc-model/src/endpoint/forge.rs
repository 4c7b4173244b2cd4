use super::ingest::ANOTHER_REPOSITORY;
use super::{Access, Explanation};
use crate::ingest::{ForgeDelivery, IngestReceipt};
use crate::open::Open;
use crate::problem::Problem;

/// Declares a route for a forge's webhook. The routes differ in the events that they accept.
macro_rules! webhook {
    ($endpoint:ident, $path:literal, $name:literal, $summary:literal) => {
        endpoint! {
            $endpoint: POST $path as $name for Access::Signature,
            ForgeDelivery => Open<IngestReceipt>,
            $summary {
                const UNREADABLE: Explanation = Explanation {
                    description: "The body is not a JSON object, or does not match its `Content-Encoding`.",
                    problems: &[
                        ("malformed", Problem::MalformedJson),
                        ("value", Problem::BodyNotObject),
                    ],
                };
                const CONFLICT: Option<Explanation> = Some(ANOTHER_REPOSITORY);
            }
        }
    };
}

webhook! {
    IngestForge, "/ingest/forge", "ingestForge",
    "Store any captured event of a forge, so that one webhook serves all of them."
}
webhook! {
    IngestForgePush, "/ingest/forge/push", "ingestForgePush",
    "Store a push to a branch."
}
webhook! {
    IngestForgeRepository, "/ingest/forge/repository", "ingestForgeRepository",
    "Store a rename of a repository."
}
webhook! {
    IngestForgeCi, "/ingest/forge/ci", "ingestForgeCi",
    "Store the outcome of a run of the forge's own CI."
}
webhook! {
    IngestForgePullRequest, "/ingest/forge/pull-request", "ingestForgePullRequest",
    "Store that a pull request was opened, updated or merged."
}
