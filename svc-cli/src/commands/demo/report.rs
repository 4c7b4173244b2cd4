//! What the demo tells.

use serde::Serialize;
use svc_model::context::DiscoveryResult;
use svc_model::evidence::EvidenceRead;

use super::story;
use crate::commands::{context, evidence};
use crate::output::{Exact, escape, quote, reference};

/// The whole demo.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) server: String,
    pub(super) embedded: bool,
    pub(super) planted: Planted,
    pub(super) discovery: Option<Exact<DiscoveryResult>>,
    pub(super) read: Exact<EvidenceRead>,
}

/// How much of the story was delivered.
#[derive(Debug, Default, Serialize)]
pub(super) struct Planted {
    pub(super) calls: Delivered,
    pub(super) ci_outcomes: Delivered,
}

/// How many facts there are now, and how many of them are new.
#[derive(Debug, Default, Serialize)]
pub(super) struct Delivered {
    total: u64,
    stored: u64,
}

impl Delivered {
    pub(super) fn count(&mut self, stored: bool) {
        self.total += 1;
        self.stored += u64::from(stored);
    }
}

pub(super) fn render(report: &Report) -> String {
    let Planted { calls, ci_outcomes } = &report.planted;
    let planted = format!(
        "planted Session {} at {}: {} calls ({} new), {} CI outcome ({} new)\n",
        story::SESSION,
        escape(&report.server),
        calls.total,
        calls.stored,
        ci_outcomes.total,
        ci_outcomes.stored,
    );
    let discovered = match &report.discovery {
        Some(discovery) => format!(
            "\n$ svc context discover {}\n{}",
            quote(story::QUERY),
            context::render_discovery(&discovery.value)
        ),
        None => format!(
            "\nAgents cannot find it yet: the service needs SVC_RETRIEVAL_TOKEN and\n\
             SVC_RETRIEVAL_SESSION_IDS='[\"{}\"]'.\n",
            story::SESSION
        ),
    };
    let references: Vec<_> = report
        .read
        .value
        .items
        .iter()
        .map(|item| reference(&item.reference))
        .collect();
    let read = format!(
        "\n$ svc evidence read {} {}\n{}",
        story::SESSION,
        references.join(" "),
        evidence::render_read(&report.read.value)
    );
    [planted, discovered, read].concat()
}

pub(super) fn next(report: &Report) -> Vec<String> {
    if report.embedded {
        // Until it runs, nothing else has a service to ask.
        return vec![format!(
            "SVC_RETRIEVAL_SESSION_ID={} svc serve",
            story::SESSION
        )];
    }
    vec![
        format!("svc evidence inventory {}", story::SESSION),
        "svc facts".to_owned(),
    ]
}
