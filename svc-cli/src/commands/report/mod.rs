//! Reports on what became of the agents' work, over everything in the store and the mirrors. These
//! commands read the store and the folder of the mirrors, and change neither. If a service is
//! configured and no store is, three of the reports ask the service.

mod abandonment;
mod attribution_share;
mod comparison;
mod lifecycle;
mod merge_retention;
mod model;
mod page;
mod progress;
mod served;
mod shares;
mod spend;
mod stratification;

use std::time::Duration;

use clap::{Args, Subcommand};
use svc_engine::clock::Clock;
use svc_engine::deadline::Deadline;
use svc_engine::error::Error;
use svc_engine::mirror::{MirrorConfig, MirrorReading};
use svc_engine::read::{Extent, ReportMemory, ReportSources};
use svc_engine::store::Snapshot;
use svc_model::limit::{REPORT_CALL_IDS_MAX, REPORT_CALLS_MAX, REPORT_FACTS_MAX};
use svc_model::problem::{Problem, ReportBound};
use svc_model::time::Instant;

use self::progress::Progress;
use super::mirror::MirrorOptions;
use super::moment::optional_boundary;
use super::service;
use super::store::ledger;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape};

/// How long a report may take.
const READ_MAX: Duration = Duration::from_mins(10);
/// The memory in bytes for caches during one report.
const MEMORY_BYTES: u64 = 128 * 1024 * 1024;

#[derive(Debug, Subcommand)]
pub(crate) enum Report {
    /// Show what became of each model's calls.
    ///
    /// It shows how many calls are linked to a commit, what CI said about these commits, what
    /// people decided and what was kept. --compare tests two models against each other. A service's
    /// report covers 31 days at most.
    #[command(
        after_help = "Examples:\n  svc report model --since-days 30\n  svc report model --since-days 7 --url https://svc.example.com\n  svc report model --compare model-a model-b --non-inferiority-margin 0.05"
    )]
    Model(model::Model),
    /// Show what became of accepted work, panel by panel.
    ///
    /// Each panel has its own unit and denominator, and lists what it cannot cover. A service's
    /// report covers 31 days at most.
    #[command(
        after_help = "Examples:\n  svc report lifecycle --as-of 7d\n  svc report lifecycle --since-days 7 --url https://svc.example.com"
    )]
    Lifecycle(lifecycle::Lifecycle),
    /// Show what is known about each Session with accepted work.
    ///
    /// A Session with an observed commit counts as committed. About a Session without one, nothing
    /// is known, so none is ever called abandoned.
    #[command(after_help = "Example:\n  svc report abandonment --json")]
    Abandonment(abandonment::Abandonment),
    /// Show what share of each repository's commits is linked to agents by notes.
    ///
    /// It compares the week before each repository's last push with the 28 days before that week. A
    /// share of zero, or one that fell, suggests that notes are no longer written.
    #[command(after_help = "Example:\n  svc report attribution-share --target-margin 0.1")]
    AttributionShare(attribution_share::AttributionShare),
    /// Show how much of what agents wrote remained when pull requests were merged.
    ///
    /// It needs the forge's pull request events.
    #[command(
        after_help = "Examples:\n  svc report merge-retention --explain\n  svc report merge-retention --since-days 30"
    )]
    MergeRetention(merge_retention::MergeRetention),
    /// Show what calls of models cost at list price, and what the spend became.
    ///
    /// Each call counts once, whichever sources report it. What has no price is counted, never zero.
    /// A service's report covers 31 days at most.
    #[command(
        after_help = "Examples:\n  svc report spend\n  svc report spend --by repository --since 7\n  svc report spend --by session --since 2026-11-01 --until 2026-11-08 --no-outcomes"
    )]
    Spend(spend::Spend),
}

impl Report {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Model(model) => model.run(output),
            Self::Lifecycle(lifecycle) => lifecycle.run(output),
            Self::Abandonment(abandonment) => abandonment.run(output),
            Self::AttributionShare(share) => share.run(output),
            Self::MergeRetention(retention) => retention.run(output),
            Self::Spend(spend) => spend.run(output),
        }
    }
}

/// The calls that a report covers, and its data sources.
#[derive(Debug, Args)]
struct CohortOptions {
    /// Only the calls of the last DAYS days; by default all history.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    since_days: Option<u32>,

    #[command(flatten)]
    report: ReportOptions,
}

impl CohortOptions {
    /// Returns the calls that a report up to a moment covers.
    fn extent(&self, as_of: Instant) -> Extent {
        match self.since_days {
            Some(days) => Extent::days_before(as_of, days),
            None => Extent::all_until(as_of),
        }
    }

    /// Makes a report from one snapshot of the store alone.
    fn read_facts<T>(
        &self,
        output: &mut Output,
        read: impl FnOnce(&mut Snapshot<'_>) -> Result<T, Error>,
    ) -> Result<T, CommandError> {
        let read = self.report.read_facts(output, read)?;
        read.map_err(Self::refused)
    }

    /// Makes a report from one snapshot of the store and the current mirrors.
    fn read<T>(
        &self,
        output: &mut Output,
        read: impl FnOnce(&mut Snapshot<'_>, ReportSources<'_>) -> Result<T, Error>,
    ) -> Result<T, CommandError> {
        let read = self.report.read(output, read)?;
        read.map_err(Self::refused)
    }

    fn refused(error: Error) -> CommandError {
        match error {
            Error::ReportBound(_) => {
                too_much().advised(Problem::ReportBound(ReportBound::Evidence).advice())
            }
            other => other.into(),
        }
    }
}

/// The data sources of a report.
#[derive(Debug, Args)]
struct ReportOptions {
    /// Count only facts captured at or before this moment: RFC 3339 with an offset, or an age such
    /// as 7d; by default now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,

    #[command(flatten)]
    mirror: MirrorOptions,

    #[command(flatten)]
    service: ServiceOptions,
}

impl ReportOptions {
    /// Returns the boundary of the report.
    fn as_of(&self) -> Result<Instant, CommandError> {
        let now = Clock::system().now();
        Ok(optional_boundary("--as-of", self.as_of.as_deref(), now)?.unwrap_or(now))
    }

    /// Refuses a report that services do not offer, if a service is named and no store is.
    fn require_store(&self) -> Result<(), CommandError> {
        if self.asks_service()? && service::given(&self.service)?.is_some() {
            return Err(CommandError::refused(
                "store_only",
                "services do not offer this report; it is made from the store and the mirrors",
            )
            .hint("run it on the machine that has them, with --database-url and --mirror-path")
            .hint(
                "services offer these: svc report model, svc report lifecycle, svc report spend",
            ));
        }
        Ok(())
    }

    /// Makes a report from one snapshot of the store alone.
    fn read_facts<T>(
        &self,
        output: &mut Output,
        read: impl FnOnce(&mut Snapshot<'_>) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, CommandError> {
        let settings = self.mirror.settings()?;
        let ledger = ledger(&settings.store.url, &settings.store.org_id, output)?;
        let _progress = Progress::begin(output, "reading the store");
        let mut snapshot = ledger.snapshot_of_two(&Deadline::after(READ_MAX))?;
        Ok(read(&mut snapshot))
    }

    /// Makes a report from one snapshot of the store and the current mirrors.
    fn read<T>(
        &self,
        output: &mut Output,
        read: impl FnOnce(&mut Snapshot<'_>, ReportSources<'_>) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, CommandError> {
        let settings = self.mirror.settings()?;
        // The folder of a service may be gone; then its mirrors are lost, which the report says.
        let given = settings
            .mirror
            .as_ref()
            .filter(|_| self.mirror.has_option());
        if let Some(mirror) = given.filter(|mirror| !mirror.path.is_dir()) {
            let folder = escape(&mirror.path.to_string_lossy());
            return Err(CommandError::refused(
                "no_mirrors",
                format!("there is no folder {folder}, and so no mirror"),
            )
            .hint("name the folder in which the service keeps its mirrors: --mirror-path"));
        }
        let ledger = ledger(&settings.store.url, &settings.store.org_id, output)?;
        let mut snapshot = ledger.snapshot_of_two(&Deadline::after(READ_MAX))?;
        warn_of_mirrors(settings.mirror.as_ref(), &mut snapshot, output)?;
        let _progress = Progress::begin(output, "reading the store and the mirrors");
        let mirrors = settings
            .mirror
            .map(|mirror| MirrorReading::new(&mirror.path, settings.store.org_id));
        let memory = ReportMemory::new(MEMORY_BYTES);
        let sources = ReportSources {
            mirrors: mirrors.as_ref(),
            memory: &memory,
        };
        Ok(read(&mut snapshot, sources))
    }
}

/// Returns the calls of a report with the boundary that a question up to now means.
fn up_to_now(extent: &Extent, snapshot: &mut Snapshot<'_>) -> Result<Extent, Error> {
    Ok(extent.bounded(snapshot, Clock::system().now())?)
}

/// Warns of what a report misses because of the mirrors, if anything.
fn warn_of_mirrors(
    mirror: Option<&MirrorConfig>,
    snapshot: &mut Snapshot<'_>,
    output: &mut Output,
) -> Result<(), CommandError> {
    if mirror.is_none() {
        output.caveat("without mirrors, no call is linked to a commit: give --mirror-path");
        return Ok(());
    }
    let mirrors = snapshot.mirrors(Clock::system().now())?;
    let behind = mirrors.iter().filter(|mirror| mirror.is_behind()).count();
    if behind > 0 {
        output.caveat(&format!(
            "{behind} of {} mirrors are behind their pushes, so more calls may have reached a \
             commit than are counted: svc mirror status",
            mirrors.len()
        ));
    }
    Ok(())
}

fn too_much() -> CommandError {
    CommandError::refused(
        "report_bound",
        format!(
            "there is too much to report: a report covers at most {REPORT_CALLS_MAX} calls, \
             {REPORT_CALL_IDS_MAX} distinct ids under which decisions name calls, and \
             {REPORT_FACTS_MAX} facts of each kind about them"
        ),
    )
}
