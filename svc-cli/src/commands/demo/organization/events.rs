//! What people decided about the agents' edits, and what became of the edits.

use svc_model::id::{ForeignId, UserId};
use svc_model::ingest::event::{
    EditObservation, EditText, Event, EventKind, EventTime, FilePath, RejectedEdit, RetriedTool,
    RetryLinkage, ToolDecision,
};

use super::Timeline;
use super::change::{CHANGES, Change, ChangeFate, Oddity};
use super::repository::session_id;
use super::sessions::{CODE, TESTS, hasty, write_id};

const TOOL: &str = "Write";
const FITS: &str = "the demo's texts are within their bounds";

pub(super) fn all(timeline: Timeline) -> Vec<Event> {
    let mut events = Vec::new();
    for (number, change) in CHANGES.iter().enumerate() {
        let mut add = |kind: &str, minutes: i64, what: EventKind| {
            let at = timeline.change(number, minutes);
            events.push(Event {
                agent: change.author.agent,
                session_id: session_id(change, kind),
                user_id: UserId::new(change.author.user).ok(),
                occurred_at: EventTime::try_from(at).expect(FITS),
                kind: what,
            });
        };
        if change.oddity == Oddity::Retried {
            add(CODE, 8, decided(change, "refused", false));
            add(CODE, 8, refused(change));
            add(CODE, 11, retried(change));
        }
        add(CODE, 11, decided(change, CODE, true));
        add(CODE, 12, left(change, CODE));
        add(TESTS, 20, decided(change, TESTS, true));
        add(TESTS, 21, left(change, TESTS));
    }
    events
}

fn path(change: &Change, kind: &str) -> FilePath {
    let path = if kind == TESTS {
        change.tests_path()
    } else {
        change.code_path()
    };
    FilePath::new(path).expect(FITS)
}

fn call_id(change: &Change, kind: &str) -> ForeignId {
    ForeignId::new(&write_id(change, kind)).expect(FITS)
}

fn decided(change: &Change, kind: &str, accepted: bool) -> EventKind {
    EventKind::ToolDecision(ToolDecision {
        call_id: call_id(change, kind),
        file_path: Some(path(change, kind)),
        accepted,
        // A rule lets tests be written without asking.
        explicit: kind != TESTS,
        tool_name: Some(TOOL.to_owned()),
    })
}

fn refused(change: &Change) -> EventKind {
    EventKind::RejectedEdit(RejectedEdit {
        call_id: call_id(change, "refused"),
        file_path: path(change, CODE),
        proposed: EditText::new(hasty(change)).expect(FITS),
        tool_name: Some(TOOL.to_owned()),
    })
}

fn retried(change: &Change) -> EventKind {
    let (rejected, accepted) = (call_id(change, "refused"), call_id(change, CODE));
    let linkage = RetryLinkage::new(RetriedTool::Write, &path(change, CODE), rejected, accepted);
    EventKind::RetryLinkage(linkage.expect("two calls"))
}

/// Returns what was left of a written file at the end of its Session.
fn left(change: &Change, kind: &str) -> EventKind {
    let applied = if kind == TESTS {
        change.tests
    } else {
        change.code
    };
    let observed = match (kind, change.way) {
        (_, ChangeFate::Abandoned) => String::new(),
        (TESTS, _) => change.tests.to_owned(),
        _ => change.committed(),
    };
    let is_changed = observed != applied;
    EventKind::EditObservation(EditObservation {
        call_id: call_id(change, kind),
        file_path: path(change, kind),
        applied_text: EditText::new(applied).expect(FITS),
        observed_file_text: EditText::new(observed).expect(FITS),
        external_lines_added: Some(if is_changed { 3 } else { 0 }),
        external_lines_removed: Some(if is_changed { 3 } else { 0 }),
        tool_name: Some(TOOL.to_owned()),
    })
}
