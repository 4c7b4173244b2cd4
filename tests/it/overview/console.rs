//! What the console shows, and where its numbers lead.

use std::collections::BTreeSet;

use harness::server::Server;

use super::week::{Week, WeekCall, dollars};
use super::{EMPTY_SELECTION, SENTENCES, UNKNOWN_REPOSITORY};
use crate::console::{open, signed_in, words};

/// Checks the first page and the page of the spend.
pub(super) fn check(server: &Server, week: &Week) {
    let cookies = signed_in(server);
    let page = |path: &str| {
        let reply = open(server, &cookies, path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text()
    };
    for (days, sentence) in SENTENCES {
        let shown = page(&format!("/console?days={days}"));
        let lead = shown
            .split_once("<p class=\"lead\">")
            .expect("a sentence")
            .1;
        let lead = lead.split("</p>").next().expect("its end");
        assert_eq!(without_elements(lead), sentence);
        let text = words(&shown);
        let totals = week.totals(days);
        let [undecided, unmerged] = [("changes", "accepted"), ("committed", "merged")]
            .map(|(all, part)| totals[all] - totals[part]);
        for expected in [
            format!("{undecided} without a decision"),
            format!("{unmerged} no merge known"),
            format!("What became of {} changes", totals["changes"]),
            "own/app: CI failed at ".to_owned(),
            "which holds pull request 16 (CI); 1 Session is behind it".to_owned(),
            "Session gone: all edits of 1 call were gone before its end".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected}\n{text}");
        }
        let mut numbers = 0;
        for (address, said) in links(&shown) {
            let Some((link, _)) = address.split_once("#sessions") else {
                continue;
            };
            assert!(link.contains(&format!("days={days}")), "{link}");
            let is_of = |call: &WeekCall| selects(week, link, call);
            let count = week.of(days, is_of)["calls"];
            let number = said.split(' ').next().expect("a number");
            assert_eq!(number, count.to_string(), "{link}: {said}");
            let listed = listed(&page(link));
            assert_eq!(listed, week.sessions(days, is_of), "{link}: {said}");
            numbers += 1;
        }
        assert!(numbers > 30, "{numbers} numbers");
        let spend = spend_link(&shown);
        let text = words(&page(&spend));
        let cost = format!("{} at list price", dollars(totals["cost_usd_micros"]));
        assert!(text.contains(&cost), "{spend}: {cost}\n{text}");
    }
    for (filter, said) in [
        ("repo=no/such", UNKNOWN_REPOSITORY),
        ("model=nope", EMPTY_SELECTION),
    ] {
        let shown = page(&format!("/console?{filter}"));
        assert!(shown.contains(said), "{shown}");
        assert!(
            shown.contains("<a href=\"/console\">All calls up to now</a>"),
            "{shown}"
        );
        assert!(!shown.contains("svc demo"), "{shown}");
    }
    spend(&words(&page("/console/spend?days=7")), week);
    let by = page("/console/spend?days=7&by=session");
    let linked: BTreeSet<String> = links(&by)
        .into_iter()
        .filter_map(|(address, _)| {
            let session = address.strip_prefix("/console/session?session_id=")?;
            Some(session.to_owned())
        })
        .collect();
    assert_eq!(linked, week.sessions(7, |_| true));
    let misspelt = open(server, &cookies, "/console?user=ann");
    assert_eq!(misspelt.status, 422, "{}", misspelt.text());
    let unknown = open(server, &cookies, "/console/spend?by=team").text();
    assert!(unknown.contains("must be model, session"), "{unknown}");
}

/// Returns whether the list at an address is of a call.
fn selects(week: &Week, address: &str, call: &WeekCall) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    query.split('&').all(|pair| {
        let (name, value) = pair.split_once('=').expect("a parameter");
        match name {
            "outcome" => week.counts(value, call),
            "model" => call.model == value,
            "repository_id" => value == "7" && week.is_in_repository(call),
            "days" | "repository_provider" | "repository_host" => true,
            _ => panic!("{address}"),
        }
    })
}

/// Returns the addresses that a page links to, each with what stands there.
fn links(page: &str) -> Vec<(String, String)> {
    let links = page.split("<a href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split_once('"'));
    links
        .map(|(address, rest)| {
            let (_, rest) = rest.split_once('>').expect("a link");
            let said = rest.split("</a>").next().expect("its end");
            (address.replace("&amp;", "&"), without_elements(said))
        })
        .collect()
}

/// Returns a text without its elements.
fn without_elements(text: &str) -> String {
    let pieces = text.split('<').enumerate();
    let pieces = pieces.map(|(place, piece)| match piece.split_once('>') {
        Some((_, text)) if place > 0 => text,
        _ => piece,
    });
    pieces.collect()
}

/// Returns the Sessions that a page lists.
fn listed(page: &str) -> BTreeSet<String> {
    let (_, list) = page.split_once("id=\"sessions\"").expect("a list");
    let sessions = links(list).into_iter().filter_map(|(address, _)| {
        let session = address.strip_prefix("/console/session?session_id=")?;
        Some(session.to_owned())
    });
    sessions.collect()
}

/// Returns where the sum of the spend leads.
fn spend_link(page: &str) -> String {
    let (_, rest) = page.split_once("at list price</dt>").expect("the spend");
    links(rest).swap_remove(0).0
}

fn spend(text: &str, week: &Week) {
    let totals = week.totals(7);
    let total = dollars(totals["cost_usd_micros"]);
    let said = format!("{total} at list price; 1 of 13 have no price.");
    assert!(text.contains(&said), "{said}\n{text}");
    for (division, name, said) in [
        ("outcomes", "merged", "merged"),
        ("outcomes", "committed", "committed, no merge known"),
        ("outcomes", "no_commit_evidence", "no evidence of a commit"),
        ("ci", "passed", "CI passed"),
        ("ci", "no_verdict", "no CI verdict"),
    ] {
        let row = week.division(division).find(|row| row.name == name);
        let row = row.expect("a row");
        let calls = row.calls.len();
        let unpriced = row.calls.iter().filter(|of| week.call(**of).cost.is_none());
        let unpriced = match unpriced.count() {
            0 => String::new(),
            unpriced => format!(", {unpriced} not priced"),
        };
        let plural = if calls == 1 { "call" } else { "calls" };
        let said = format!("{said} {} ({calls} {plural}{unpriced})", dollars(row.cost));
        assert!(text.contains(&said), "{said}\n{text}");
    }
    for model in ["m1", "m2", "m3"] {
        let cost = week.of(7, |call| call.model == model)["cost_usd_micros"];
        let said = format!(" {} ", dollars(cost));
        assert!(text.contains(&said), "{model}{said}\n{text}");
    }
}
