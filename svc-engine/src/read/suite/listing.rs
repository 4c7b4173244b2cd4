//! The list of Sessions.

use std::collections::BTreeSet;

use svc_engine_fact::testing::builders::text;
use svc_engine_fact::{DeveloperDecision, InferenceCall};
use svc_model::facts::AgentHarness;
use svc_model::id::UserId;
use svc_model::limit::SESSION_PAGE_ROWS_MAX;
use svc_model::query::{ModelName, SessionList, SessionPageLimit, SessionSummary, SessionsRequest};

use super::*;

impl Stage {
    fn list(&self, request: &SessionsRequest) -> Result<SessionList, Error> {
        super::super::sessions(
            &mut self.snapshot(),
            &CursorKey::derive(b"a secret"),
            request,
            None,
            None,
        )
    }

    fn listed(&self, request: &SessionsRequest) -> Vec<SessionSummary> {
        let page = self.list(request).unwrap();
        assert_eq!(page.next_cursor, None);
        page.sessions
    }

    fn call(&self, number: u128, session: &str, seconds: i64) {
        self.call_of(call(number).session(session).build(), seconds);
    }

    pub(super) fn call_of(&self, call: InferenceCall, seconds: i64) {
        let encoded = self.store.encode(call, at(seconds));
        self.add([Append::InferenceCall(Box::new(encoded))]);
    }
}

fn ask() -> SessionsRequest {
    SessionsRequest::default()
}

fn names(sessions: &[SessionSummary]) -> Vec<&str> {
    sessions
        .iter()
        .map(|session| session.session_id.as_str())
        .collect()
}

fn limit(limit: u64) -> SessionPageLimit {
    SessionPageLimit::new(limit).unwrap()
}

#[rstest]
fn sessions_keep_their_place_by_first_capture(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    assert_eq!(stage.listed(&ask()), []);
    stage.call(1, "first", 10);
    stage.call(2, "second", 20);
    // Captured in one transaction, which numbers its Sessions by their ids.
    let both = [(3, "a"), (4, "b")].map(|(number, session)| {
        let call = call(number).session(session).build();
        Append::InferenceCall(Box::new(stage.store.encode(call, at(30))))
    });
    stage.add(both);
    // The first Session continues, but keeps its place.
    stage.call(5, "first", 40);
    let sessions = stage.listed(&ask());
    assert_eq!(names(&sessions), ["b", "a", "second", "first"]);
    let first = &sessions[3];
    assert_eq!(
        (first.captured_at, first.inference_calls, &*first.models),
        (at(10), 2, &["m".to_owned()][..])
    );
    assert_eq!(
        (first.first_observed_at, first.last_observed_at),
        (at(1), at(5))
    );
    let between = SessionsRequest {
        captured_after: Some(at(20)),
        captured_before: Some(at(30)),
        ..ask()
    };
    assert_eq!(names(&stage.listed(&between)), ["second"]);
}

/// Sessions of one transaction have one moment, and a cursor names one of them.
#[rstest]
fn paging_shows_each_session_of_one_moment_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.call(1, "before", 10);
    let calls = [(2, "c"), (3, "b"), (4, "d")].map(|(number, session)| {
        let call = call(number).session(session).build();
        Append::InferenceCall(Box::new(stage.store.encode(call, at(20))))
    });
    let decided = DeveloperDecision {
        session_id: SessionId::new("a").unwrap(),
        ..decision(5)
    };
    let decided = Append::DeveloperDecision(Box::new(decided));
    stage.add(calls.into_iter().chain([decided]));
    let pages = |model: Option<&str>| {
        let mut request = SessionsRequest {
            limit: limit(1),
            model: model.map(|model| ModelName::new(model).unwrap()),
            ..ask()
        };
        let mut seen = Vec::new();
        loop {
            let page = stage.list(&request).unwrap();
            seen.extend(names(&page.sessions).into_iter().map(str::to_owned));
            request.cursor = page.next_cursor;
            if request.cursor.is_none() {
                return seen;
            }
        }
    };
    // The Sessions of the calls get their numbers first.
    assert_eq!(pages(None), ["a", "d", "c", "b", "before"]);
    assert_eq!(pages(Some("m")), ["d", "c", "b", "before"]);
}

#[rstest]
fn paging_shows_each_session_once_while_sessions_begin_and_continue(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    for number in 1..=5 {
        let seconds = i64::try_from(number).unwrap();
        stage.call(number, &format!("s{number}"), seconds);
    }
    let mut request = SessionsRequest {
        limit: limit(2),
        ..ask()
    };
    let mut seen = Vec::new();
    for number in 10.. {
        let page = stage.list(&request).unwrap();
        seen.extend(
            page.sessions
                .iter()
                .map(|session| session.session_id.to_string()),
        );
        // Between two pages, one Session continues and another begins.
        stage.call(number, "s3", 100);
        stage.call(number + 100, &format!("new{number}"), 100);
        let Some(cursor) = page.next_cursor else {
            break;
        };
        request.cursor = Some(cursor);
    }
    assert_eq!(seen, ["s5", "s4", "s3", "s2", "s1"]);
}

#[rstest]
fn a_session_is_found_by_its_visible_facts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.call_of(call(1).session("s").user("ann").build(), 1);
    stage.call_of(call(2).session("t").user("bob").build(), 2);
    stage.add([Append::DeveloperDecision(Box::new(DeveloperDecision {
        user_id: UserId::new("eve").ok(),
        agent_harness: AgentHarness::Codex,
        ..decision(3)
    }))]);
    let by_user = |user: &str| SessionsRequest {
        user_id: UserId::new(user).ok(),
        ..ask()
    };
    let by_model = |model: &str| SessionsRequest {
        model: ModelName::new(model),
        ..ask()
    };
    let by_harness = |agent_harness| SessionsRequest {
        agent_harness: Some(agent_harness),
        ..ask()
    };
    let found = |request| {
        let sessions = stage.listed(&request);
        sessions
            .iter()
            .map(|session| session.session_id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(by_user("ann")), ["s"]);
    assert_eq!(found(by_user("eve")), ["s"]);
    assert_eq!(found(by_user("an")), [""; 0]);
    assert_eq!(found(by_model("m")), ["t", "s"]);
    assert_eq!(found(by_harness(AgentHarness::Codex)), ["s"]);
    assert_eq!(found(by_harness(AgentHarness::ClaudeCode)), [""; 0]);
    let both = SessionsRequest {
        model: ModelName::new("m"),
        ..by_user("bob")
    };
    assert_eq!(found(both), ["t"]);
    let sessions = stage.listed(&ask());
    assert_eq!(
        sessions[1].user_ids,
        [UserId::new("ann").unwrap(), UserId::new("eve").unwrap()]
    );
    assert_eq!(sessions[1].agent_harnesses, [AgentHarness::Codex]);

    // Quarantined facts say nothing, and a Session without visible facts is not listed.
    stage.quarantine(FactTable::InferenceCalls, id(1));
    assert_eq!(found(by_user("ann")), [""; 0]);
    assert_eq!(found(by_model("m")), ["t"]);
    let sessions = stage.listed(&by_user("eve"));
    assert_eq!(
        (sessions[0].inference_calls, sessions[0].models.len()),
        (0, 0)
    );
    assert_eq!(sessions[0].user_ids, [UserId::new("eve").unwrap()]);
    stage.quarantine(FactTable::DeveloperDecisions, id(3));
    assert_eq!(found(ask()), ["t"]);
    stage.release(FactTable::InferenceCalls, id(1));
    assert_eq!(found(by_user("ann")), ["s"]);
}

#[rstest]
fn a_session_is_found_by_the_repository_of_its_commits(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (push, at_commit) = delivered(1, Some(7));
    stage.add([pushed(push), observed(at_commit)]);
    let (push, at_commit) = delivered(3, None);
    let renamed = |of: &str| (of.to_owned(), name(of));
    let (repo, as_name) = renamed("own/bare");
    stage.add([
        pushed(Push { repo, ..push }),
        observed(SessionCommitObservation {
            repo: as_name,
            session_id: SessionId::new("t").unwrap(),
            ..at_commit
        }),
    ]);
    // The same name in another lifetime.
    let (push, at_commit) = delivered(5, Some(8));
    stage.add([
        pushed(push),
        observed(SessionCommitObservation {
            session_id: SessionId::new("u").unwrap(),
            ..at_commit
        }),
    ]);
    let of = |repository| {
        stage.list(&SessionsRequest {
            repository,
            ..ask()
        })
    };
    let found = |repository| {
        let sessions = of(repository).unwrap().sessions;
        sessions
            .iter()
            .map(|session| session.session_id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(by_identity(7)), ["s"]);
    assert_eq!(found(by_identity(8)), ["u"]);
    assert_eq!(found(by_identity(9)), [""; 0], "nobody knows it");
    assert_eq!(found(by_name("own/bare")), ["t"]);
    assert_eq!(found(by_name("own/none")), [""; 0]);
    is_declined(
        &of(by_name("own/repo")),
        &Decline::RepositorySelectorAmbiguous,
    );
    assert_eq!(stage.listed(&ask())[1].repositories, [name("own/bare")]);
    // Without its push, it is unknown whose commit it was.
    stage.quarantine(FactTable::Pushes, id(1));
    assert_eq!(found(by_identity(7)), [""; 0]);
}

#[rstest]
fn a_quarantine_or_another_question_invalidates_a_cursor(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.call(1, "s", 1);
    stage.call(2, "t", 2);
    let first = SessionsRequest {
        limit: limit(1),
        ..ask()
    };
    let next = SessionsRequest {
        cursor: stage.list(&first).unwrap().next_cursor,
        ..first
    };
    assert_eq!(names(&stage.listed(&next)), ["s"]);
    let other = SessionsRequest {
        model: ModelName::new("m"),
        ..next.clone()
    };
    is_faulted(&stage.list(&other), QueryFault::SessionCursorMismatch);
    stage.quarantine(FactTable::InferenceCalls, id(2));
    is_faulted(&stage.list(&next), QueryFault::SessionCursorMismatch);
}

#[rstest]
fn a_page_examines_a_bounded_number_of_sessions_and_the_next_continues(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let mut wanted = call(1).session("wanted").user("ann").build();
    wanted.model = Some("rare".to_owned());
    stage.call_of(wanted, 0);
    let many = (2..SESSION_PAGE_ROWS_MAX + 3).map(|number| {
        let call = call(number.into()).session(&format!("s{number}"));
        let call = call
            .user("ann")
            .input(Vec::new())
            .output(Vec::new())
            .build();
        Append::InferenceCall(Box::new(stage.store.encode(call, at(1))))
    });
    stage.add(many);
    let request = SessionsRequest {
        user_id: UserId::new("ann").ok(),
        model: ModelName::new("rare"),
        ..ask()
    };
    let page = stage.list(&request).unwrap();
    assert_eq!(page.sessions, []);
    let next = SessionsRequest {
        cursor: page.next_cursor,
        ..request
    };
    assert!(next.cursor.is_some());
    assert_eq!(names(&stage.listed(&next)), ["wanted"]);
    let pages: BTreeSet<_> = stage
        .list(&ask())
        .unwrap()
        .sessions
        .into_iter()
        .map(|session| session.session_id)
        .collect();
    assert_eq!(pages.len(), 50);
}

/// Returns the titles of all Sessions, by Session.
fn titles(stage: &Stage) -> Vec<(String, Option<String>)> {
    let request = SessionsRequest {
        titles: true,
        ..ask()
    };
    let sessions = stage.listed(&request);
    let titled = sessions
        .into_iter()
        .map(|session| (session.session_id.as_str().to_owned(), session.title));
    titled.collect()
}

#[rstest]
fn a_title_is_what_the_user_asked_first(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let reminder = text("user", "<system-reminder>Be kind</system-reminder>");
    let asked = text("user", &format!("  Fix\nthe {}", "test ".repeat(20)));
    let input = vec![text("system", "You are"), reminder.clone(), asked];
    // Observed first, although it was stored last.
    stage.call_of(call(2).observed(20).input(vec![]).build(), 20);
    stage.call_of(call(1).observed(10).input(input).build(), 21);
    let cut = format!("Fix the {}test…", "test ".repeat(13));
    assert_eq!(titles(&stage), [("s".to_owned(), Some(cut))]);
    assert_eq!(stage.listed(&ask())[0].title, None, "only if asked for");
    // Of a long input only the beginning is looked at, and no message that is too large.
    let late = |tags: usize| {
        let tags = std::iter::repeat_n(reminder.clone(), tags);
        tags.chain([text("user", "late")]).collect()
    };
    stage.call_of(call(3).session("t").input(late(31)).build(), 22);
    stage.call_of(call(4).session("u").input(late(32)).build(), 23);
    let large = vec![text("user", &"x ".repeat(600_000)), text("user", "small")];
    stage.call_of(call(5).session("v").input(large).build(), 24);
    let found = titles(&stage);
    let expected = [("v", Some("small")), ("u", None), ("t", Some("late"))];
    for ((session, title), found) in expected.into_iter().zip(found) {
        assert_eq!(found, (session.to_owned(), title.map(str::to_owned)));
    }
}

#[rstest]
fn quarantined_and_erased_content_gives_no_title(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let asks = |number, words| call(number).input(vec![text("user", words)]);
    stage.call_of(asks(1, "secret").build(), 1);
    stage.call_of(asks(2, "open").build(), 2);
    stage.call_of(asks(3, "erased").session("t").build(), 3);
    let title = |title: Option<&str>| title.map(str::to_owned);
    let of = |session: &str, words| (session.to_owned(), title(words));
    let (s, t) = (of("s", Some("secret")), of("t", Some("erased")));
    assert_eq!(titles(&stage), [t.clone(), s]);
    stage.quarantine(FactTable::InferenceCalls, id(1));
    assert_eq!(titles(&stage), [t.clone(), of("s", Some("open"))]);
    stage.quarantine(FactTable::InferenceCalls, id(2));
    assert_eq!(titles(&stage), [t]);
    stage.erase("t");
    assert_eq!(titles(&stage), [of("t", None)]);
}
