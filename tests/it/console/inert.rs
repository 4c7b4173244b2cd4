//! What somebody captured or sent is shown as it is, and has no effect.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use harness::delivery::{Call, Webhook, allowed_edit, ci_outcome, logs, push};
use harness::server::{Backend, Server};
use serde_json::json;

use super::{encoded, links, open, signed_in, start};

on_both_backends! {
    captured_content_is_never_interpreted_as_markup,
    content_is_shown_on_its_own_page_only,
}

/// What a browser must never treat as an element or an attribute. It fits into the name of a
/// repository or a branch.
const HOSTILE: &str = "\"'><svc-x onload=alert(1)><\\svc-x>&quot;&lt;";
/// How it begins when it is shown.
const SHOWN: &str = "&lt;svc-x onload=alert(1)&gt;";

fn hostile(name: &str) -> String {
    format!("{name}{HOSTILE}")
}

/// Stores something hostile in each field that a page shows.
fn plant(server: &Server) {
    let session = hostile("session");
    let messages = vec![
        json!({"role": "user", "content": hostile("content")}),
        json!({"role": "assistant", "content": null, "tool_calls": [{
            "id": hostile("tool-call"), "type": "function",
            "function": {"name": hostile("tool"), "arguments": json!({hostile("name"): hostile("value")}).to_string()},
        }]}),
        json!({"role": "tool", "tool_call_id": hostile("tool-call"), "content": hostile("result")}),
    ];
    let call = Call::new(&session, &hostile("call"))
        .model(&hostile("model"))
        .messages(messages);
    let mut envelope = call.envelope();
    envelope["user_id"] = hostile("user").into();
    envelope["payload"]["custom_llm_provider"] = hostile("provider").into();
    let delivered = server.deliver("/ingest/gateway", envelope.to_string());
    assert_eq!(delivered.status, 200, "{}", delivered.text());

    let mut edit = allowed_edit(&session, &hostile("edit"));
    let arguments = json!({"file_path": format!("/{}", hostile("file"))}).to_string();
    edit[1]["attributes"][2]["value"]["stringValue"] = arguments.into();
    let delivered = server.deliver("/v1/logs", logs(&edit).to_string());
    assert_eq!(delivered.status, 200, "{}", delivered.text());

    let mut outcome = ci_outcome(&hostile("run"));
    for name in ["branch", "workflow_name", "reason", "error_type"] {
        outcome[name] = hostile(name).into();
    }
    outcome["result"] = "failed".into();
    outcome["repo"] = hostile("own/").into();
    let delivered = server.deliver("/ingest/ci", outcome.to_string());
    assert_eq!(delivered.status, 200, "{}", delivered.text());

    let mut pushed = push('b', 'a');
    pushed["ref"] = format!("refs/heads/{}", hostile("branch")).into();
    pushed["repository"]["full_name"] = hostile("own/").into();
    let delivered = server.send(&Webhook::new("push", &pushed).to("/ingest/forge/push"));
    assert_eq!(delivered.status, 200, "{}", delivered.text());
}

/// Opens every page that can be reached from these, and returns the pages by address.
fn every_page(server: &Server, from: &[String]) -> BTreeMap<String, String> {
    let cookies = signed_in(server);
    let mut waiting: VecDeque<String> = from.iter().cloned().collect();
    let mut pages = BTreeMap::new();
    while let Some(address) = waiting.pop_front() {
        if pages.contains_key(&address) {
            continue;
        }
        let page = open(server, &cookies, &address).text();
        // The lists of the overview are on the same page, for each of its numbers.
        let elsewhere = links(&page).into_iter();
        waiting.extend(elsewhere.filter(|link| !link.contains('#')));
        pages.insert(address, page);
        assert!(pages.len() < 200, "the walk ends");
    }
    pages
}

fn captured_content_is_never_interpreted_as_markup(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    plant(&server);
    // What a person enters is shown again in the form, and what cannot be found is not named.
    let entered = encoded(&hostile("entered"));
    let mut from = vec!["/console".to_owned()];
    for path in [
        "/console?model=",
        "/console?user_id=",
        "/console?outcome=failed&repo=",
        "/console?days=",
        "/console/sessions?user_id=",
        "/console/sessions?cursor=",
        "/console/sessions?captured_after=",
        "/console/session?session_id=",
        "/console/calls?session_id=",
        "/console/failures?repo=",
        "/console/failures?repo=a/b&workflow_name=",
        "/console/commit?sha=",
        "/console/models?until=",
        "/console/models?days=",
        "/console/share?margin=",
        "/console/spend?until=",
        "/console/search?q=",
        "/console/search?q=pager&file=",
        "/console/search?q=pager&since=",
        "/console/sign-in?to=",
    ] {
        from.push(format!("{path}{entered}"));
    }
    let repository = encoded(&hostile("own/"));
    from.push(format!(
        "/console/failures?repo={repository}&captured_after=2026-01-01&captured_before=2100-01-01"
    ));
    let pages = every_page(&server, &from);
    for (address, page) in &pages {
        for never in ["<svc-x", "'><", "&quot;><", "<script", "onload=alert(1)>"] {
            assert!(!page.contains(never), "{address}: {never}\n{page}");
        }
        // Outside of addresses, every quote belongs to a pair, which opens and closes an attribute.
        assert_eq!(page.matches('"').count() % 2, 0, "{address}");
    }
    let shows = |path: &str| {
        let is_of = |address: &str| address.split('?').next() == Some(path);
        let mut all = pages.iter().filter(|(address, _)| is_of(address));
        all.any(|(_, page)| page.contains(SHOWN))
    };
    for path in [
        "/console",
        "/console/health",
        "/console/sessions",
        "/console/session",
        "/console/calls",
        "/console/call",
        "/console/part",
        "/console/failures",
        "/console/commit",
        "/console/models",
        "/console/lifecycle",
        "/console/spend",
    ] {
        assert!(shows(path), "{path} shows none of it");
    }
    let parts: Vec<&String> = pages
        .iter()
        .filter(|(address, _)| address.starts_with("/console/part?"))
        .map(|(_, page)| page)
        .collect();
    for field in ["content", "value", "result", "tool"] {
        let shown = format!("{field}&quot;'&gt;{SHOWN}");
        let escaped = format!("{field}\\&quot;'&gt;{SHOWN}");
        let has = |page: &&&String| page.contains(&shown) || page.contains(&escaped);
        assert!(parts.iter().any(|page| has(&page)), "{field}");
    }
}

fn content_is_shown_on_its_own_page_only(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let secret = "a-sentence-that-only-a-part-holds\u{202e}\u{1b}[2J";
    // What the user said first is the title of the Session, in the list.
    let messages = vec![
        json!({"role": "user", "content": "a title"}),
        json!({"role": "user", "content": secret}),
    ];
    let call = Call::new("s", "c").messages(messages);
    server.deliver("/ingest/gateway", call.body());
    let pages = every_page(&server, &["/console".to_owned()]);
    let holding: BTreeSet<&str> = pages
        .iter()
        .filter(|(_, page)| page.contains("a-sentence-that-only-a-part-holds"))
        .filter_map(|(address, _)| address.split('?').next())
        .collect();
    assert_eq!(holding, BTreeSet::from(["/console/part"]));
    let (_, page) = pages
        .iter()
        .find(|(_, page)| page.contains("a-sentence"))
        .expect("a page");
    // What would control a display is spelled out.
    assert!(page.contains("holds\\u{202e}\\u{1b}[2J</pre>"), "{page}");
    // Nothing loads the content before somebody follows a link to it.
    for never in [
        "<iframe",
        "<object",
        "<embed",
        "prefetch",
        "preload",
        "http-equiv",
    ] {
        assert!(pages.values().all(|page| !page.contains(never)), "{never}");
    }
}
