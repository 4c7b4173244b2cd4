//! Facts of log records: what distinguishes them, and their Sessions.

use svc_engine_fact::{DeveloperDecision, EditObservation, EditTexts, RejectedEdit, RetryLinkage};
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::UserId;

use super::*;

#[rstest]
fn a_claude_code_call_has_one_decision_for_any_path(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let sent = |number| DeveloperDecision {
        call_id: Some("c".to_owned()),
        ..decision(number)
    };
    let deliver = |decision| append_one(&store, Append::DeveloperDecision, decision);
    assert_eq!(deliver(sent(1)), Outcome::Stored(id(1)));
    for same in [
        sent(2),
        DeveloperDecision {
            file_path: String::new(),
            ..sent(3)
        },
        DeveloperDecision {
            user_id: Some(UserId::new("u").unwrap()),
            captured_at: at(9),
            commit_sha: Some(commit('d')),
            edit_retention_score: Some(0.5),
            observation_delay_ms: Some(1),
            ..sent(4)
        },
    ] {
        assert_eq!(deliver(same.clone()), Outcome::Known, "{same:?}");
    }
    let other = |number, change: fn(&mut DeveloperDecision)| {
        let mut decision = sent(number);
        change(&mut decision);
        decision
    };
    for other in [
        other(11, |decision| decision.accepted = false),
        other(12, |decision| decision.explicit = false),
        other(13, |decision| {
            decision.interaction_mode = InteractionMode::Inline;
        }),
        other(14, |decision| decision.occurred_at = at(3)),
        other(15, |decision| decision.call_id = Some("d".to_owned())),
        other(16, |decision| decision.call_id = None),
        other(17, |decision| decision.session_id = session("other")),
        other(18, |decision| decision.agent_harness = AgentHarness::Codex),
    ] {
        let expected = Outcome::Stored(other.decision_id);
        assert_eq!(deliver(other.clone()), expected, "{other:?}");
    }
}

#[rstest]
fn other_agents_have_one_decision_per_path_call_and_delay(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let sent = |number| DeveloperDecision {
        agent_harness: AgentHarness::Copilot,
        ..decision(number)
    };
    let deliver = |decision| append_one(&store, Append::DeveloperDecision, decision);
    assert_eq!(deliver(sent(1)), Outcome::Stored(id(1)));
    let same = DeveloperDecision {
        user_id: Some(UserId::new("u").unwrap()),
        edit_retention_score: Some(0.5),
        ..sent(2)
    };
    assert_eq!(deliver(same), Outcome::Known);
    let other = |number, change: fn(&mut DeveloperDecision)| {
        let mut decision = sent(number);
        change(&mut decision);
        decision
    };
    let mut without_delay = other(15, |decision| decision.call_id = Some("c".to_owned()));
    for other in [
        other(11, |decision| decision.file_path = "src/b.rs".to_owned()),
        // A path of the maximum length, which is too long for an index of PostgreSQL.
        other(12, |decision| decision.file_path = long("x")),
        other(13, |decision| decision.file_path = long("y")),
        other(14, |decision| decision.observation_delay_ms = Some(0)),
        without_delay.clone(),
        // Members are kept apart, even if their texts joined together are equal.
        other(16, |decision| {
            decision.call_id = Some("csrc".to_owned());
            decision.file_path = "/a.rs".to_owned();
        }),
    ] {
        let expected = Outcome::Stored(other.decision_id);
        assert_eq!(deliver(other.clone()), expected, "{other:?}");
    }
    without_delay.decision_id = id(20);
    assert_eq!(deliver(without_delay), Outcome::Known);
}

/// Returns a path of 4,096 bytes that does not compress and ends with `end`.
fn long(end: &str) -> String {
    let block = |number: u32| Uuid::new_v5(&Uuid::nil(), &number.to_be_bytes());
    let path: String = (0..128)
        .map(|number| block(number).simple().to_string())
        .collect();
    path[..4_095].to_owned() + end
}

#[rstest]
fn a_decision_with_a_derived_id_is_recognised_by_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let sent = |seconds| DeveloperDecision {
        agent_harness: AgentHarness::Cursor,
        occurred_at: at(seconds),
        ..decision(1)
    };
    let both = vec![sent(1), sent(2)];
    assert_eq!(
        append_all(&store, Append::DeveloperDecision, both),
        [Outcome::Stored(id(1)), Outcome::Known]
    );
    let later = append_one(&store, Append::DeveloperDecision, sent(3));
    assert_eq!(later, Outcome::Known);
}

#[rstest]
fn there_is_one_edit_per_call_and_one_linkage_per_tool_file_and_pair(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let edits = vec![
        edit(1, "c"),
        EditObservation {
            file_path: "other".to_owned(),
            texts: EditTexts {
                applied: Text::from("other"),
                ..edit(2, "c").texts
            },
            ..edit(2, "c")
        },
        edit(3, "d"),
        EditObservation {
            agent_harness: AgentHarness::Pi,
            ..edit(4, "c")
        },
        EditObservation {
            session_id: session("t"),
            ..edit(5, "c")
        },
    ];
    let stored = |number| Outcome::Stored(id(number));
    assert_eq!(
        append_all(&store, Append::EditObservation, edits),
        [stored(1), Outcome::Known, stored(3), stored(4), stored(5)]
    );
    let rejections = vec![
        rejection(1, "c"),
        RejectedEdit {
            proposed: Text::from("other"),
            ..rejection(2, "c")
        },
        rejection(3, "d"),
    ];
    assert_eq!(
        append_all(&store, Append::RejectedEdit, rejections),
        [stored(1), Outcome::Known, stored(3)]
    );
    let linkages = vec![
        linkage(1, "c", "d"),
        RetryLinkage {
            occurred_at: at(7),
            ..linkage(2, "c", "d")
        },
        linkage(3, "d", "c"),
        RetryLinkage {
            tool_name: "Write".to_owned(),
            ..linkage(4, "c", "d")
        },
        RetryLinkage {
            file_path: long("x"),
            ..linkage(5, "c", "d")
        },
    ];
    assert_eq!(
        append_all(&store, Append::RetryLinkage, linkages),
        [stored(1), Outcome::Known, stored(3), stored(4), stored(5)]
    );
}

#[rstest]
fn the_largest_edit_texts_are_read_back(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let repeated = Text::from("let a = 1;\n".repeat(23_831));
    let escaped = Text::from_wtf8(b"\0\xed\xa0\x80".repeat(65_536)).unwrap();
    assert_eq!(escaped.len(), 262_144);
    let sent = EditObservation {
        texts: EditTexts {
            applied: repeated,
            observed_file: escaped,
        },
        ..edit(1, "c")
    };
    append_one(&store, Append::EditObservation, sent.clone());
    let read = store.snapshot_now().fact(id(1)).unwrap();
    assert_eq!(read, Some(sent));
}

#[rstest]
fn an_edit_that_the_file_contains_is_known_without_reading_its_texts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let sent = |number, call_id: &str, applied: &str, file: &str| EditObservation {
        texts: EditTexts {
            applied: Text::from(applied),
            observed_file: Text::from(file),
        },
        ..edit(number, call_id)
    };
    let edits = [
        sent(1, "c", "let a = 1;\n", "fn f() {\nlet a = 1;\n}\n"),
        sent(2, "d", "let a = 1;\n", "fn f() {\nlet a = 2;\n}\n"),
        sent(3, "e", "", ""),
        sent(4, "f", "let a = 1;\n", ""),
    ];
    append_all(&store, Append::EditObservation, edits.to_vec());
    let mut snapshot = store.snapshot_now();
    let mut found = Vec::new();
    snapshot
        .texts_of_edits(&[1, 2, 3, 4].map(id), |observation_id, held| {
            found.push((observation_id, held.clone()));
            Ok(())
        })
        .unwrap();
    found.sort_by_key(|(observation_id, _)| *observation_id);
    let texts = |place: usize| HeldText::Texts(edits[place].texts.clone());
    assert_eq!(
        found,
        [
            (id(1), HeldText::Whole),
            (id(2), texts(1)),
            (id(3), HeldText::Whole),
            (id(4), texts(3)),
        ]
    );
    for edit in edits {
        assert_eq!(snapshot.fact(edit.observation_id).unwrap(), Some(edit));
    }
}

#[rstest]
fn a_log_fact_extends_its_session_by_its_receipt_and_a_redelivery_does_not(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let user = |text: &str| Some(UserId::new(text).unwrap());
    let sent = |number, seconds| EditObservation {
        user_id: user("u"),
        occurred_at: at(1_000),
        captured_at: at(seconds),
        ..edit(number, &number.to_string())
    };
    let session_row = || {
        let mut connection = Connection::open(database.url()).unwrap();
        let sql = "SELECT user_id, user_id_conflict, first_observed_at_us, last_observed_at_us
            FROM sessions WHERE org_id = $1 AND session_id = $2";
        let keys = ["acme".into(), "s".into()];
        connection
            .first(sql, &keys, |row| {
                Ok((
                    row.optional_text(0)?,
                    row.integer(1)?,
                    row.integer(2)?,
                    row.integer(3)?,
                ))
            })
            .unwrap()
    };
    let row = |user_id: Option<&str>, conflict, first, last| {
        let micros = |seconds| at(seconds).microseconds();
        let user_id = user_id.map(str::to_owned);
        Some((user_id, conflict, micros(first), micros(last)))
    };
    let deliver = |fact| append_one(&store, Append::EditObservation, fact);
    deliver(sent(1, 5));
    assert_eq!(session_row(), row(Some("u"), 0, 5, 5));
    deliver(EditObservation {
        captured_at: at(99),
        user_id: user("v"),
        ..sent(1, 5)
    });
    assert_eq!(session_row(), row(Some("u"), 0, 5, 5), "a redelivery");
    let moved = svc_engine_fact::SessionCommitObservation {
        captured_at: at(8),
        ..observation(1, id(1))
    };
    append_one(&store, Append::SessionCommitObservation, moved);
    assert_eq!(session_row(), row(Some("u"), 0, 5, 8));
    append_all(
        &store,
        Append::DeveloperDecision,
        vec![
            DeveloperDecision {
                captured_at: at(2),
                ..decision(1)
            },
            DeveloperDecision {
                user_id: user("v"),
                occurred_at: at(1),
                captured_at: at(6),
                ..decision(2)
            },
        ],
    );
    assert_eq!(session_row(), row(None, 1, 2, 8), "another user");
    assert_eq!(store.snapshot_now().session_count().unwrap(), 1);
}
