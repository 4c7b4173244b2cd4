//! What happened in a Session, event by event.

use svc_model::open::Open;
use svc_model::query::TimelineEvent;
use svc_view::SHELL;

use crate::output::{ShortIds, Table, clock, escape, later, time_of_day};

/// The minimum number of characters that a fact's id is shortened to. Ids from the same moment
/// share a prefix, so they keep a random part too: a printed id identifies one fact of the store.
const FACT_CHARACTERS: usize = 8;
const TIMED_FACT_CHARACTERS: usize = 18;

/// Returns the minimum length for shortened ids.
fn least_characters(ids: &[String]) -> usize {
    // The version of UUIDs that begin with a timestamp.
    let is_timed = |id: &String| id.as_bytes().get(14) == Some(&b'7');
    if ids.iter().any(is_timed) {
        TIMED_FACT_CHARACTERS
    } else {
        FACT_CHARACTERS
    }
}

/// Returns the last events, if there are any.
pub(super) fn render(events: &[Open<TimelineEvent>], tail: usize) -> Option<String> {
    let shown = &events[events.len().saturating_sub(tail)..];
    if shown.is_empty() {
        return None;
    }
    let ids = shown.iter().filter_map(Open::known);
    let ids: Vec<String> = ids.map(|id| id.fact_id().to_string()).collect();
    let facts = ShortIds::of(least_characters(&ids), &ids);
    let mut table = Table::new(["time (UTC)", "", "event", "from", "what", "file", "fact"]);
    let mut before = None;
    for event in shown {
        let Open::Known(event) = event else {
            let kind = escape(event.as_str()).replace('_', " ");
            let row = ["-", "", &kind, "-", "known to a newer svc", "-", "-"];
            table.row(row.map(str::to_owned));
            continue;
        };
        let (from, what) = SHELL.describe(event);
        let at = event.occurred_at();
        // Only the first event of a date shows it.
        let time = before.map_or_else(|| clock(at), |before| time_of_day(before, at));
        let gap = before.and_then(|before| later(before, at));
        table.row([
            time,
            gap.map_or_else(String::new, |length| format!("{length} later")),
            event.event_type().replace('_', " "),
            from,
            what,
            event.file_path().map_or_else(|| "-".to_owned(), escape),
            facts.short(&event.fact_id().to_string()),
        ]);
        before = Some(at);
    }
    let mut text = table.render();
    if shown.len() < events.len() {
        text = format!(
            "the last {} of {} events (--all for all)\n{text}",
            shown.len(),
            events.len()
        );
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    #[test]
    fn events_are_shown_with_their_times_and_the_gaps_between_them() {
        let event = |at: &str, id: &str| {
            format!(
                r#"{{"event_type":"rejected_edit","fact_id":"{id}","occurred_at":"{at}",
                "agent_harness":"pi","has_file_path":true,"file_path":"src/a\u001b.rs","call_id":"t"}}"#
            )
        };
        let events = format!(
            "[{},{},{},{}]",
            event(
                "2026-01-01T23:58:30Z",
                "0192f6c4-0000-7abc-8000-000000000001"
            ),
            event(
                "2026-01-01T23:58:30.5Z",
                "0192f6c4-0000-7abd-8000-000000000002"
            ),
            event(
                "2026-01-01T23:59:30.5Z",
                "0192f6c4-0000-7abe-8000-000000000003"
            ),
            event(
                "2026-01-02T02:00:00Z",
                "0192f6c4-0000-7abf-8000-000000000004"
            ),
        );
        let events: Vec<Open<TimelineEvent>> = json::from_slice(events.as_bytes()).unwrap();
        assert_eq!(
            render(&events, 20).unwrap(),
            "time (UTC)                           event          from  what  file            fact\n\
             2026-01-01 23:58:30                  rejected edit  pi    t     src/a\\u{1b}.rs  0192f6c4-0000-7abc…\n\
             23:58:30                             rejected edit  pi    t     src/a\\u{1b}.rs  0192f6c4-0000-7abd…\n\
             23:59:30             1 minute later  rejected edit  pi    t     src/a\\u{1b}.rs  0192f6c4-0000-7abe…\n\
             2026-01-02 02:00:00  2 hours later   rejected edit  pi    t     src/a\\u{1b}.rs  0192f6c4-0000-7abf…\n"
        );
        let last = render(&events, 1).unwrap();
        assert!(
            last.starts_with("the last 1 of 4 events (--all for all)\ntime (UTC)"),
            "{last}"
        );
        assert_eq!(render(&[], 1), None);
    }
}
