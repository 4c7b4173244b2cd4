use clap::{ArgAction, Args};
use serde::Serialize;
use svc_engine::clock::{Clock, Ids};
use svc_engine::store::{BulkChange, CallFilter, CallTally, QuarantineAction};
use svc_model::id::SessionId;
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;
use svc_model::usage::CallSource;

use super::{check_reason, client_id};
use crate::commands::moment::{RangeBound, boundary};
use crate::commands::one_of::one_of;
use crate::commands::place::{DefaultPlace, StoreOrService};
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape};
use crate::product::Product as _;

#[derive(Debug, Args)]
pub(crate) struct Bulk {
    /// The reason, which is kept in the log.
    #[arg(long)]
    reason: String,

    /// Only calls of this Session.
    #[arg(value_name = "SESSION", conflicts_with = "session_id")]
    session: Option<String>,

    /// The same as SESSION.
    #[arg(long, value_name = "SESSION")]
    session_id: Option<String>,

    /// Only calls from this kind of gateway: litellm, portkey, helicone or unknown.
    #[arg(long, value_name = "GATEWAY")]
    provider: Option<String>,

    /// Only calls that were captured here.
    #[arg(long, value_name = "SOURCE", value_parser = one_of(CallSource::ALL, CallSource::as_str))]
    capture_source: Option<CallSource>,

    /// Only calls that this agent made, by the name that its transcripts or programs give.
    #[arg(long)]
    agent: Option<String>,

    /// Only calls observed between these moments, inclusive: RFC 3339 with an offset, or an age
    /// such as 7d.
    #[arg(
        long,
        num_args = 2,
        action = ArgAction::Set,
        value_names = ["FROM", "TO"],
        allow_hyphen_values = true
    )]
    between: Option<Vec<String>>,

    /// Every call of the organization, if no other option selects calls.
    #[arg(long)]
    all: bool,

    /// Apply the change. Otherwise the calls are only counted.
    #[arg(long)]
    apply: bool,

    #[command(flatten)]
    store: StoreOptions,
}

/// What a change did or would do, for programs.
#[derive(Debug, Serialize)]
struct BulkResult {
    action: &'static str,
    applied: bool,
    /// Calls whose state changes.
    changed: u64,
    /// Calls that are already in the new state.
    unchanged: u64,
    quarantine_revision: u64,
}

impl Bulk {
    pub(crate) fn run(
        self,
        action: QuarantineAction,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        check_reason(&self.reason)?;
        let filter = self.filter()?;
        let place = StoreOrService::find(
            &ServiceOptions::default(),
            &self.store,
            DefaultPlace::Store,
            output,
        )?;
        let shown = place.shown();
        let StoreOrService::Store(opened) = place else {
            return Err(CommandError::refused(
                "needs_the_store",
                format!("bulk changes work on the store itself, but this shell uses {shown}"),
            )
            .hint(
                "run it on the machine of the store, with --database-url URL or SVC_DATABASE_URL",
            ));
        };
        let place = format!("{shown}, organization {}", opened.org_id);
        let ledger = opened.ledger;
        let (before, quarantine_revision) = if self.apply {
            let change = BulkChange {
                action,
                reason: self.reason,
                recorded_at: Clock::system().now(),
                client_id: client_id(),
            };
            let ids = Ids::random();
            let receipt = ledger.quarantine_calls(&filter, &change, || ids.fresh())?;
            (receipt.before, receipt.revision)
        } else {
            let mut snapshot = ledger.snapshot()?;
            (
                snapshot.call_tally(&filter)?,
                snapshot.quarantine_revision()?,
            )
        };
        let outcome = outcome(action, self.apply, before, quarantine_revision);
        output.value(&outcome, |outcome| render(action, outcome, &place))
    }

    /// Returns the selected calls.
    fn filter(&self) -> Result<CallFilter, CommandError> {
        let session_id = self.session.as_deref().or(self.session_id.as_deref());
        let session_id = session_id.map(SessionId::new).transpose();
        let gateway_provider = self.provider.as_deref().map(|name| {
            GatewayProvider::named(name).ok_or_else(|| {
                let known: Vec<_> = GatewayProvider::ALL
                    .iter()
                    .map(|provider| provider.product())
                    .collect();
                CommandError::argument("--provider", format!("must be one of {}", known.join(", ")))
            })
        });
        let filter = CallFilter {
            session_id: session_id.map_err(|rule| CommandError::argument("the Session", rule))?,
            gateway_provider: gateway_provider.transpose()?,
            capture_source: self.capture_source,
            agent: self.agent.clone(),
            observed: self
                .between
                .as_deref()
                .map(|bounds| observed(bounds, Clock::system().now()))
                .transpose()?,
        };
        let is_given = filter.session_id.is_some()
            || filter.gateway_provider.is_some()
            || filter.capture_source.is_some()
            || filter.agent.is_some()
            || filter.observed.is_some();
        if !is_given && !self.all {
            return Err(
                CommandError::refused("invalid_argument", "no calls are selected")
                    .hint("select them with SESSION, --provider, --capture-source, --agent or --between, or use --all"),
            );
        }
        Ok(filter)
    }
}

/// Parses the two bounds.
fn observed(bounds: &[String], now: Instant) -> Result<(Instant, Instant), CommandError> {
    let name = "a bound of --between";
    let read =
        |text: &str, bound| boundary(name, text, bound, now).map_err(CommandError::into_refusal);
    let [first, last] = bounds else {
        return Err(CommandError::argument("--between", "takes two moments"));
    };
    let (first, last) = (
        read(first, RangeBound::First)?,
        read(last, RangeBound::Last)?,
    );
    if first > last {
        return Err(CommandError::argument(
            "--between",
            "must begin before it ends",
        ));
    }
    Ok((first, last))
}

fn outcome(
    action: QuarantineAction,
    applied: bool,
    before: CallTally,
    quarantine_revision: u64,
) -> BulkResult {
    let changed = before.changed_by(action);
    BulkResult {
        action: action.as_str(),
        applied,
        changed,
        unchanged: before.matched - changed,
        quarantine_revision,
    }
}

fn render(action: QuarantineAction, outcome: &BulkResult, place: &str) -> String {
    let place = escape(place);
    let BulkResult {
        changed, unchanged, ..
    } = outcome;
    let (done, state) = match action {
        QuarantineAction::Quarantine => ("quarantined", "quarantined"),
        QuarantineAction::Release => ("released", "visible"),
    };
    if outcome.applied {
        format!("{done} {changed} model-call facts; {unchanged} already {state}, in {place}\n")
    } else {
        format!(
            "{changed} model-call facts would be {done} (dry run; add --apply); {unchanged} already {state}, in {place}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TALLY: CallTally = CallTally {
        matched: 5,
        visible: 3,
    };

    #[test]
    fn both_numbers_are_printed() {
        for (action, applied, text) in [
            (
                QuarantineAction::Quarantine,
                false,
                "3 model-call facts would be quarantined (dry run; add --apply); 2 already quarantined, in there\n",
            ),
            (
                QuarantineAction::Quarantine,
                true,
                "quarantined 3 model-call facts; 2 already quarantined, in there\n",
            ),
            (
                QuarantineAction::Release,
                false,
                "2 model-call facts would be released (dry run; add --apply); 3 already visible, in there\n",
            ),
            (
                QuarantineAction::Release,
                true,
                "released 2 model-call facts; 3 already visible, in there\n",
            ),
        ] {
            assert_eq!(
                render(action, &outcome(action, applied, TALLY, 7), "there"),
                text
            );
        }
    }

    #[test]
    fn bounds_have_offsets_and_an_order() {
        let now = Instant::parse("2026-01-31T09:30:00Z").unwrap();
        let observed =
            |first: &str, last: &str| observed(&[first.to_owned(), last.to_owned()], now);
        assert_eq!(
            observed("-7d", "2h").unwrap(),
            observed("2026-01-24T09:30:00Z", "2026-01-31T07:30:00Z").unwrap()
        );
        assert!(observed("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z").is_ok());
        assert!(observed("2026-01-01T01:00:00+02:00", "2025-12-31T23:00:00Z").is_ok());
        for (first, last) in [
            ("2026-01-01T00:00:00", "2026-01-02T00:00:00Z"),
            ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("soon", "later"),
            ("2026-01-01", "2026-01-02"),
        ] {
            assert!(observed(first, last).is_err(), "{first} {last}");
        }
    }
}
