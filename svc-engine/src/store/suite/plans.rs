//! What the cost of a question follows. That no statement walks or sorts unasked, every test sees.

use super::*;

/// A question touches the claims of its names, and of each claim one fact, which is the first that
/// its index comes to.
#[rstest]
fn the_cost_of_a_question_about_a_repository_is_in_its_names(
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

/// A commit has few facts, a repository any number of them.
#[rstest]
fn the_cost_of_a_question_about_commits_is_in_the_commits(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    use crate::fact::Lifetime;

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
