//! What the shell prints, and that what it suggests works.

use harness::process;
use harness::programs;
use harness::server::{OPERATOR_TOKEN, Server};

use super::SENTENCES;
use super::history::NAME;
use super::week::{Week, WeekCall, dollars};
use crate::cli::next::follow;
use crate::cli::{COMMAND_MAX, done, svc};

/// Checks `svc overview` and `svc report spend`.
pub(super) fn check(server: &Server, week: &Week) {
    for (days, sentence) in SENTENCES {
        let shown = done(&svc(server, &["overview", "--days", &days.to_string()]));
        let (said, _) = shown.split_once("\n\n").expect("a sentence");
        let sentence = format!("{sentence} Not priced: 1 of a model that the price table lacks.");
        assert_eq!(words(said), words(&sentence));
        for (name, is_of) in rows(week) {
            let mut figures = week.of(days, is_of);
            let mut count = |name: &str| figures.remove(name).unwrap_or(0);
            let counts = ["calls", "changes", "committed", "merged", "failed"].map(&mut count);
            let unknown = count("no_commit_found") + count("not_observable");
            let cost = match count("cost_usd_micros") {
                0 => "-".to_owned(),
                cost => dollars(cost),
            };
            let counts = counts.map(|count| count.to_string()).join(" ");
            let row = format!("{name} {counts} {unknown} {cost} {}", count("unpriced"));
            assert!(has_line(&shown, &row), "{row}\n{shown}");
        }
    }
    suggestions(server);
    empty_selections(server);
    for outcome in super::week::OUTCOMES {
        let shown = done(&svc(server, &["overview", "--outcome", outcome]));
        for session in week.sessions(7, |_| true) {
            let is_listed = shown.contains(&format!("\n  {session}, "));
            let counts = |call: &WeekCall| call.session == session && week.counts(outcome, call);
            assert_eq!(
                is_listed,
                week.calls.iter().any(counts),
                "{outcome} {session}\n{shown}"
            );
        }
    }
    spend(server, week);
}

type Rows<'w> = Vec<(&'static str, Box<dyn Fn(&WeekCall) -> bool + 'w>)>;

/// Returns the rows by repository and model.
fn rows(week: &Week) -> Rows<'_> {
    let mut rows: Rows<'_> = vec![
        (NAME, Box::new(|call| week.is_in_repository(call))),
        ("(unknown)", Box::new(|call| !week.is_in_repository(call))),
    ];
    for model in ["m1", "m2", "m3", "m9"] {
        rows.push((model, Box::new(move |call| call.model == model)));
    }
    rows
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn has_line(text: &str, line: &str) -> bool {
    let expected = words(line);
    text.lines().any(|line| words(line) == expected)
}

/// Runs what the overview suggests, and what that suggests.
fn suggestions(server: &Server) {
    let shown = done(&svc(server, &["overview"]));
    let lines = shown.lines().filter_map(|line| line.strip_prefix("  svc "));
    let lines: Vec<String> = lines.map(|line| format!("svc {line}")).collect();
    let begins = |with: &str| lines.iter().any(|line| line.starts_with(with));
    for with in [
        "svc commit ",
        "svc session gone",
        "svc overview --outcome failed",
        "svc report spend --by pull-request --since 7 --url http",
        "svc prices check",
    ] {
        assert!(begins(with), "{with}\n{shown}");
    }
    let url = server.base_url();
    let variables = [("SVC_TOKEN", OPERATOR_TOKEN), ("SVC_URL", url.as_str())];
    follow(lines, &programs::search_path(), &variables);
}

/// A selection without calls is told from a service without calls, and from an unknown repository.
fn empty_selections(server: &Server) {
    // The spend report is of all calls up to now.
    for (filter, value) in [("--model", "m1"), ("--as-of", "1h")] {
        let shown = done(&svc(server, &["overview", filter, value]));
        assert!(!shown.contains("svc report spend"), "{shown}");
    }
    let long_ago = done(&svc(server, &["overview", "--as-of", "2020-01-01"]));
    assert!(long_ago.ends_with("\n  svc overview\n"), "{long_ago}");
    for (filter, value, said) in [
        ("--repo", "no/such", super::UNKNOWN_REPOSITORY),
        ("--model", "nope", super::EMPTY_SELECTION),
    ] {
        let shown = done(&svc(server, &["overview", filter, value]));
        let (first, _) = shown.split_once('\n').expect("a sentence");
        assert_eq!(words(first), words(said));
        let next: Vec<&str> = shown
            .lines()
            .filter(|line| line.contains("  svc "))
            .collect();
        let longer = format!("  svc overview --days 31 {filter} {value}");
        assert_eq!(next, [longer.as_str(), "  svc overview"], "{shown}");
    }
}

fn spend(server: &Server, week: &Week) {
    let arguments = ["report", "spend", "--by", "pull-request", "--since", "7"];
    let shown = done(&svc(server, &arguments));
    let (heading, rest) = shown.split_once('\n').expect("a heading");
    assert!(heading.ends_with(", at list price"), "{heading}");
    for row in week.division("pull-request") {
        let name = match row.name {
            "no_commit_evidence" => "no evidence of a commit".to_owned(),
            "shared" => "shared by several".to_owned(),
            "#22" => format!("{NAME} #22"),
            number => format!("{NAME} {number} (merged)"),
        };
        let committed = row.calls.iter().filter(|number| {
            let call = week.call(**number);
            week.counts("committed", call)
        });
        let committed = committed.count();
        let line = format!(
            "{name} {} {committed}",
            cells(week, row.calls.iter().copied())
        );
        assert!(has_line(rest, &line), "{line}\n{shown}");
    }
    let all = cells(week, week.calls.iter().map(|call| call.number));
    let total = format!("total {all} {}", week.totals(7)["committed"]);
    assert!(has_line(rest, &total), "{total}\n{shown}");
    for (division, name, said) in [
        ("outcomes", "merged", "merged"),
        ("outcomes", "committed", "committed, no merge known"),
        ("outcomes", "edits_kept", "edits kept, no commit known"),
        ("outcomes", "edits_deleted", "edits deleted"),
        ("outcomes", "rejected", "edits rejected"),
        (
            "outcomes",
            "session_committed",
            "other calls of Sessions with a commit",
        ),
        ("outcomes", "no_commit_evidence", "no evidence of a commit"),
        ("ci", "passed", "CI passed"),
        ("ci", "failed", "CI failed"),
        ("ci", "no_verdict", "no CI verdict"),
    ] {
        let row = week.division(division).find(|row| row.name == name);
        let calls = row.expect("a row").calls.iter().copied();
        let line = format!("{said} {}", cells(week, calls));
        assert!(has_line(rest, &line), "{line}\n{shown}");
    }
    assert!(
        rest.contains("Derived with litellm table list.json of "),
        "{rest}"
    );
    assert!(rest.contains("Not priced: model_not_in_table 1."), "{rest}");

    // Without a store, it asks the service, which says the same.
    let mut command = server.shell();
    command
        .env_remove("SVC_DATABASE_URL")
        .env_remove("SVC_MIRROR_PATH");
    let asked = process::run(command.args(arguments), b"", COMMAND_MAX).expect("it ends");
    let asked = done(&asked);
    let (_, asked) = asked.split_once('\n').expect("a heading");
    assert_eq!(asked, rest);
}

/// Returns the cells of a figure of these calls.
fn cells(week: &Week, calls: impl Iterator<Item = u32>) -> String {
    let (mut count, mut unpriced) = (0, 0);
    let [mut captured, mut derived, mut total] = [None; 3];
    for number in calls {
        count += 1;
        let Some(cost) = week.call(number).cost else {
            unpriced += 1;
            continue;
        };
        let part = match number {
            super::week::DERIVED => &mut derived,
            _ => &mut captured,
        };
        for sum in [part, &mut total] {
            *sum = Some(sum.unwrap_or(0) + cost);
        }
    }
    let cost = |sum: Option<i64>| sum.map_or_else(|| "-".to_owned(), dollars);
    let [captured, derived, total] = [captured, derived, total].map(cost);
    format!("{count} 0 {captured} {derived} {total} {unpriced}")
}
