//! A small fictional organization: three people and their agents make ten changes to one repository
//! within six days. Some changes are merged, squashed, rebased or moved, one is thrown away, and
//! two are open. One test is flaky and one fails. One proposal is rejected and corrected.
//!
//! Everything is derived from the start time, so it can be loaded again without storing anything
//! twice.

mod change;
mod events;
mod forge;
pub(super) mod repository;
mod sessions;

use std::path::Path;

use svc_model::id::SessionId;
use svc_model::ingest::event::Event;
use svc_model::ingest::{GatewayIngestRequest, VendorCIRequest};
use svc_model::time::Instant;

use self::change::CHANGES;
use self::forge::Webhook;
use self::repository::Commits;
use super::conversation::Conversation;
use crate::error::CommandError;

/// The repository, as the forge names it.
pub(super) const REPOSITORY: &str = "acme/orders";
/// The Session in which one call is quarantined.
const QUARANTINED: (&str, &str) = ("search", "plan");

const MINUTE_US: i64 = 60 * 1_000_000;
/// How many days ago the organization begins.
const DAYS: i64 = 6;
/// The minutes between two changes.
const CHANGE_MINUTES: i64 = 14 * 60;
/// How many minutes before now the last change begins, so that its commits are pushed close to its
/// calls.
const LAST_MINUTES: i64 = 45;

/// When everything happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    begin: Instant,
}

impl Timeline {
    /// Returns the timeline of an organization that is loaded now.
    pub(super) fn until(now: Instant) -> Self {
        let minute = now.microseconds() / MINUTE_US - DAYS * 24 * 60;
        Self {
            begin: moment(minute.max(1) * MINUTE_US),
        }
    }

    /// Returns the timeline whose first call was observed at this moment.
    pub(super) fn of_first_call(observed_at: Instant) -> Self {
        Self { begin: observed_at }
    }

    pub(super) fn begin(self) -> Instant {
        self.begin
    }

    /// Returns the moment this many minutes after a change began.
    fn change(self, number: usize, minutes: i64) -> Instant {
        let begun = if number + 1 == CHANGES.len() {
            DAYS * 24 * 60 - LAST_MINUTES
        } else {
            i64::try_from(number).unwrap_or(0) * CHANGE_MINUTES
        };
        moment(self.begin.microseconds() + (begun + minutes) * MINUTE_US)
    }
}

fn moment(microseconds: i64) -> Instant {
    Instant::from_microseconds(microseconds).expect("a moment of our time")
}

fn pr_number(change: usize) -> usize {
    11 + change
}

/// Something that is loaded.
#[derive(Debug)]
pub(super) enum Step {
    Call(GatewayIngestRequest),
    Event(Event),
    Webhook(Webhook),
    Outcome(VendorCIRequest),
}

/// What is loaded.
#[derive(Debug)]
pub(super) struct Organization {
    /// When each thing happened, in this order.
    pub(super) steps: Vec<(Instant, Step)>,
    /// The Sessions of the calls.
    pub(super) sessions: usize,
    /// The notes that a mirror of the repository shows.
    pub(super) notes: u64,
    /// An example of a commit: one that an agent wrote and that was merged.
    pub(super) commit: String,
}

impl Organization {
    /// Creates the repository in a folder, and all evidence about it.
    pub(super) fn make(timeline: Timeline, folder: &Path) -> Result<Self, CommandError> {
        let commits: Commits = repository::make(folder, timeline)?;
        let conversations = sessions::all(timeline);
        let first = commits.changes.iter().flatten().next();
        let calls = conversations.iter().flat_map(Conversation::calls);
        let calls = calls.map(|call| {
            let observed_at = call.capture.as_ref().map(|capture| capture.observed_at);
            (observed_at.unwrap_or(timeline.begin), Step::Call(call))
        });
        let events = events::all(timeline).into_iter();
        let events = events.map(|event| (event.occurred_at.instant(), Step::Event(event)));
        let clone_url = folder.display().to_string();
        let webhooks = forge::webhooks(timeline, &commits, &clone_url)?.into_iter();
        let webhooks = webhooks.map(|(at, webhook)| (at, Step::Webhook(webhook)));
        let outcomes = forge::outcomes(timeline, &commits)?.into_iter();
        let outcomes = outcomes.map(|(at, outcome)| (at, Step::Outcome(outcome)));
        let steps = calls.chain(events).chain(webhooks).chain(outcomes);
        let mut steps: Vec<(Instant, Step)> = steps.collect();
        steps.sort_by_key(|(at, _)| *at);
        Ok(Self {
            steps,
            sessions: conversations.len(),
            notes: commits.notes,
            commit: first.map_or(&commits.base, |first| &first.code).to_string(),
        })
    }
}

/// Returns the first Session, which shows whether the organization has been loaded before.
pub(super) fn first_session() -> SessionId {
    repository::session_id(&CHANGES[0], sessions::PLAN)
}

/// Returns the Session in which one call is quarantined.
pub(super) fn quarantined_session() -> SessionId {
    let (name, kind) = QUARANTINED;
    let change = CHANGES.iter().find(|change| change.name == name);
    repository::session_id(change.unwrap_or(&CHANGES[0]), kind)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_organization_is_the_same_each_time_it_is_generated() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let now = Instant::parse("2026-05-06T07:08:09Z").expect("a moment");
            let timeline = Timeline::until(now);
            let again = Timeline::of_first_call(timeline.change(0, 0));
            assert_eq!(again.begin, timeline.begin);
            Organization::make(again, &folder.path().join(name)).expect("git works")
        };
        let (first, second) = (make("one"), make("one"));
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
        let calls = || {
            let steps = first.steps.iter();
            steps.filter_map(|(_, step)| match step {
                Step::Call(call) => Some(call.capture.as_ref()?.id),
                _ => None,
            })
        };
        assert_eq!(calls().collect::<BTreeSet<_>>().len(), calls().count());
        assert_eq!((first.sessions, first.notes), (40, 16));
    }

    #[test]
    fn every_change_of_the_demo_lies_in_the_past() {
        let now = Instant::parse("2026-05-06T07:08:09Z").expect("a moment");
        let timeline = Timeline::until(now);
        for number in 0..CHANGES.len() {
            assert!(timeline.change(number, 43) < now, "{number}");
        }
    }
}
