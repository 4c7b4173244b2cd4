//! An outcome that a signature proves, and one that a token reports for the same run.

use svc_engine_fact::CiOutcome;
use svc_model::ingest::CiResult;

use super::*;

fn said(number: u128, signed: bool, result: CiResult) -> CiOutcome {
    CiOutcome {
        repository: Some(repository(7)),
        run_attempt: Some(1),
        signed,
        result,
        ..outcome(number, "r")
    }
}

fn append(outcome: CiOutcome) -> Append {
    Append::CiOutcome(Box::new(outcome))
}

#[rstest]
fn a_signed_outcome_is_stored_beside_a_report_only_if_they_differ(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let conflict = Outcome::Conflict(Code::RepositoryIdentityConflict);
    let of_another_commit = |outcome: CiOutcome| CiOutcome {
        commit_sha: commit('d'),
        ..outcome
    };
    let (passed, failed) = (CiResult::Passed, CiResult::Failed);
    let (report, signed) = (said(1, false, passed), said(2, true, failed));
    let steps: [(&str, Vec<(CiOutcome, Outcome)>); 5] = [
        (
            "the report comes first and differs",
            vec![
                (report.clone(), Outcome::Stored(id(1))),
                (signed.clone(), Outcome::Superseding(id(2))),
                (said(3, true, failed), Outcome::Redelivered(id(2))),
                (said(4, false, passed), Outcome::Redelivered(id(1))),
                (of_another_commit(said(5, true, failed)), conflict),
            ],
        ),
        (
            "the report comes first and is right",
            vec![
                (said(1, false, failed), Outcome::Stored(id(1))),
                (signed.clone(), Outcome::Redelivered(id(1))),
            ],
        ),
        (
            "the report comes first and names another commit",
            vec![
                (
                    of_another_commit(said(1, false, failed)),
                    Outcome::Stored(id(1)),
                ),
                (signed.clone(), Outcome::Superseding(id(2))),
            ],
        ),
        (
            "the report comes later",
            vec![
                (signed.clone(), Outcome::Stored(id(2))),
                (said(3, false, failed), Outcome::Redelivered(id(2))),
                (said(4, false, passed), Outcome::Overruled(id(2))),
                (of_another_commit(report.clone()), conflict),
            ],
        ),
        (
            "both are without an identity",
            vec![
                (
                    CiOutcome {
                        repository: None,
                        ..report.clone()
                    },
                    Outcome::Stored(id(1)),
                ),
                (signed.clone(), Outcome::Stored(id(2))),
                (
                    CiOutcome {
                        repository: None,
                        ..said(3, true, failed)
                    },
                    Outcome::Superseding(id(3)),
                ),
            ],
        ),
    ];
    for (name, facts) in steps {
        let Some(database) = TestStore::create(backend) else {
            return;
        };
        let store = database.open("acme");
        for (fact, expected) in facts {
            let fact_id = fact.outcome_id;
            let outcomes = store.append_now(vec![append(fact)]).unwrap();
            assert_eq!(outcomes, [expected], "{name}: {fact_id}");
        }
    }
    let store = database.open("acme");
    let outcomes = store.append_now(vec![append(report), append(signed)]);
    assert_eq!(
        outcomes.unwrap(),
        [Outcome::Overruled(id(2)), Outcome::Stored(id(2))],
        "in one transaction the signed one counts as first"
    );
}
