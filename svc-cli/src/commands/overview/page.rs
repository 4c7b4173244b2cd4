//! The page of an overview, for a terminal.

use anstyle::{AnsiColor, Style};
use svc_model::id::UserId;
use svc_model::open::Open;
use svc_model::overview::{
    Attention, Overview, OverviewDay, OverviewFigures, OverviewOutcome, OverviewSession,
};
use svc_model::time::Instant;
use svc_view::{Evidence, FlowRow, OutcomeBar, SHELL, bar, flow};

use super::suggestion;
use crate::options::ServiceOptions;
use crate::output::{Table, clock, escape, fill, relative, with_options};

/// The length of the longest bar.
const BAR: u64 = 24;
/// The characters of a title, and of a name in a table.
const TITLE_CHARACTERS: usize = 80;
const NAME_CHARACTERS: usize = 28;
/// The rows of a table by repository or model.
const ROWS_MAX: usize = 8;
/// The entries of what needs a look.
const ATTENTION_MAX: usize = 10;
/// The heights of a bar in a strip.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The place of a day without any.
const NONE: char = '·';

const AGAINST: Style = AnsiColor::Red.on_default();
const UNKNOWN: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();

pub(super) fn render(
    overview: &Overview,
    outcome: Option<OverviewOutcome>,
    service: &ServiceOptions,
    now: Instant,
) -> String {
    let mut text = fill(&escape(&overview.sentence), 0) + "\n";
    if overview.figures.calls > 0 {
        text += &unpriced(overview);
        text += &steps(&overview.figures);
        text += &strip(&overview.days);
        text += &repositories(overview);
        text += &models(overview);
    }
    text += &attention(overview, service, now);
    text + &sessions(overview, outcome, now)
}

/// Says why calls have no cost.
fn unpriced(overview: &Overview) -> String {
    let reasons = SHELL.not_priced(overview);
    match reasons.len() {
        0 => String::new(),
        _ => fill(&format!("Not priced: {}.", reasons.join("; ")), 0) + "\n",
    }
}

fn heading(title: &str) -> String {
    format!("\n{HEADING}{title}{HEADING:#}\n")
}

/// Draws the way of changes: one row for each step, on the scale of all changes.
fn steps(figures: &OverviewFigures) -> String {
    if figures.changes == 0 {
        return String::new();
    }
    let rows = flow(figures);
    let mut lines = vec![heading("what became of changes")];
    lines.extend(rows.iter().map(|row| step(row, figures.changes)));
    let mut parts = rows.iter().flat_map(|row| &row.parts);
    if parts.any(|part| part.evidence == Evidence::Unknown) {
        let legend = "? is unknown, which is no failure";
        lines.push(format!("{:<11}{UNKNOWN}{legend}{UNKNOWN:#}\n", ""));
    }
    lines.concat()
}

fn step(row: &FlowRow, changes: u64) -> String {
    let (drawn, length) = drawn(row, changes);
    let blanks = " ".repeat(usize::try_from(BAR.saturating_sub(length)).unwrap_or(0));
    let said = row.parts.iter();
    let said = said.map(|part| format!("{} {}", SHELL.whole(part.count), part.said));
    let said = SHELL.or_none(said.collect::<Vec<_>>().join(", "));
    format!("{:<11}{drawn}{blanks}  {said}\n", row.name)
}

/// Draws a step, and returns how long it is. A part that is not 0 is seen.
fn drawn(row: &FlowRow, changes: u64) -> (String, u64) {
    let (mut text, mut length) = (Vec::new(), 0);
    for part in &row.parts {
        let cells = (part.count * BAR / changes.max(1)).clamp(1, BAR);
        let mark = match part.evidence {
            Evidence::Reached => "#",
            Evidence::Against => "x",
            Evidence::Unknown => "?",
        };
        let marks = mark.repeat(usize::try_from(cells).unwrap_or(0));
        text.push(match part.evidence {
            Evidence::Reached => marks,
            Evidence::Against => format!("{AGAINST}{marks}{AGAINST:#}"),
            Evidence::Unknown => format!("{UNKNOWN}{marks}{UNKNOWN:#}"),
        });
        length += cells;
    }
    (text.concat(), length)
}

/// Draws a strip with one place for each day.
fn strip(days: &[OverviewDay]) -> String {
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return String::new();
    };
    let [first, last] = [first, last].map(|day| date(day.start));
    let bars: Vec<_> = days.iter().map(|day| bar(&day.figures)).collect();
    let calls = days.iter().map(|day| day.figures.calls);
    let changes_max = bars.iter().map(OutcomeBar::changes).max().unwrap_or(0);
    let calls_max = calls.clone().max().unwrap_or(0);
    let committed = bars.iter().map(|bar| bar.merged + bar.committed);
    let merged = bars.iter().map(|bar| bar.merged);
    let flags = |counts: Vec<u64>, mark: char, style: Style| {
        let marks = counts
            .iter()
            .map(|count| if *count > 0 { mark } else { NONE });
        format!("{style}{}{style:#}", marks.collect::<String>())
    };
    let failed = bars.iter().map(|bar| bar.failed).collect();
    let unknown = bars.iter().map(|bar| bar.unknown).collect();
    let title = format!("days, {first} to {last} (UTC)");
    let rows = [
        ("calls", heights(calls, calls_max)),
        ("committed", heights(committed, changes_max)),
        ("merged", heights(merged, changes_max)),
        ("red now", flags(failed, 'x', AGAINST)),
        ("unknown", flags(unknown, '?', UNKNOWN)),
    ];
    let rows = rows.map(|(name, drawn)| format!("{name:<11}{drawn}\n"));
    heading(&title) + &rows.concat()
}

fn heights(counts: impl Iterator<Item = u64>, max: u64) -> String {
    let steps = HEIGHTS.len() as u64;
    let height = |count: u64| {
        let step = (count * steps).div_ceil(max.max(1)).clamp(1, steps) - 1;
        let step = usize::try_from(step).unwrap_or(0);
        HEIGHTS.get(step).copied().unwrap_or(NONE)
    };
    counts
        .map(|count| if count == 0 { NONE } else { height(count) })
        .collect()
}

fn date(at: Instant) -> String {
    clock(at).chars().take("2026-01-31".len()).collect()
}

fn repositories(overview: &Overview) -> String {
    let rows = overview.repositories.iter();
    let rows = rows.map(|row| (row.repo.as_deref(), &row.figures));
    table("repository", rows.collect())
}

fn models(overview: &Overview) -> String {
    let rows = overview.models.iter();
    let rows = rows.map(|row| (row.model.as_deref(), &row.figures));
    table("model", rows.collect())
}

/// Returns figures by name in a table that fits 100 columns.
fn table(name: &str, rows: Vec<(Option<&str>, &OverviewFigures)>) -> String {
    let headings = [
        name,
        "calls",
        "changes",
        "committed",
        "merged",
        "red",
        "unknown",
        "cost",
        "not priced",
    ];
    let mut table = Table::new(headings).numbers(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let more = rows.len().saturating_sub(ROWS_MAX);
    for (name, figures) in rows.into_iter().take(ROWS_MAX) {
        let name = name.map_or_else(|| "(unknown)".to_owned(), |name| cut(name, NAME_CHARACTERS));
        let bar = bar(figures);
        let counts = [
            figures.calls,
            figures.changes,
            figures.committed,
            figures.merged,
            figures.failed,
            bar.unknown,
            figures.spend.unpriced_items,
        ];
        let [calls, changes, committed, merged, failed, unknown, unpriced] =
            counts.map(|count| SHELL.whole(count));
        let cost = SHELL.spent(&figures.spend);
        table.row([
            name, calls, changes, committed, merged, failed, unknown, cost, unpriced,
        ]);
    }
    let more = match more {
        0 => String::new(),
        more => format!("and {more} more: --json\n"),
    };
    format!("\n{}{more}", table.render())
}

/// Returns an external text, escaped and cut.
fn cut(text: &str, characters: usize) -> String {
    let text = escape(text);
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn attention(overview: &Overview, service: &ServiceOptions, now: Instant) -> String {
    if overview.attention.is_empty() {
        return String::new();
    }
    let mut lines = vec![heading("needs a look")];
    for attention in overview.attention.iter().take(ATTENTION_MAX) {
        let said = SHELL.attention(attention, now);
        lines.push(format!("- {}\n", fill(&said, 2)));
        let command = command(attention);
        let command = command.map(|command| with_options(&command, &service.repeated()));
        lines.extend(command.map(|command| format!("  {command}\n")));
    }
    let cut = overview.attention.len().saturating_sub(ATTENTION_MAX) as u64;
    let more = cut + overview.attention_left_out;
    if more > 0 {
        lines.push(format!("and {} more: --json\n", SHELL.whole(more)));
    }
    lines.concat()
}

/// Returns the command that shows more about what needs a look.
fn command(attention: &Open<Attention>) -> Option<String> {
    Some(match attention.known()? {
        Attention::FailedCommit {
            repo,
            repository_identity,
            commit_sha,
            ..
        } => suggestion::commit(commit_sha, repo, repository_identity.as_ref()),
        Attention::DeletedEdits { session_id, .. } => suggestion::session(session_id),
        Attention::NotesAbsent { .. } | Attention::PushesAbsent { .. } => "svc doctor".to_owned(),
        Attention::SilentSource { .. } => "svc capture".to_owned(),
    })
}

fn sessions(overview: &Overview, outcome: Option<OverviewOutcome>, now: Instant) -> String {
    if overview.sessions.is_empty() {
        return match (outcome, overview.figures.calls) {
            (Some(outcome), 1..) => format!("\nno Session has a call that {outcome} counts\n"),
            _ => String::new(),
        };
    }
    let (shown, all) = (overview.sessions.len() as u64, overview.session_count);
    let (shown, all) = (SHELL.whole(shown), SHELL.whole(all));
    let sessions = overview.sessions.iter().map(|session| entry(session, now));
    let sessions: String = sessions.collect();
    heading(&format!("Sessions, latest first ({shown} of {all})")) + &sessions
}

/// Returns the lines of a Session: what was asked, who and where, and what became of it.
fn entry(session: &OverviewSession, now: Instant) -> String {
    let title = session.title.as_deref().unwrap_or("(no title)");
    let mut place = vec![
        escape(session.session_id.as_str()),
        relative(session.last_observed_at, now),
    ];
    if !session.user_ids.is_empty() {
        let users = SHELL.list(session.user_ids.iter().map(UserId::as_str));
        place.push(format!("by {users}"));
    }
    if !session.repositories.is_empty() {
        let repositories = SHELL.list(session.repositories.iter().map(String::as_str));
        place.push(format!("in {repositories}"));
    }
    let marks = SHELL.marks(session).into_iter().map(|mark| mark.said);
    let marks: Vec<String> = marks.collect();
    let spend = &session.figures.spend;
    let mut became = vec![
        SHELL.or_none(marks.join(", ")),
        format!("tokens {}", SHELL.tokens(spend)),
    ];
    became.push(format!("cost {}", SHELL.cost(spend)));
    format!(
        "{}\n  {}\n  {}\n",
        cut(title, TITLE_CHARACTERS),
        fill(&place.join(", "), 4),
        fill(&became.join("; "), 4)
    )
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use svc_model::json;

    use super::*;

    const SAMPLE: &[u8] = include_bytes!("../../../../svc-model/view/src/overview/sample.json");

    fn sample() -> Overview {
        json::from_slice(SAMPLE).unwrap()
    }

    fn shown(overview: &Overview, outcome: Option<OverviewOutcome>) -> String {
        let now = Instant::parse("2026-01-31T09:30:10Z").unwrap();
        let service = ServiceOptions {
            url: Some("localhost:1".to_owned()),
        };
        strip_str(&render(overview, outcome, &service, now)).to_string()
    }

    #[test]
    fn the_page_says_draws_and_lists_with_the_unknown_as_unknown() {
        let shown = shown(&sample(), None);
        let (sentence, rest) = shown.split_once('\n').unwrap();
        assert!(sentence.starts_with("Last 7 days: 70 calls"), "{sentence}");
        assert_eq!(rest, include_str!("page.txt"), "{rest}");
    }

    #[test]
    fn nothing_is_drawn_where_nothing_was_captured() {
        let mut overview = sample();
        overview.sentence = "No call.".to_owned();
        overview.figures = OverviewFigures::default();
        overview.attention.clear();
        overview.sessions.clear();
        assert_eq!(
            shown(&overview, Some(OverviewOutcome::Failed)),
            "No call.\n"
        );
        overview.figures.calls = 1;
        let shown = shown(&overview, Some(OverviewOutcome::Reverted));
        let end = "\n\nno Session has a call that reverted counts\n";
        assert!(shown.ends_with(end), "{shown}");
    }

    #[test]
    fn a_part_that_is_small_is_seen() {
        let figures = OverviewFigures {
            changes: 1_000,
            committed: 999,
            deleted: 1,
            ..OverviewFigures::default()
        };
        let rows = flow(&figures);
        let (drawn, length) = drawn(&rows[1], figures.changes);
        assert_eq!(
            strip_str(&drawn).to_string(),
            format!("{}x", "#".repeat(23))
        );
        assert_eq!(length, 24);
        assert_eq!(heights([0, 1, 50, 100].into_iter(), 100), "·▁▄█");
    }
}
