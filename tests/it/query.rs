//! Investigating over HTTP: from a failed run to its commit, and from a commit to its Session.
//!
//! What each query answers is tested in the engine. Here it is tested that the routes fit together.

use std::sync::Barrier;
use std::thread;

use harness::http::{Reply, Request};
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server, Store};
use svc_engine::fact::{CiOutcome, InferenceCall, Push, SessionCommitObservation};
use svc_engine::store::{Append, DatabaseUrl, StoreConfig};
use svc_engine::testing::builders::{
    at, call, commit, decision, edit, id, observation, outcome, push, repository,
};
use svc_model::endpoint::{self, Method, Place};
use svc_model::id::OrgId;
use svc_model::ingest::CiResult;
use svc_model::json::{Json, Text};
use svc_model::query::CommitLink;

on_both_backends! {
    a_failure_leads_to_its_session,
    a_session_id_may_hold_slashes,
    each_query_fault_has_its_fixed_text,
    an_odd_value_of_any_query_parameter_is_never_a_server_error,
    servers_of_one_token_read_each_others_cursors,
    sessions_and_commits_take_a_read_slot_and_runs_do_not,
    a_reply_over_its_cap_is_refused,
    a_large_outcome_fits_the_answer_of_every_query,
}

/// The range in which these tests' facts were received.
const RANGE: &str = "captured_after=2026-11-01T00:00:00Z&captured_before=2026-12-01T00:00:00Z";

/// The facts in a store, written alongside the server that serves them.
pub(crate) struct Facts(svc_engine::store::Store);

impl Facts {
    pub(crate) fn of(server: &Server) -> Self {
        let opened = svc_engine::store::Store::open_with_given_moments(&StoreConfig {
            url: DatabaseUrl::parse(server.store().url()).expect("a URL"),
            org_id: OrgId::new("acme").expect("an organization"),
            migrate: false,
            readers: 1,
        });
        Self(opened.expect("a store"))
    }

    pub(crate) fn add(&self, facts: Vec<Append>) {
        self.0.append_now(facts).expect("stored");
    }

    fn call(&self, number: u128, session: &str) -> Append {
        self.encoded(call(number).session(session).build())
    }

    pub(crate) fn encoded(&self, call: InferenceCall) -> Append {
        Append::InferenceCall(Box::new(self.0.encode(call, at(0))))
    }
}

fn failed(number: u128, run: &str) -> Append {
    Append::CiOutcome(Box::new(CiOutcome {
        repository: Some(repository(7)),
        result: CiResult::Failed,
        captured_at: at(60),
        ..outcome(number, run)
    }))
}

/// Returns a push of commit `c` and the observation of a Session at it.
fn delivered(number: u128) -> [Append; 2] {
    let push = Push {
        repository: Some(repository(7)),
        after_sha: commit('c'),
        ..push(number)
    };
    let observation = SessionCommitObservation {
        repository: Some(repository(7)),
        commit_sha: commit('c'),
        ..observation(number + 1, id(number))
    };
    [
        Append::Push(Box::new(push)),
        Append::SessionCommitObservation(Box::new(observation)),
    ]
}

fn text<'a>(value: &'a Json, path: &str) -> &'a str {
    let found = dig(value, path).and_then(Json::as_str);
    found.unwrap_or_else(|| panic!("no text at {path}: {value:?}"))
}

fn a_failure_leads_to_its_session(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let facts = Facts::of(&server);
    let mut all = vec![
        facts.call(1, "s"),
        Append::DeveloperDecision(Box::new(decision(2))),
        Append::EditObservation(Box::new(edit(3, "t"))),
        failed(20, "run-1"),
    ];
    all.extend(delivered(10));
    facts.add(all);

    let failures = server.read_json(&format!("/query/ci/failures?repo=own/repo&{RANGE}"));
    let link = text(&failures, "outcomes.0.commit_query");
    assert!(
        link.contains("repository_id=7&as_of=2026-12-01T00%3A00%3A00%2B00%3A00"),
        "{link}"
    );
    let evidence = server.read_json(link);
    assert_eq!(dig(&evidence, "attributed"), Some(&Json::Bool(true)));
    let session = text(&evidence, "repos.0.observed_sessions.0.session_id");
    let dossier = server.read(&format!("/query/session/{session}"));
    assert_eq!(dossier.status, 200, "{}", dossier.text());
    let found = dossier.json();
    assert_eq!(text(&found, "pushes.0.match_kind"), "after_sha");
    assert_eq!(text(&found, "ci_outcomes.0.run_id"), "run-1");
    assert_eq!(text(&found, "timeline.0.event_type"), "developer_decision");
    // No content, users, paths or free text of the sender.
    for private in [
        "ask", "answer", "src/a.rs", "let a", "user_id", "reason", "null",
    ] {
        assert!(
            !dossier.text().contains(private),
            "{private}: {}",
            dossier.text()
        );
    }
    let run = server.read_json("/query/ci/outcome?provider=other&run_id=run-1");
    let link = CommitLink::clone(
        &svc_model::json::from_value(dig(&run, "outcome.commit_query").expect("a link").clone())
            .expect("a link"),
    );
    let asked = link.request().expect("a link of this version");
    assert_eq!(asked.as_of, Some(at(60)), "the latest fact of a repository");
}

fn a_session_id_may_hold_slashes(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let facts = Facts::of(&server);
    facts.add(vec![facts.call(1, "team/a b/7")]);
    let found = server.read_json("/query/session/team%2Fa%20b%2F7");
    assert_eq!(text(&found, "session_id"), "team/a b/7");
    let trimmed = server.read_json("/query/session/%20team%2Fa%20b%2F7%20");
    assert_eq!(text(&trimmed, "session_id"), "team/a b/7");
    assert_eq!(server.read("/query/session/team/a%20b/7").status, 404);
    let unknown = server.read("/query/session/team%2Fa");
    assert_eq!(
        (unknown.status, unknown.text().as_str()),
        (200, r#"{"found":false}"#)
    );
    assert_eq!(server.read("/query/session/%20").status, 422);
    assert_eq!(server.read("/query/session/a%00b").status, 422);
}

fn each_query_fault_has_its_fixed_text(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    Facts::of(&server).add(vec![failed(1, "a"), failed(2, "b")]);
    let failures = format!("/query/ci/failures?{RANGE}");
    let page = server.read_json(&format!("{failures}&repo=own/repo&limit=1"));
    let cursor = text(&page, "next_cursor");
    let sha = "c".repeat(40);
    let other = "repository_provider=github&repository_host=github.com&repository_id=8";
    for (path, expected) in [
        (
            "/query/commit/abc".to_owned(),
            "must be a full-length commit sha (40 or 64 hex chars)",
        ),
        (
            "/query/ci/failures?repo=a/b&captured_after=2026-11-01T01:00:00%2B01:00&\
             captured_before=2026-11-01T00:00:00Z"
                .to_owned(),
            "captured_after must precede captured_before",
        ),
        (
            format!("/query/commit/{sha}?repository_id=7"),
            "repository identity requires all three components",
        ),
        (
            failures.clone(),
            "CI summaries require a repository selector",
        ),
        (
            format!(
                "{failures}&repo=own/other&repository_provider=github&\
                 repository_host=github.com&repository_id=7"
            ),
            "repository selector conflicts with declared evidence",
        ),
        (
            format!("{failures}&repo=own/repo&cursor="),
            "invalid CI outcome cursor",
        ),
        (
            format!("{failures}&repo=own/repo&cursor={cursor}x"),
            "invalid CI outcome cursor",
        ),
        (
            format!("{failures}&repo=own/repo&result=error&cursor={cursor}"),
            "CI outcome cursor doesn't match filters",
        ),
        (
            format!("{failures}&{other}&cursor={cursor}"),
            "CI outcome cursor doesn't match filters",
        ),
    ] {
        let reply = server.read(&path);
        assert_eq!(
            (reply.status, reply.text()),
            (422, format!(r#"{{"detail":"{expected}"}}"#)),
            "{path}"
        );
    }
    // The size of a page, and how the same moments and the same repository are written, are not
    // part of the question.
    let same = "captured_after=2026-11-01T02:00:00%2B02:00&captured_before=2026-12-01%2000:00Z&\
                repository_provider=github&repository_host=GitHub.com&repository_id=7&limit=9";
    let rest = server.read_json(&format!("/query/ci/failures?{same}&cursor={cursor}"));
    assert_eq!(text(&rest, "outcomes.0.run_id"), "a");
    assert_eq!(dig(&rest, "next_cursor"), Some(&Json::Null));
}

fn an_odd_value_of_any_query_parameter_is_never_a_server_error(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    Facts::of(&server).add(vec![failed(1, "a")]);
    let long = "x".repeat(3_000);
    let odd = [
        "",
        "%20",
        "%00",
        "%ff",
        "%ED%A0%80",
        "a%2Fb",
        "-1",
        "0",
        "18446744073709551616",
        "1e9",
        "2026-11-05T00:00:00Z",
        "0001-01-01T00:00:00%2B23:59",
        "9999-12-31T23:59:59-12:00",
        "github",
        "failed",
        "%F0%9F%98%80/%F0%9F%98%80",
        &long,
    ];
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    for endpoint in endpoint::all() {
        let is_query = [
            "/query/ci/",
            "/query/session/",
            "/query/commit/",
            "/v1/reports/",
        ]
        .iter()
        .any(|prefix| endpoint.path.starts_with(prefix));
        if !is_query {
            continue;
        }
        assert_eq!(endpoint.method, Method::Get);
        for parameter in endpoint.parameters {
            for value in odd {
                let valid = |name: &str| match name {
                    "provider" => "other",
                    "session_id" | "run_id" => "a",
                    "sha" => "cccccccccccccccccccccccccccccccccccccccc",
                    "captured_after" | "cohort_start" => "2026-11-01T00:00:00Z",
                    "captured_before" | "cohort_end" | "as_of" => "2026-12-01T00:00:00Z",
                    "repo" => "own/repo",
                    _ => "",
                };
                let mut path = endpoint.path.to_owned();
                let mut query = Vec::new();
                for other in endpoint.parameters {
                    let value = if other == parameter {
                        value
                    } else {
                        valid(other.name)
                    };
                    if other.place == Place::Path {
                        path = path.replace(&format!("{{{}}}", other.name), value);
                    } else if other == parameter || !value.is_empty() {
                        query.push(format!("{}={value}", other.name));
                    }
                }
                let path = format!("{path}?{}", query.join("&"));
                let reply = server
                    .try_send(&Request::get(&path).bearer(OPERATOR_TOKEN))
                    .expect("an answer");
                // Without a segment, or with two, it is a different path.
                let other_path =
                    parameter.place == Place::Path && (value.is_empty() || value.contains('/'));
                assert!(
                    matches!(reply.status, 200 | 422) || (other_path && reply.status == 404),
                    "{path}: {} {}",
                    reply.status,
                    reply.text()
                );
                if value.len() > 9 && value != "2026-11-05T00:00:00Z" && reply.status == 422 {
                    assert!(
                        !reply.text().contains(value),
                        "the input is repeated: {path}"
                    );
                }
                *statuses.entry(reply.status).or_default() += 1;
            }
        }
    }
    assert!(statuses[&200] > 20 && statuses[&422] > 100, "{statuses:?}");
}

fn servers_of_one_token_read_each_others_cursors(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let first = Server::start_on(&store, &Configuration::default());
    Facts::of(&first).add(vec![failed(1, "a"), failed(2, "b")]);
    let path = format!("/query/ci/failures?repo=own/repo&{RANGE}&limit=1");
    let page = first.read_json(&path);
    let next = format!("{path}&cursor={}", text(&page, "next_cursor"));
    let second = Server::start_on(&store, &Configuration::default());
    assert_eq!(second.read_json(&next), first.read_json(&next));

    let token = "9999999999999999999999999999999eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_OPERATOR_TOKEN".into(), token.into());
    let foreign = Server::start_on(&store, &configuration);
    let reply = foreign.send(&Request::get(&next).bearer(token));
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (422, r#"{"detail":"invalid CI outcome cursor"}"#)
    );
}

/// The number of clients that ask at the same moment.
const CLIENTS: usize = 12;

fn at_once(server: &Server, path: &str) -> Vec<Reply> {
    let barrier = Barrier::new(CLIENTS);
    let request = Request::get(path).header("prefer", "wait=0");
    let request = request.bearer(OPERATOR_TOKEN);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    server.send(&request)
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .collect()
    })
}

fn sessions_and_commits_take_a_read_slot_and_runs_do_not(backend: Backend) {
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_READ_SLOTS".into(), "1".into());
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let facts = Facts::of(&server);
    // The more there is to read, the longer a slot is held.
    let mut all: Vec<Append> = (1_000..1_490)
        .map(|number| facts.call(number, "s"))
        .collect();
    all.extend((2_000..2_400).map(|number| failed(number, &format!("run-{number}"))));
    all.extend(delivered(10));
    facts.add(all);
    let sha = commit('c');
    for path in [
        "/query/session/s".to_owned(),
        format!("/query/commit/{sha}"),
    ] {
        let replies = at_once(&server, &path);
        let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 503).collect();
        let answered = replies.iter().filter(|reply| reply.status == 200).count();
        assert_eq!(answered + refused.len(), CLIENTS, "{path}");
        assert!(answered >= 1, "{path}: no read got the slot");
        assert!(
            !refused.is_empty(),
            "{path}: {CLIENTS} reads shared one slot"
        );
        for reply in refused {
            assert_eq!(reply.text(), r#"{"detail":"work capacity exceeded"}"#);
        }
        assert_eq!(server.read(&path).status, 200, "the slot is not freed");
    }
    for path in [
        "/query/ci/outcome?provider=other&run_id=run-2000".to_owned(),
        format!("/query/ci/failures?repo=own/repo&limit=100&{RANGE}"),
    ] {
        let replies = at_once(&server, &path);
        assert!(replies.iter().all(|reply| reply.status == 200), "{path}");
    }
}

fn a_reply_over_its_cap_is_refused(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    // Each of these characters is two bytes in the store and six in a reply.
    let reason = "\u{e9}".repeat(4_096);
    let outcomes = |numbers: std::ops::Range<u128>| {
        let outcome = |number| CiOutcome {
            reason: Some(Text::from(reason.as_str())),
            captured_at: at(60),
            ..outcome(number, &format!("run-{number}"))
        };
        numbers
            .map(|number| Append::CiOutcome(Box::new(outcome(number))))
            .collect()
    };
    let facts = Facts::of(&server);
    facts.add(outcomes(1..2_600));
    let path = format!("/query/commit/{}", commit('c'));
    let whole = server.read(&path);
    assert_eq!(whole.status, 200, "{:.200}", whole.text());
    assert!(whole.body.len() > 60 * 1024 * 1024, "{}", whole.body.len());
    facts.add(outcomes(2_600..2_800));
    let reply = server.read(&path);
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (409, r#"{"detail":"response exceeds the fixed limit"}"#)
    );
}

fn a_large_outcome_fits_the_answer_of_every_query(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let large = CiOutcome {
        run_url: Some(Text::from("x".repeat(1_200_000).as_str())),
        result: CiResult::Failed,
        captured_at: at(60),
        ..outcome(1, "run-1")
    };
    Facts::of(&server).add(vec![Append::CiOutcome(Box::new(large))]);
    for path in [
        "/query/ci/outcome?provider=other&run_id=run-1".to_owned(),
        format!("/query/ci/failures?{RANGE}&repo=own/repo"),
        format!("/query/commit/{}", commit('c')),
    ] {
        let reply = server.read(&path);
        assert_eq!(reply.status, 200, "{path}: {:.200}", reply.text());
        assert!(reply.body.len() > 1_200_000, "{path}");
    }
}

#[test]
fn both_backends_answer_the_queries_with_equal_bytes() {
    let Some(postgres) = Server::start(Backend::Postgres, &Configuration::default()) else {
        return;
    };
    let sqlite =
        Server::start(Backend::Sqlite, &Configuration::default()).expect("SQLite is never skipped");
    for server in [&sqlite, &postgres] {
        let facts = Facts::of(server);
        let mut all = vec![
            facts.call(1, "s"),
            Append::DeveloperDecision(Box::new(decision(2))),
            Append::EditObservation(Box::new(edit(3, "t"))),
        ];
        // Names and branches whose order by bytes is not a linguistic order.
        for (number, name) in (0_u128..).zip(["a/_", "a/B", "a/\u{e9}", "a/b-1", "a/b"]) {
            all.push(Append::CiOutcome(Box::new(CiOutcome {
                repo: name.to_lowercase(),
                repository: None,
                result: CiResult::Failed,
                workflow_name: Text::from_wtf8(b"\xed\xa0\x80\0\xc3\xa9".to_vec()).expect("text"),
                captured_at: at(60),
                ..outcome(100 + number, &format!("run-{number}"))
            })));
        }
        all.extend((200..230).map(|number| failed(number, &format!("own-{number}"))));
        all.extend(delivered(10));
        facts.add(all);
    }
    let sha = commit('c');
    let as_of = "as_of=2026-11-02T00:00:00Z";
    let mut paths: Vec<String> = (0..5)
        .map(|run| format!("/query/ci/outcome?provider=other&run_id=run-{run}"))
        .collect();
    paths.extend([
        format!("/query/commit/{sha}?{as_of}"),
        format!("/query/commit/{sha}?{as_of}&repo=own/repo"),
        format!("/query/commit/{sha}?{as_of}&repo=a/%C3%A9"),
        format!("/query/ci/failures?{RANGE}&repo=own/repo"),
        format!("/query/ci/failures?{RANGE}&repo=own/repo&limit=7"),
        "/query/session/s".to_owned(),
    ]);
    for path in paths {
        let (first, second) = (sqlite.read(&path), postgres.read(&path));
        assert_eq!(first.status, 200, "{path}: {}", first.text());
        // The links in a dossier contain the moment of the request.
        assert_eq!(without_moments(&first), without_moments(&second), "{path}");
    }
}

fn without_moments(reply: &Reply) -> String {
    let text = reply.text();
    let mut pieces = text.split("&as_of=");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(piece.split_once('"').map_or("", |(_, rest)| rest));
    }
    out
}
