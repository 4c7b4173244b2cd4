//! The output of the demo.

use serde::Serialize;
use svc_model::context::DiscoveryResult;
use svc_model::evidence::EvidenceRead;

use super::local::ServiceData;
use super::story;
use crate::commands::{context, evidence};
use crate::output::{Exact, escape, program, quote, reference};

/// The whole demo.
#[derive(Debug, Serialize)]
pub(super) struct DemoReport {
    pub(super) server: String,
    pub(super) embedded: bool,
    pub(super) planted: PlantedFacts,
    pub(super) organization: Option<PlantedOrganization>,
    /// Whether the organization was left out because the store has other Sessions.
    pub(super) has_others: bool,
    /// Where a service that the demo started keeps its data.
    pub(super) own: Option<ServiceData>,
    pub(super) discovery: Option<Exact<DiscoveryResult>>,
    pub(super) read: Exact<EvidenceRead>,
}

/// How much of the story was delivered.
#[derive(Debug, Default, Serialize)]
pub(super) struct PlantedFacts {
    pub(super) calls: DeliveredFacts,
    pub(super) decisions: u64,
    pub(super) ci_outcomes: DeliveredFacts,
}

/// How much of the organization was delivered.
#[derive(Debug, Serialize)]
pub(super) struct PlantedOrganization {
    pub(super) repository: &'static str,
    pub(super) sessions: usize,
    pub(super) calls: DeliveredFacts,
    pub(super) decisions_and_edits: usize,
    pub(super) webhooks: DeliveredFacts,
    pub(super) ci_outcomes: DeliveredFacts,
    /// The links from Sessions to commits in the whole store.
    pub(super) commits_with_a_session: u64,
    /// Whether the service has a mirror of the repository.
    pub(super) mirrored: bool,
    /// A commit to look at.
    pub(super) commit: String,
}

/// How many facts there are now, and how many of them are new.
#[derive(Debug, Default, Serialize)]
pub(super) struct DeliveredFacts {
    total: u64,
    stored: u64,
}

impl DeliveredFacts {
    pub(super) fn is_new(&self) -> bool {
        self.stored > 0
    }

    pub(super) fn count(&mut self, stored: bool) {
        self.total += 1;
        self.stored += u64::from(stored);
    }
}

pub(super) fn render(report: &DemoReport) -> String {
    let PlantedFacts {
        calls,
        decisions,
        ci_outcomes,
    } = &report.planted;
    let planted = format!(
        "planted Session {} at {}: {} calls ({} new), {} decision, {} CI outcome ({} new)\n",
        story::SESSION,
        escape(&report.server),
        calls.total,
        calls.stored,
        decisions,
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
             SVC_RETRIEVAL_SESSION_IDS='[\"{}\"]', or a token in SVC_RETRIEVAL_TOKENS and a grant.\n",
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
    let organization = report.organization.as_ref();
    let organization = match organization {
        Some(organization) => render_organization(organization),
        None if report.has_others => {
            let program = program();
            format!(
                "The store already has other Sessions, so the demo's organization was not added to it.\n\
                 To see it in a store of its own: {program} demo --folder ./svc-demo\n"
            )
        }
        None => String::new(),
    };
    [planted, organization, discovered, read].concat()
}

fn render_organization(planted: &PlantedOrganization) -> String {
    let mirror = if planted.mirrored {
        String::new()
    } else {
        let program = program();
        format!(
            "The service keeps no mirror of it, so nothing ties its Sessions to commits. To see that too, stop\n\
             the service and run: {program} demo\n"
        )
    };
    format!(
        "planted {}: {} Sessions with {} calls ({} new), {} decisions and edits,\n\
         {} events of its forge ({} new), {} CI outcomes ({} new)\n{mirror}",
        planted.repository,
        planted.sessions,
        planted.calls.total,
        planted.calls.stored,
        planted.decisions_and_edits,
        planted.webhooks.total,
        planted.webhooks.stored,
        planted.ci_outcomes.total,
        planted.ci_outcomes.stored,
    )
}

pub(super) fn next(report: &DemoReport) -> Vec<String> {
    if let Some(own) = &report.own {
        return next_of_own(own, report.organization.is_some());
    }
    let mut next = vec![format!("svc evidence inventory {}", story::SESSION)];
    if let Some(organization) = &report.organization {
        next.insert(0, "svc overview".to_owned());
        next.push(format!("svc commit {}", organization.commit));
        next.push(format!(
            "svc ci failures --repo {}",
            organization.repository
        ));
        next.push("svc report model --since-days 31".to_owned());
    }
    next.push("svc facts".to_owned());
    next.push(for_agents(report));
    next
}

/// Returns the command that lets an agent ask: the set-up of an agent, if agents may already find
/// the story, or else the grant.
fn for_agents(report: &DemoReport) -> String {
    if report.discovery.is_some() {
        "svc install mcp-claude-code".to_owned()
    } else {
        format!("svc grant add TOKEN {} --reason REASON", story::SESSION)
    }
}

/// Returns the commands to run once the demo's own service has stopped. The first one starts a
/// service; reports read the store and the mirrors directly.
fn next_of_own(own: &ServiceData, has_organization: bool) -> Vec<String> {
    let mirrors = own.mirrors.display().to_string();
    let (set_mirrors, mirror_option) = if own.are_mirrors_found {
        (String::new(), String::new())
    } else {
        let mirrors = quote(&mirrors);
        (
            format!("SVC_MIRROR_PATH={mirrors} "),
            format!(" --mirror-path {mirrors}"),
        )
    };
    let database_url = own.database_url.as_deref().map(quote);
    let (variable, option) = match &database_url {
        Some(url) => (
            format!("SVC_DATABASE_URL={url} "),
            format!(" --database-url {url}"),
        ),
        None => (String::new(), String::new()),
    };
    // Only a service on SQLite generates a retrieval token. Without one, a Session to retrieve is
    // an invalid setting.
    let session = if own.can_retrieve {
        format!("SVC_RETRIEVAL_SESSION_ID={} ", story::SESSION)
    } else {
        String::new()
    };
    let mut next: Vec<String> = own
        .generating
        .iter()
        .map(|line| (*line).to_owned())
        .collect();
    next.push(format!(
        "{variable}{set_mirrors}{session}SVC_ENABLE_CONSOLE=true {} serve",
        program()
    ));
    if has_organization {
        // The service on this machine is known by its SQLite file, which has its tokens beside it.
        if own.generating.is_empty() {
            next.push(format!("{variable}{} overview", program()));
        }
        for report in ["model", "lifecycle"] {
            next.push(format!("svc report {report}{mirror_option}{option}"));
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_are_needed_and_valid_are_suggested() {
        let first = |can_retrieve, are_mirrors_found| {
            let own = ServiceData {
                mirrors: "/m".into(),
                are_mirrors_found,
                database_url: None,
                can_retrieve,
                repositories: "/r".into(),
                generating: Vec::new(),
            };
            next_of_own(&own, false).remove(0)
        };
        let both = first(true, false);
        assert!(both.starts_with("SVC_MIRROR_PATH=/m SVC_RETRIEVAL_SESSION_ID=svc-demo "));
        assert!(first(true, true).starts_with("SVC_RETRIEVAL_SESSION_ID=svc-demo "));
        assert!(
            !first(false, true).contains("SVC_RETRIEVAL"),
            "without a token to retrieve with, the server would refuse to start"
        );
    }
}
