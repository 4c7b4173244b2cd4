use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use svc_engine::clock::{Clock, Ids};
use svc_engine::deadline::{Cancellation, Deadline};
use svc_engine::derive::repository::{Repositories, Selection, Selector};
use svc_engine::fact::Lifetime;
use svc_engine::mirror::{Git, RefreshOutcome, Refresher};
use svc_engine::store::{JobState, Ledger, MirrorJobs, Store, StoreConfig};
use svc_model::time::Instant;

use super::{MirrorOptions, required};
use crate::commands::interruption::by_the_operator;
use crate::commands::repository;
use crate::error::CommandError;
use crate::output::{Output, Table, escape};

/// The time limit for finding git.
const PROBE_MAX: Duration = Duration::from_secs(10);
/// The outcome for a repository that no push names.
const UNKNOWN: &str = "unknown";

#[derive(Debug, Args)]
pub(crate) struct Refresh {
    /// The repositories: OWNER/NAME, or PROVIDER/HOST/ID as shown by `svc mirror status`.
    #[arg(required_unless_present = "all", value_name = "REPOSITORY")]
    repositories: Vec<String>,

    /// Refresh every mirror.
    #[arg(long, conflicts_with = "repositories")]
    all: bool,

    /// How long each refresh may take, in seconds.
    #[arg(
        long,
        default_value_t = svc_model::limit::MIRROR_DEADLINE_SECONDS,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    deadline: u64,

    #[command(flatten)]
    options: MirrorOptions,
}

/// The result for one mirror, for programs.
#[derive(Debug, Serialize)]
struct Refreshed {
    repository: String,
    outcome: &'static str,
    stored: usize,
    duplicates: usize,
    ignored_notes: usize,
    reason: Option<&'static str>,
    detail: Option<String>,
    retry_at: Option<Instant>,
}

#[derive(Debug, Serialize)]
struct RefreshedMirrors {
    mirrors: Vec<Refreshed>,
}

impl Refresh {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let settings = self.options.settings()?;
        let mut config = required(settings.mirror)?;
        config.deadline = Duration::from_secs(self.deadline);
        let (url, org_id) = (settings.store.url, settings.store.org_id);
        let ledger = Ledger::open(&url, org_id.clone())?;
        let lifetimes = if self.all {
            let mirrors = ledger.snapshot()?.mirrors(Clock::system().now())?;
            mirrors.into_iter().map(|mirror| mirror.lifetime).collect()
        } else {
            let repositories = self.repositories.iter();
            repositories
                .map(|text| lifetime(&ledger, text))
                .collect::<Result<Vec<Lifetime>, CommandError>>()?
        };
        let cancellation = by_the_operator()?;
        let git = Git::find(&Deadline::after(PROBE_MAX).cancelled_by(&cancellation))
            .map_err(|error| CommandError::refused("git_unusable", error.to_string()))?;
        let store = Arc::new(Store::open(&StoreConfig {
            url,
            org_id,
            migrate: false,
            readers: 2,
        })?);
        let jobs = MirrorJobs::new(Arc::clone(&store));
        let refresher = Refresher::new(store, jobs, config, git, Clock::system(), Ids::random());
        let mut shown = RefreshedMirrors {
            mirrors: Vec::new(),
        };
        for lifetime in lifetimes {
            shown
                .mirrors
                .push(refresh(&refresher, &ledger, &lifetime, &cancellation)?);
        }
        output.value(&shown, render)?;
        let failed = shown
            .mirrors
            .iter()
            .filter(|mirror| mirror.outcome != "refreshed");
        match failed.count() {
            0 => Ok(()),
            count => {
                let error = CommandError::refused(
                    "not_refreshed",
                    format!("{count} of {} not refreshed", shown.mirrors.len()),
                );
                let mut mirrors = shown.mirrors.iter();
                Err(if mirrors.any(|mirror| mirror.outcome == UNKNOWN) {
                    error.hint("to list the repositories that have a mirror: svc mirror status")
                } else {
                    error
                })
            }
        }
    }
}

/// Returns the repository that a text names.
fn lifetime(ledger: &Ledger, text: &str) -> Result<Lifetime, CommandError> {
    let malformed = || CommandError::argument("the repository", repository::RULE);
    let name = match repository::read(text).ok_or_else(malformed)? {
        identified @ Lifetime::Identified(_) => return Ok(identified),
        Lifetime::Named(name) => name,
    };
    let mut snapshot = ledger.snapshot()?;
    let boundary = snapshot.boundary(None)?;
    let claims =
        snapshot.repository_claims(&BTreeSet::from([name.clone()]), &BTreeSet::new(), boundary)?;
    let ambiguous = || {
        CommandError::refused(
            "ambiguous",
            format!("several repositories have had the name {name}"),
        )
        .hint("name one by its identity, which this shows: svc mirror status")
    };
    let repositories = Repositories::new(claims).map_err(|_| ambiguous())?;
    let selector = Selector {
        name: Some(name.clone()),
        identity: None,
    };
    match repositories.select(&selector) {
        Ok(Selection::One(lifetime)) => Ok(lifetime),
        Ok(Selection::All | Selection::None) => Ok(Lifetime::Named(name)),
        Err(_) => Err(ambiguous()),
    }
}

/// Refreshes a mirror until nothing is left to read.
fn refresh(
    refresher: &Refresher,
    ledger: &Ledger,
    lifetime: &Lifetime,
    cancellation: &Cancellation,
) -> Result<Refreshed, CommandError> {
    let mut row = Refreshed {
        repository: lifetime.to_string(),
        outcome: "refreshed",
        stored: 0,
        duplicates: 0,
        ignored_notes: 0,
        reason: None,
        detail: None,
        retry_at: None,
    };
    loop {
        let Some(job) = refresher.claim_now(lifetime)? else {
            let (outcome, why) = why_not(ledger, lifetime)?;
            row.outcome = outcome;
            row.detail = Some(why.to_owned());
            return Ok(row);
        };
        match refresher.run(&job, cancellation)? {
            RefreshOutcome::Refreshed {
                stored,
                duplicates,
                ignored,
                more,
            } => {
                row.stored += stored;
                row.duplicates += duplicates;
                row.ignored_notes += ignored;
                if !more {
                    return Ok(row);
                }
            }
            RefreshOutcome::Nothing => {
                row.outcome = "declined";
                row.detail = Some("no visible push names it".to_owned());
                return Ok(row);
            }
            RefreshOutcome::Declined(reason, detail) => {
                row.outcome = "declined";
                row.reason = Some(reason.as_str());
                row.detail = (!detail.is_empty()).then_some(detail);
                return Ok(row);
            }
            RefreshOutcome::Failed(reason, detail, retry_at) => {
                row.outcome = "failed";
                row.reason = Some(reason.as_str());
                row.detail = Some(detail);
                row.retry_at = retry_at;
                return Ok(row);
            }
            RefreshOutcome::PutBack(reason) => {
                row.outcome = "waiting";
                row.reason = reason.map(svc_engine::mirror::MirrorFailure::as_str);
                return Ok(row);
            }
        }
    }
}

/// Returns the outcome for a mirror that could not be claimed, and the reason.
fn why_not(
    ledger: &Ledger,
    lifetime: &Lifetime,
) -> Result<(&'static str, &'static str), CommandError> {
    let mirrors = ledger.snapshot()?.mirrors(Clock::system().now())?;
    let mirror = mirrors
        .into_iter()
        .find(|mirror| mirror.lifetime == *lifetime);
    Ok(match mirror.map(|mirror| mirror.state) {
        Some(JobState::Running(_)) => ("waiting", "another process is refreshing it"),
        _ => (
            UNKNOWN,
            "no such repository is known: no visible push names it",
        ),
    })
}

fn render(shown: &RefreshedMirrors) -> String {
    let mut table =
        Table::new(["repository", "outcome", "stored", "known", "why"]).numbers(&[2, 3]);
    for row in &shown.mirrors {
        let why = [row.reason, row.detail.as_deref()];
        let why: Vec<String> = why.into_iter().flatten().map(escape).collect();
        table.row([
            escape(&row.repository),
            row.outcome.to_owned(),
            row.stored.to_string(),
            row.duplicates.to_string(),
            why.join(": "),
        ]);
    }
    table.render()
}
