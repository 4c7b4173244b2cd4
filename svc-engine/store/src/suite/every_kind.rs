//! What holds for every kind of fact that is one row.

use svc_model::facts::SessionFactTables;

use super::*;

/// A kind of fact: its table, a fact with a given number as its id, whether a fact can be read, and
/// whether answers name a retained fact of the kind.
struct KindOfFact {
    table: FactTable,
    fact: fn(u128) -> Append,
    is_read: fn(&mut Snapshot<'_>, FactId) -> bool,
    is_named: bool,
}

/// Declares the kinds of fact that are one row: their table, how to make a fact, and whether
/// answers name it.
macro_rules! kinds {
    ($($kind:ident in $table:ident: $make:expr, named $is_named:literal;)+) => {
        fn kinds() -> Vec<KindOfFact> {
            vec![$(KindOfFact {
                table: FactTable::$table,
                fact: |number| {
                    let make: fn(u128) -> svc_engine_fact::$kind = $make;
                    Append::$kind(Box::new(make(number)))
                },
                is_read: |snapshot, fact_id| {
                    let fact: Option<svc_engine_fact::$kind> = snapshot.fact(fact_id).unwrap();
                    fact.is_some()
                },
                is_named: $is_named,
            }),+]
        }
    };
}

kinds! {
    DeveloperDecision in DeveloperDecisions: decision, named false;
    EditObservation in EditObservations: |number| edit(number, "c"), named false;
    RejectedEdit in RejectedEdits: |number| rejection(number, "c"), named false;
    RetryLinkage in RetryLinkages: |number| linkage(number, "c", "d"), named false;
    // The id is derived, so a redelivery has the same: 1 and 2 are one receipt.
    UsageReceipt in UsageReceipts: |number| usage(number - (number + 1) % 2), named false;
    Push in Pushes: push, named true;
    PullRequestRevision in PullRequestRevisions: revision, named true;
    PullRequestMerge in PullRequestMerges: merge, named true;
    RepositoryRename in RepositoryRenames: |number| svc_engine_fact::RepositoryRename {
        source_event_id: Some("e".to_owned()),
        ..rename(number, repository(7))
    }, named true;
    CiOutcome in CiOutcomes: |number| outcome(number, "r"), named true;
    SessionCommitObservation in SessionCommitObservations:
        |number| observation(number, id(1)), named false;
}

#[test]
fn every_kind_has_the_table_of_its_name() {
    for kind in FactTable::ALL {
        assert_eq!(kind::table(*kind).name, kind.as_str());
    }
}

/// A payload of a Session that is not listed as content would survive an erasure.
#[test]
fn what_a_description_lists_are_columns_of_its_table() {
    for table in kind::tables() {
        let is_column = |column: &&str| table.insert.into.contains(column);
        assert!(table.content.iter().all(is_column));
        let has_payload = table.is_of_session() && table.has("raw");
        assert!(!has_payload || table.content.contains(&"raw"));
        assert!(table.event.is_none() || table.is_of_session());
    }
    for kind in SessionFactTables::KINDS {
        assert!(kind::table(*kind).is_of_session(), "{kind}");
    }
}

#[test]
fn the_suite_covers_every_kind_of_fact() {
    let mut tables: Vec<FactTable> = kinds().iter().map(|kind| kind.table).collect();
    tables.push(FactTable::InferenceCalls);
    tables.sort_unstable();
    let mut all = FactTable::ALL.to_vec();
    all.sort_unstable();
    assert_eq!(tables, all);
    assert!(
        kinds()
            .iter()
            .all(|kind| (kind.fact)(1).table() == kind.table)
    );
}

#[rstest]
fn a_fact_is_stored_once_and_a_redelivery_is_recognised(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for kind in kinds() {
        let deliver = |number| store.append_now(vec![(kind.fact)(number)]).unwrap();
        let again = if kind.is_named {
            Outcome::Redelivered(id(1))
        } else {
            Outcome::Known
        };
        assert_eq!(deliver(1), [Outcome::Stored(id(1))], "{}", kind.table);
        assert_eq!(deliver(2), [again], "{}", kind.table);
        let total = count(&store, kind.table);
        assert_eq!(
            total,
            FactCount {
                total: 1,
                visible: 1
            },
            "{}",
            kind.table
        );

        let two = database.open("other");
        let in_one_delivery = vec![(kind.fact)(3), (kind.fact)(4)];
        let again = match again {
            Outcome::Redelivered(_) => Outcome::Redelivered(id(3)),
            other => other,
        };
        assert_eq!(
            two.append_now(in_one_delivery).unwrap(),
            [Outcome::Stored(id(3)), again],
            "{}: another organization has facts of its own",
            kind.table
        );
    }
}

#[rstest]
fn quarantine_hides_a_fact_of_any_kind_and_a_redelivery_does_not_show_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for kind in kinds() {
        store.append_now(vec![(kind.fact)(1)]).unwrap();
        let expect = |visible| {
            let counted = count(&store, kind.table);
            assert_eq!(counted, FactCount { total: 1, visible }, "{}", kind.table);
            let read = (kind.is_read)(&mut store.snapshot_now(), id(1));
            assert_eq!(read, visible == 1, "{}", kind.table);
        };
        expect(1);
        set(&database, kind.table, id(1), QuarantineAction::Quarantine);
        expect(0);
        let again = store.append_now(vec![(kind.fact)(2)]).unwrap();
        assert!(!matches!(again[0], Outcome::Stored(_)), "{}", kind.table);
        expect(0);
        set(&database, kind.table, id(1), QuarantineAction::Release);
        expect(1);
    }
}

#[rstest]
fn a_delivery_of_all_kinds_is_one_transaction_with_answers_in_order(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut facts: Vec<Append> = kinds().iter().rev().map(|kind| (kind.fact)(1)).collect();
    facts.insert(
        3,
        Append::InferenceCall(Box::new(store.encode(call(2).build(), at(0)))),
    );
    let tables: Vec<FactTable> = facts.iter().map(Append::table).collect();
    let outcomes = store.append_now(facts).unwrap();
    for (table, outcome) in tables.iter().zip(&outcomes) {
        let expected = if *table == FactTable::InferenceCalls {
            2
        } else {
            1
        };
        assert_eq!(*outcome, Outcome::Stored(id(expected)), "{table}");
        assert_eq!(count(&store, *table).total, 1, "{table}");
    }
    assert_eq!(outcomes.len(), FactTable::ALL.len());
}

/// Law: what is read equals what was stored, on either backend.
#[test]
fn facts_of_every_kind_are_read_back_unchanged() {
    let databases: Vec<TestStore> = [Backend::Sqlite, Backend::Postgres]
        .into_iter()
        .filter_map(TestStore::create)
        .collect();
    let stores: Vec<Store> = databases
        .iter()
        .map(|database| database.open("acme"))
        .collect();
    let next = std::cell::Cell::new(1_u128);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&any_members(), |members| {
            let number = next.replace(next.get() + 1);
            for store in &stores {
                members.check(store, number)?;
            }
            Ok(())
        })
        .unwrap();
}

/// The members that the facts of the law are made from.
#[derive(Clone, Debug)]
struct Members {
    texts: [Text; 3],
    optional_text: Option<Text>,
    string: String,
    optional_string: Option<String>,
    integer: Option<i64>,
    score: Option<f64>,
    truth: bool,
    identity: Option<u32>,
    raw: Json,
}

fn any_members() -> impl Strategy<Value = Members> {
    let string = || "[a-zé\u{1f980}\"' ]{1,20}";
    let raw = prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"a":[NaN,-Infinity,1.10,-0,1e400],"\ud800":"\u0000"}"#.to_owned()),
        "[a-z]{1500,3000}".prop_map(|long| format!("{{\"long\":\"{long}\"}}")),
    ];
    (
        [any_text(), any_text(), any_text()],
        proptest::option::of(any_text()),
        string(),
        proptest::option::of(string()),
        proptest::option::of(1..=i64::MAX),
        proptest::option::of(0.0..=1.0),
        any::<bool>(),
        proptest::option::of(1..1_000_u32),
        raw,
    )
        .prop_map(
            |(
                texts,
                optional_text,
                string,
                optional_string,
                integer,
                score,
                truth,
                identity,
                raw,
            )| {
                Members {
                    texts,
                    optional_text,
                    string,
                    optional_string,
                    integer,
                    score,
                    truth,
                    identity,
                    raw: Json::parse(raw.as_bytes()).unwrap(),
                }
            },
        )
}

impl Members {
    fn check(&self, store: &Store, number: u128) -> Result<(), TestCaseError> {
        let [first, second, third] = self.texts.clone();
        let identity = self.identity.map(repository);
        let session_id = session(&format!("s-{number}"));
        let numbered = |text: &str| format!("{number} {text}");
        macro_rules! comes_back {
            ($kind:path, $fact:expr) => {{
                let fact = $fact;
                let outcome = append_one(store, $kind, fact.clone());
                prop_assert_eq!(outcome, Outcome::Stored(id(number)));
                let read = store.snapshot_now().fact(id(number)).unwrap();
                prop_assert_eq!(read, Some(fact));
            }};
        }
        comes_back!(
            Append::DeveloperDecision,
            svc_engine_fact::DeveloperDecision {
                session_id: session_id.clone(),
                file_path: self.string.clone(),
                accepted: self.truth,
                commit_sha: self.truth.then(|| commit('e')),
                call_id: self.optional_string.clone(),
                edit_retention_score: self.score,
                observation_delay_ms: self.integer,
                raw: self.raw.clone(),
                ..decision(number)
            }
        );
        comes_back!(
            Append::EditObservation,
            svc_engine_fact::EditObservation {
                session_id: session_id.clone(),
                texts: svc_engine_fact::EditTexts {
                    applied: first.clone(),
                    observed_file: second.clone(),
                },
                external_lines_added: self.integer,
                raw: self.raw.clone(),
                ..edit(number, &self.string)
            }
        );
        comes_back!(
            Append::RejectedEdit,
            svc_engine_fact::RejectedEdit {
                session_id: session_id.clone(),
                proposed: third.clone(),
                raw: self.raw.clone(),
                ..rejection(number, &self.string)
            }
        );
        comes_back!(
            Append::RetryLinkage,
            svc_engine_fact::RetryLinkage {
                session_id: session_id.clone(),
                user_id: Some(svc_model::id::UserId::new("u").unwrap()),
                ..linkage(number, &self.string, "other")
            }
        );
        comes_back!(
            Append::UsageReceipt,
            svc_engine_fact::UsageReceipt {
                session_id: session_id.clone(),
                agent: self.optional_string.clone(),
                request_id: self.optional_string.clone(),
                cost_usd_micros: self.integer,
                tier: self.truth.then(|| "priority".to_owned()),
                sequence: self.integer,
                ..usage(number)
            }
        );
        comes_back!(
            Append::Push,
            svc_engine_fact::Push {
                repository: identity.clone(),
                r#ref: numbered("refs/heads/main"),
                clone_url: self.string.clone(),
                forced: self.truth,
                ..push(number)
            }
        );
        let pull_request = svc_engine_fact::PullRequest {
            pr_number: i64::try_from(number).unwrap(),
            repository: identity.clone(),
            head_repo: self.truth.then(|| "fork/repo".to_owned()),
            head_repository: self.integer.map(|_| repository(4)),
            ..svc_engine_fact::testing::builders::pull_request()
        };
        comes_back!(
            Append::PullRequestRevision,
            svc_engine_fact::PullRequestRevision {
                pull_request: pull_request.clone(),
                previous_head_sha: self.truth.then(|| commit('e')),
                source_event_id: self.optional_string.clone(),
                ..revision(number)
            }
        );
        comes_back!(
            Append::PullRequestMerge,
            svc_engine_fact::PullRequestMerge {
                pull_request,
                source_event_id: self.optional_string.clone(),
                ..merge(number)
            }
        );
        comes_back!(
            Append::RepositoryRename,
            svc_engine_fact::RepositoryRename {
                source_event_id: Some(numbered("event")),
                occurred_at: self.truth.then(|| at(5)),
                ..rename(number, repository(1))
            }
        );
        comes_back!(
            Append::CiOutcome,
            svc_engine_fact::CiOutcome {
                run_attempt: self.integer,
                repository: identity.clone(),
                workflow_name: first,
                workflow_id: self.optional_string.clone(),
                run_url: self.optional_text.clone(),
                provider_result: Some(second),
                reason: Some(third),
                pr_number: self.integer,
                raw: self.raw.clone(),
                ..outcome(number, &numbered("run"))
            }
        );
        comes_back!(
            Append::SessionCommitObservation,
            svc_engine_fact::SessionCommitObservation {
                session_id,
                repository: identity,
                origin: svc_engine_fact::ObservationOrigin::Note(self.string.clone()),
                ..observation(number, id(9))
            }
        );
        Ok(())
    }
}
