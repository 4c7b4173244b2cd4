//! What the cost of a question depends on. Every test checks that no statement scans or sorts
//! unless it is allowed to.

use std::collections::HashSet;

use svc_model::repository::CommitSha;

use super::*;

/// A question about a repository reads the claims of its names, and one fact for each claim: the
/// first in its index.
#[rstest]
fn the_cost_of_a_question_about_a_repository_depends_only_on_its_names(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let names = [name("own/repo")].into();
    let repositories = [repository(7)].into();
    let mut snapshot = store.snapshot_now();
    snapshot
        .repository_claims(&names, &repositories, at(0))
        .unwrap();
    let plans = plan_check::of(snapshot.connection().unwrap(), "FROM repository_claims c");
    assert!(plans.len() >= 2, "by names and by identities");
    for (_, plan) in plans {
        for index in [
            "pushes_by_repository",
            "ci_outcomes_by_repository",
            "session_commit_observations_by_repository",
            "pull_request_revisions_by_repository",
            "pull_request_revisions_by_head",
            "pull_request_merges_by_repository",
            "pull_request_merges_by_head",
            "repository_renames_by_old_name",
            "repository_renames_by_new_name",
        ] {
            assert!(plan.contains(index), "{index} in {plan}");
        }
    }
}

/// A commit has few facts, a repository any number.
#[rstest]
fn the_cost_of_a_question_about_commits_depends_only_on_the_commits(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    use svc_engine_fact::Lifetime;

    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let commits = [commit('a'), commit('b')];
    for repository in [
        Lifetime::Identified(repository(7)),
        Lifetime::Named(name("own/repo")),
    ] {
        let pushes = snapshot.pushes_of_delivery(&repository, commits.iter(), at(0), 10);
        assert_eq!(pushes.unwrap(), []);
        let outcomes = snapshot.ci_outcomes_of_delivery(&repository, commits.iter(), at(0), 10);
        assert_eq!(outcomes.unwrap(), []);
    }
    let mut questions = 0;
    for (sql, plan) in plan_check::of(snapshot.connection().unwrap(), "_sha IN (") {
        assert!(plan.contains("_by_commit"), "{sql}\n{plan}");
        assert!(!plan.contains("by_repository"), "{sql}\n{plan}");
        questions += 1;
    }
    assert!(questions >= 4, "{questions}");
}

/// The outcomes of many commits and runs are found by commit and run. Several indexes of outcomes
/// contain the organization, and a search by that alone reads all its outcomes.
#[rstest]
fn the_outcomes_of_a_report_are_found_by_commits_and_runs_through_an_index(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let none = |_| Ok(());
    snapshot
        .ci_outcomes_of_commits(&[&commit('a')], at(0), none)
        .unwrap();
    snapshot
        .ci_outcomes_of_runs(&["r"], at(0), &HashSet::default(), none)
        .unwrap();
    snapshot
        .ci_outcomes_stored(&["r"], |run_id, _| panic!("{run_id}"))
        .unwrap();
    let connection = snapshot.connection().unwrap();
    let mut searches = 0;
    let mut plans = plan_check::of(connection, "ci_outcomes");
    plans.extend(plan_check::of(connection, "ci_answers"));
    for (sql, plan) in plans {
        let is_of_report = sql.contains("f.commit_sha IN (") && !sql.contains("LIMIT")
            || sql.contains(".run_id IN (");
        if !is_of_report {
            continue;
        }
        let mut lines = plan.lines().peekable();
        while let Some(line) = lines.next() {
            let next = lines.peek().copied().unwrap_or_default();
            // What an outcome is compared with is found by its whole key.
            let is_of_key = line.contains("signed") || next.contains("signed");
            if !is_of_key && line.contains("ci_outcomes_by_") {
                assert!(
                    !line.contains("org_id") && !next.contains("org_id"),
                    "{plan}"
                );
                searches += 1;
            }
        }
    }
    assert!(searches >= 3, "{searches}");
}

/// A report looks up more keys at once than any other read, and the database may then prefer a
/// scan. The plan of each statement is checked when it is first used.
#[rstest]
fn all_keys_of_a_report_are_found_without_a_scan(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    const KEYS: u128 = 1_000;
    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let texts: Vec<String> = (0..KEYS).map(|number| format!("{number:040x}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let ids: Vec<FactId> = (0..KEYS).map(id).collect();
    let sessions: Vec<SessionId> = texts
        .iter()
        .map(|text| SessionId::new(text).unwrap())
        .collect();
    let commits: Vec<CommitSha> = texts
        .iter()
        .map(|text| CommitSha::new(text).unwrap())
        .collect();
    let commits: Vec<&CommitSha> = commits.iter().collect();
    let session_id = SessionId::new("s").unwrap();
    snapshot
        .decisions_of_sessions(&sessions, at(0), |_| Ok(()))
        .unwrap();
    snapshot
        .edits_of_sessions(&sessions, at(0), |_| Ok(()))
        .unwrap();
    snapshot
        .retries_of_sessions(&sessions, at(0), |_| Ok(()))
        .unwrap();
    snapshot
        .commits_of_sessions(&sessions, at(0), |_| Ok(()))
        .unwrap();
    snapshot
        .calls_of_sessions(&sessions, at(0)..at(9), |_| Ok(()))
        .unwrap();
    snapshot.texts_of_edits(&ids, |_, _| Ok(())).unwrap();
    // The owners among the cohort's calls, and the owners among all calls.
    let known = |_| Some(&session_id);
    snapshot
        .owners_of_ids(&texts, at(0), known, |_| Ok(()))
        .unwrap();
    snapshot
        .owners_of_ids(&texts, at(0), |_| None, |_| Ok(()))
        .unwrap();
    snapshot
        .sessions_of_commits(&commits, at(0), |_| Ok(()))
        .unwrap();
    snapshot
        .ci_outcomes_of_commits(&commits, at(0), |_| Ok(()))
        .unwrap();
    let nothing = HashSet::default();
    snapshot
        .ci_outcomes_of_runs(&texts, at(0), &nothing, |_| Ok(()))
        .unwrap();
    snapshot
        .ci_outcomes_stored(&texts, |run_id, _| panic!("{run_id}"))
        .unwrap();
    let contents: Vec<i64> = (0..1_000).collect();
    snapshot.content(&contents, |_, _| Ok(())).unwrap();
    let connection = snapshot.connection().unwrap();
    let last = match backend {
        Backend::Sqlite => "$64",
        Backend::Postgres => "$256",
    };
    let found = plan_check::of(connection, last).len();
    assert!(found >= 10, "{found}");
}

/// A page of Sessions is read along one index, whatever the number of Sessions.
#[rstest]
fn the_cost_of_a_page_of_sessions_depends_only_on_its_rows(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    use svc_engine_fact::Lifetime;

    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let (identified, named) = (
        Lifetime::Identified(repository(7)),
        Lifetime::Named(name("own/repo")),
    );
    let of = |repository| SessionCondition::Repository {
        repository,
        names: &["own/repo"],
    };
    let claims = [
        ClaimKind::User,
        ClaimKind::Model,
        ClaimKind::Harness,
        ClaimKind::Repository,
    ];
    let claims = claims.map(|kind| vec![SessionCondition::Claim(kind, "x")]);
    let mut questions = vec![Vec::new(), vec![of(&identified)], vec![of(&named)]];
    questions.extend(claims);
    questions.push(vec![
        of(&identified),
        SessionCondition::Claim(ClaimKind::User, "x"),
        SessionCondition::Claim(ClaimKind::Harness, "x"),
        SessionCondition::Claim(ClaimKind::Model, "x"),
    ]);
    for conditions in &questions {
        let page = SessionPage {
            captured_from: None,
            before: None,
            among: None,
            conditions,
            rows_max: 10,
        };
        assert_eq!(snapshot.session_page(&page).unwrap(), []);
    }
    let plans = plan_check::of(snapshot.connection().unwrap(), "s.first_observed_at_us");
    assert!(plans.len() >= questions.len(), "{}", plans.len());
    for (sql, plan) in plans {
        let is_sqlite = snapshot.connection().unwrap().is_sqlite();
        let index = if !sql.contains("session_claims") {
            "sessions_by_capture"
        } else if is_sqlite {
            "SEARCH c USING PRIMARY KEY (value=? AND kind=? AND org_id=? AND captured_at_us>?"
        } else {
            "session_claims_pkey"
        };
        assert!(plan.contains(index), "{sql}\n{plan}");
    }
    let of_sessions = [session("s"), session("t")];
    assert!(snapshot.session_claims(&of_sessions).unwrap().is_empty());
    assert!(
        snapshot
            .session_call_counts(&of_sessions)
            .unwrap()
            .is_empty()
    );
}

/// A pull request has few revisions and one merge, a repository any number.
#[rstest]
fn the_cost_of_a_question_about_pull_requests_depends_only_on_them(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let merges = snapshot.merges_at(&[&commit('a'), &commit('b')], at(0), 10);
    assert_eq!(merges.unwrap(), []);
    for repository in [Some(repository(7)), None] {
        let mut asked = merge(1).pull_request;
        asked.repository = repository;
        assert_eq!(snapshot.revisions_of(&asked, at(0), 10).unwrap(), []);
    }
    let identified = svc_engine_fact::Lifetime::Identified(repository(7));
    assert_eq!(snapshot.merge_of(&identified, 1, at(0)).unwrap(), None);
    let connection = snapshot.connection().unwrap();
    for (part, index) in [
        ("merge_commit_sha IN (", "_by_merge_commit"),
        ("f.repository_id = $7", "s_by_identity"),
        ("f.provider = $6", "pull_request_revisions_by_name"),
    ] {
        let plans = plan_check::of(connection, part);
        assert!(!plans.is_empty(), "{part}");
        for (sql, plan) in plans {
            assert!(plan.contains(index), "{sql}\n{plan}");
        }
    }
}
