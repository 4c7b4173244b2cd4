//! Shows what an erasure would remove, and carries it out.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use svc_engine::clock::{Clock, Ids};
use svc_engine::deadline::Deadline;
use svc_engine::store::{
    Compaction, ErasedContent, ErasedFacts, ErasureForecast, ErasureOrder, ErasureSubject,
    StoreError,
};
use svc_model::facts::FactTable;

use super::search_index::{self, ErasedIndex};
use super::{Subject, by_kind, named, store};
use crate::commands::interruption::by_the_operator;
use crate::commands::place::OpenedLedger;
use crate::commands::quarantine::{check_reason, client_id};
use crate::error::{CommandError, chain};
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Fields, Output, escape, long_option, shown_bytes};

/// The word for files that were rewritten.
const RETURNED: &str = "returned";
/// The word for files that were not, so that they may still hold what was erased.
pub(in crate::commands) const NOT_REWRITTEN: &str = "not_rewritten";
/// The time limit. Usually the work is done, or the operator interrupts it, much earlier.
const AT_MOST: Duration = Duration::from_hours(24);

#[derive(Debug, Args)]
pub(super) struct ErasureOptions {
    /// Erase the content; without --apply, only show what would be erased
    #[arg(long, requires = "reason")]
    apply: bool,

    /// The reason, which the log keeps
    #[arg(long)]
    reason: Option<String>,

    #[command(flatten)]
    store: StoreOptions,
}

/// What was erased or would be, for programs.
#[derive(Debug, Serialize)]
struct ErasureResult {
    applied: bool,
    of: Subject,
    /// The id of the erasure in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    erasure_id: Option<String>,
    sessions: u64,
    #[serde(serialize_with = "by_kind")]
    facts: ErasedFacts,
    /// The number of distinct messages and pieces of payloads.
    contents: u64,
    /// The bodies that waited for their other half; absent if there are none.
    #[serde(skip_serializing_if = "is_none")]
    halves: u64,
    /// Their bytes as stored.
    stored_bytes: u64,
    /// Contents that stay because other calls need them.
    shared: SharedBytes,
    /// Whether the files were rewritten, which frees the space: `returned`, `in_use` or
    /// `not_rewritten`.
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    /// What became of the words in the search index of this machine: `deleted`, `erased` or
    /// `pending`. Absent if there is no index.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<&'static str>,
    #[serde(skip)]
    search_index: Option<ErasedIndex>,
}

#[derive(Debug, Serialize)]
struct SharedBytes {
    in_session: u64,
    by_all: u64,
}

impl ErasureOptions {
    pub(super) fn run(
        &self,
        subject: &ErasureSubject,
        again: &str,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        if let Some(reason) = &self.reason {
            check_reason(reason)?;
        }
        let (opened, place) = store(&self.store, output)?;
        let cancellation = by_the_operator()?;
        let deadline = Deadline::after(AT_MOST).cancelled_by(&cancellation);
        let interrupted = |error: StoreError| match error {
            StoreError::Deadline if cancellation.is_cancelled() => CommandError::refused(
                "interrupted",
                "interrupted; run the same command again to erase the rest",
            ),
            other => other.into(),
        };
        let ledger = &opened.ledger;
        let may_rewrite = ledger.check_compaction();
        let Some(reason) = self.reason.as_ref().filter(|_| self.apply) else {
            let forecast = ledger.forecast_erasure(subject, &deadline);
            let forecast = forecast.map_err(interrupted)?;
            let outcome = outcome(subject, &forecast, None);
            output.value(&outcome, |outcome| render(outcome, subject, &place))?;
            warn_of_copies(&opened, output);
            if let Err(error) = may_rewrite {
                output.warning(&format!("with --apply this is refused: {}", chain(&error)));
            }
            if forecast.facts.total() > 0 || forecast.halves > 0 {
                let reason = self.reason.as_deref().unwrap_or("WHY");
                let reason = long_option("reason", reason);
                let apply = format!("{again} --apply{reason}{}", repeated(&self.store));
                output.next(&ServiceOptions::default(), &[apply]);
            }
            return Ok(());
        };
        may_rewrite.map_err(|error| CommandError::from(error).after("nothing was erased"))?;
        let order = ErasureOrder {
            erasure_id: Ids::random().fresh(),
            subject: subject.clone(),
            reason: reason.clone(),
            recorded_at: Clock::system().now(),
            client_id: client_id(),
        };
        let plan = ledger.plan_erasure(subject, &deadline);
        let plan = plan.map_err(interrupted)?;
        let forecast = *plan.forecast();
        let erased = ledger.erase(plan, &order, &deadline, &mut |_| {});
        let erased = erased.map_err(interrupted)?;
        let rewritten = ledger.compact();
        let space = match rewritten {
            Ok(Compaction::Done) => RETURNED,
            Ok(Compaction::InUse) => "in_use",
            Err(_) => NOT_REWRITTEN,
        };
        let search_index = search_index::erase(&opened);
        let outcome = ErasureResult {
            search: search_index.word(),
            search_index: Some(search_index),
            ..outcome(subject, &forecast, Some((&order, &erased, space)))
        };
        output.value(&outcome, |outcome| render(outcome, subject, &place))?;
        warn_of_copies(&opened, output);
        match rewritten {
            Ok(Compaction::Done) => {}
            Ok(Compaction::InUse) => output.warning(
                "a reader still uses the old state, so some bytes may remain in the files; run \
                 the same command again later",
            ),
            Err(error) => {
                let error = CommandError::from(error).after(
                    "the content is erased, but the files were not rewritten, so its bytes may \
                     remain in them",
                );
                return Err(error.hint("then run the same command again"));
            }
        }
        Ok(())
    }
}

/// Warns of the databases that restores have put aside or left, and of backups that were never
/// finished. No erasure reaches them.
fn warn_of_copies(opened: &OpenedLedger, output: &mut Output) {
    let copies: Vec<String> = opened
        .copies()
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if !copies.is_empty() {
        output.warning(&format!(
            "databases that `svc restore` put aside, or left when it was killed, and backups that \
             were never finished still have their content: {}; remove them yourself",
            copies.join(", ")
        ));
    }
}

/// Returns the store's options for a suggested command, each after a space.
fn repeated(store: &StoreOptions) -> String {
    let option = |name: &str, value: &Option<String>| {
        let value = value.as_deref().filter(|value| !value.trim().is_empty());
        value.map_or_else(String::new, |value| long_option(name, value))
    };
    option("database-url", &store.database_url) + &option("org", &store.org_id)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

fn outcome(
    subject: &ErasureSubject,
    forecast: &ErasureForecast,
    done: Option<(&ErasureOrder, &ErasedContent, &'static str)>,
) -> ErasureResult {
    let (facts, contents, halves, stored_bytes) = match done {
        Some((_, erased, _)) => (
            erased.facts,
            erased.contents,
            erased.halves,
            erased.stored_bytes,
        ),
        None => (
            forecast.facts,
            forecast.contents,
            forecast.halves,
            forecast.stored_bytes,
        ),
    };
    ErasureResult {
        applied: done.is_some(),
        of: subject.into(),
        erasure_id: done
            .filter(|(_, erased, _)| erased.facts.total() > 0 || erased.halves > 0)
            .map(|(order, ..)| order.erasure_id.to_string()),
        sessions: forecast.sessions,
        facts,
        contents,
        halves,
        stored_bytes,
        shared: SharedBytes {
            in_session: forecast.shared_in_session,
            by_all: forecast.shared_by_all,
        },
        space: done.map(|(_, _, space)| space),
        search: None,
        search_index: None,
    }
}

/// Returns the name of a kind with captured content, for people.
const fn name(kind: FactTable) -> &'static str {
    match kind {
        FactTable::InferenceCalls => "model calls",
        FactTable::DeveloperDecisions => "decisions",
        FactTable::EditObservations => "edits",
        FactTable::RejectedEdits => "refused edits",
        FactTable::RetryLinkages => "retries",
        other => other.as_str(),
    }
}

fn render(outcome: &ErasureResult, subject: &ErasureSubject, place: &str) -> String {
    let mut fields = Fields::default();
    fields.add("of", named(subject));
    fields.add("in", escape(place));
    fields.add("Sessions", outcome.sessions.to_string());
    let is_nothing = outcome.facts.total() == 0 && outcome.halves == 0;
    for (kind, count) in outcome.facts.iter() {
        fields.add(name(kind), count.to_string());
    }
    if outcome.halves > 0 {
        let halves = outcome.halves.to_string();
        fields.add("bodies that wait for their other half", halves);
    }
    let bytes = shown_bytes(outcome.stored_bytes);
    fields.add("contents", format!("{} ({bytes})", outcome.contents));
    let SharedBytes { in_session, by_all } = outcome.shared;
    fields.add(
        "contents that stay",
        format!(
            "{in_session} that other calls of these Sessions need, {by_all} that calls of other \
             Sessions need (system prompts, definitions of tools)"
        ),
    );
    if outcome.space == Some(RETURNED) {
        let rewritten = if is_nothing {
            "rewritten: they hold nothing of earlier erasures"
        } else {
            "rewritten: they hold nothing more of what was erased"
        };
        fields.add("files", rewritten);
    } else if outcome.space == Some(NOT_REWRITTEN) {
        fields.add(
            "files",
            "not rewritten: they may still hold what was erased",
        );
    }
    let index = outcome.search_index.and_then(ErasedIndex::sentence);
    if let Some(index) = index {
        fields.add("search index", index);
    }
    if outcome.applied && !is_nothing {
        let elsewhere = "earlier backups, exports and other copies still contain it";
        fields.add("elsewhere", elsewhere);
    }
    let head = match (is_nothing, outcome.applied) {
        (true, true) => "nothing was erased: no content of this is stored here\n",
        (true, false) => "nothing would be erased: no content of this is stored here\n",
        (false, true) => "erased; the facts stay\n",
        (false, false) => "would be erased (dry run; add --apply and --reason); the facts stay\n",
    };
    head.to_owned() + &fields.render()
}
