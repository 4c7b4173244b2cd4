//! How the backends find facts, while a table is still empty and for SQLite ever after.
//!
//! A plan that is good on an empty table only by chance walks through the whole organization once it
//! is full, so what every statement searches by is checked here.

use super::*;

/// Statements that are about all facts of an organization, or about its quarantine log, by what they
/// begin with.
const ABOUT_ALL: [&str; 4] = [
    "SELECT COUNT(*)",
    "SELECT COALESCE(MAX(quarantine_revision)",
    "SELECT quarantine_revision,",
    "SELECT f.inference_call_id, CAST(CASE WHEN NOT EXISTS",
];

#[rstest]
fn no_statement_walks_through_an_organization(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let mut connection = Connection::open(database.url()).unwrap();
    let mut searched = 0;
    for statement in schema::statements() {
        let is_about_all = ABOUT_ALL.iter().any(|begin| statement.starts_with(begin));
        if !statement.starts_with("SELECT") || is_about_all {
            continue;
        }
        let plan = plan(&mut connection, &statement);
        for line in plan.iter().filter(|line| !line.contains("quarantine_log")) {
            assert!(!is_scan(line), "{line}\n{statement}");
            if let Some(conditions) = conditions(line) {
                searched += 1;
                assert!(
                    conditions.iter().any(|it| is_selective(it)),
                    "{line}\n{statement}\n{plan:#?}"
                );
            }
        }
    }
    assert!(searched > 50, "{searched} searches were understood");
}

/// A question touches the claims of its names, and of each claim one fact, which is the first that
/// its index comes to: nothing is sorted.
#[rstest]
fn the_cost_of_a_question_about_a_repository_is_in_its_names(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let mut connection = Connection::open(database.url()).unwrap();
    for question in repositories::statements() {
        let plan = plan(&mut connection, &question).join("\n");
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
        for sorting in ["Sort", "TEMP B-TREE"] {
            assert!(!plan.contains(sorting), "{sorting} in {plan}");
        }
    }
}

/// A commit has few facts, a repository any number of them.
#[rstest]
fn the_cost_of_a_question_about_commits_is_in_the_commits(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let mut connection = Connection::open(database.url()).unwrap();
    let statements = [deliveries::statements(), outcomes::statements()].concat();
    let of_commits = statements
        .iter()
        .filter(|statement| statement.contains("_sha IN ("));
    let mut questions = 0;
    for question in of_commits {
        let plan = plan(&mut connection, question).join("\n");
        assert!(
            plan.contains("pushes_by_commit") || plan.contains("ci_outcomes_by_commit"),
            "{question}\n{plan}"
        );
        assert!(!plan.contains("by_repository"), "{question}\n{plan}");
        questions += 1;
    }
    assert_eq!(questions, 4);
}

fn is_scan(line: &str) -> bool {
    line.contains("Seq Scan") || line.starts_with("SCAN")
}

/// Returns what a line of a plan searches an index by.
fn conditions(line: &str) -> Option<Vec<String>> {
    let conditions = match line.trim().strip_prefix("Index Cond: ") {
        Some(conditions) => conditions,
        None if line.starts_with("SEARCH") => line.rsplit_once('(')?.1,
        None => return None,
    };
    Some(conditions.split(" AND ").map(str::to_owned).collect())
}

/// Returns whether few facts of an organization meet a condition; the latest of them does.
fn is_selective(condition: &str) -> bool {
    const WIDE: [&str; 5] = [
        "org_id",
        "captured_at_us",
        "observed_at_us",
        "repository_provider",
        "provider",
    ];
    let column = condition.trim_start_matches('(');
    let is_latest = column.starts_with("<expr>") || column.starts_with("org_id || ");
    let is_wide = WIDE.iter().any(|wide| column.starts_with(wide))
        || column.contains("IS NULL")
        || column.contains("IS NOT NULL");
    is_latest || !is_wide
}

/// Returns how a backend runs a selection, whatever values are bound to it.
fn plan(connection: &mut Connection, sql: &str) -> Vec<String> {
    if connection.is_sqlite() {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        connection.all(&explain, &[], |row| row.text(3)).unwrap()
    } else {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("question_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let parameters = (1..).take_while(|number| sql.contains(&format!("${number}")));
        let nulls = vec!["NULL"; parameters.count()].join(", ");
        connection
            .batch(&format!("PREPARE {name} AS {sql}"))
            .unwrap();
        let execute = match nulls.as_str() {
            "" => format!("EXPLAIN EXECUTE {name}"),
            nulls => format!("EXPLAIN EXECUTE {name} ({nulls})"),
        };
        connection.all(&execute, &[], |row| row.text(0)).unwrap()
    }
}
