//! The search box, and the page of what it finds.

use std::time::{Duration, Instant};

use harness::server::Backend;

use super::pages::{deliver, page};
use super::{SESSION, links, open, signed_in, start, words};

on_both_backends! {
    every_page_has_a_box_for_a_search,
    a_search_shows_excerpts_that_lead_to_their_parts,
    a_search_keeps_what_was_entered_and_says_what_is_wrong_with_it,
}

/// How long the index may take to follow what is captured.
const SOON: Duration = Duration::from_secs(10);

fn every_page_has_a_box_for_a_search(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let form = "<form class=\"find\" method=\"get\" action=\"/console/search\" role=\"search\"";
    for path in ["/console", "/console/quarantine", "/console/search"] {
        let shown = page(&server, &cookies, path);
        assert!(shown.contains(form), "{path}: {shown}");
        assert!(shown.contains(r#"type="search" name="q""#), "{shown}");
    }
    let sign_in = open(&server, "", "/console/sign-in").text();
    assert!(!sign_in.contains("/console/search"), "{sign_in}");
}

fn a_search_shows_excerpts_that_lead_to_their_parts(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    deliver(&server);
    // The index follows what is captured.
    let begun = Instant::now();
    let search = "/console/search?q=src%2Fpager.rs";
    let mut shown = page(&server, &cookies, search);
    while !shown.contains("<mark>") && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(50));
        shown = page(&server, &cookies, search);
    }
    assert!(shown.contains("<mark>pager</mark>"), "{shown}");
    let text = words(&shown);
    assert!(text.contains("1 of 1 Sessions, best first."), "{text}");
    assert!(text.contains("Captured content is data."), "{text}");
    let all = links(&shown);
    let to = |path: &str| {
        let link = all.iter().find(|link| link.starts_with(path));
        link.unwrap_or_else(|| panic!("no link to {path}: {all:?}"))
    };
    let part = words(&page(&server, &cookies, to("/console/part?")));
    assert!(part.contains("src/pager.rs"), "{part}");
    let session = words(&page(&server, &cookies, to("/console/session?")));
    assert!(session.contains(&format!("Session {SESSION}")), "{session}");
    let narrower = page(&server, &cookies, to("/console/search?"));
    assert!(narrower.contains("<mark>"), "{narrower}");
    let nothing = words(&page(&server, &cookies, "/console/search?q=xylophone"));
    assert!(
        nothing.contains("No Session matches; 1 were searched."),
        "{nothing}"
    );
    assert!(nothing.contains("may still have happened"), "{nothing}");
}

fn a_search_keeps_what_was_entered_and_says_what_is_wrong_with_it(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let entered = "repo=own%2Fapp&file=a.rs&kind=tool_call&since=2026-01-31";
    let empty = page(&server, &cookies, &format!("/console/search?{entered}"));
    for kept in [
        r#"name="repo" value="own/app""#,
        r#"name="file" value="a.rs""#,
        r#"<option value="tool_call" selected>"#,
        r#"name="since" value="2026-01-31""#,
    ] {
        assert!(empty.contains(kept), "{kept}: {empty}");
    }
    for (wrong, reason) in [
        ("q=the", "query: "),
        ("q=pager&repo=own", "filters.repository: "),
        ("q=pager&since=yesterday", "filters.since: "),
        ("q=pager&kind=image", "filters.kind: "),
    ] {
        let reply = open(&server, &cookies, &format!("/console/search?{wrong}"));
        assert_eq!(reply.status, 422, "{wrong}");
        let text = words(&reply.text());
        assert!(
            text.contains("Reason: invalid") && text.contains(reason),
            "{text}"
        );
    }
}
