//! Checks how the backends find facts. In a process that has opened a [`TestStore`](super::TestStore),
//! the plan of every statement is checked when the statement is first used.
//!
//! A plan may be good on an empty table only by chance, and scan a whole organization once the
//! table is full. So a statement searches each table by something that few facts share, and sorts
//! nothing, unless it is listed in `ALLOWED`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::sql::connection::Connection;

/// What a statement may do besides searching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    /// Sort a small result.
    Sort,
    /// Read much of an organization, because it is rarely run.
    Walk,
}
use May::{Sort, Walk};

/// The statements that may do more than search, each identified by a unique part of its text.
const ALLOWED: &[(May, &str)] = &[
    // The state of the schema, before and after it exists.
    (Walk, "FROM _sqlx_migrations"),
    (Walk, "FROM sqlite_master"),
    (Walk, "FROM pg_catalog.pg_class"),
    (Sort, "FROM pg_catalog.pg_class"),
    (Sort, "JOIN pragma_table_info"),
    // Reads of everything: a backup, a verification, and the work after a restore.
    (Walk, "SELECT /* every row */"),
    (Sort, "SELECT /* every row */"),
    (Walk, "SELECT setval("),
    (Walk, "DELETE /* every row */"),
    // The row of an organization, and the latest of the few writers.
    (Walk, "FROM organizations WHERE org_id = $1"),
    (Walk, "UPDATE organizations SET"),
    (Walk, "FROM writers"),
    // An operator's counts of reported commits.
    (
        Walk,
        "FROM session_commit_claims WHERE org_id = $1 GROUP BY state",
    ),
    // The totals of open halves, a row for each organization.
    (Walk, "FROM half_totals WHERE org_id = $1"),
    // The newest price tables, of which there are at most a thousand, and their number.
    (
        Walk,
        "FROM price_tables WHERE (org_id || '') = $1 ORDER BY loaded_at_us DESC LIMIT $2",
    ),
    (Walk, "SELECT COUNT(*) FROM price_tables"),
    // The end of the quarantine log.
    (
        Walk,
        "SELECT COALESCE(MAX(quarantine_revision), 0) FROM quarantine_log WHERE org_id = $1",
    ),
    // The end of the erasure log, and an operator's list of it.
    (
        Walk,
        "SELECT COALESCE(MAX(erasure_revision), 0) FROM erasure_log WHERE (org_id || '') = $1",
    ),
    (
        Walk,
        "FROM erasure_log WHERE (org_id || '') = $1 AND erasure_revision < $3 ORDER BY erasure_revision DESC LIMIT $2",
    ),
    // The last call.
    (
        Walk,
        "SELECT COALESCE(MAX(call_number), 0) FROM raw_payloads",
    ),
    // The number of erasures, in the row of each of the few organizations.
    (Walk, "MAX(erasures), 0) FROM organizations"),
    // The end of the grant log, and an operator's list of it.
    (
        Walk,
        "SELECT COALESCE(MAX(grant_revision), 0) FROM grant_log WHERE (org_id || '') = $1",
    ),
    (
        Walk,
        "WHERE (l.org_id || '') = $1 AND l.grant_revision < $2 ORDER BY l.grant_revision DESC LIMIT $3",
    ),
    (
        Walk,
        "WHERE (g.org_id || '') = $1 AND g.grant_revision < $2 ORDER BY g.grant_revision DESC LIMIT $3",
    ),
    // An operator's lists of the quarantine log and of the mirrors, or a question about one of
    // them.
    (
        Walk,
        "FROM quarantine_log WHERE org_id = $1 AND quarantine_revision < $3 ORDER BY quarantine_revision DESC LIMIT $2",
    ),
    (
        Walk,
        "FROM mirror_jobs j WHERE j.org_id = $1 ORDER BY j.mirror",
    ),
    (
        Sort,
        "ORDER BY f.captured_at_us DESC, f.push_id DESC LIMIT 1",
    ),
    // A page of outcomes of a repository without an identity: PostgreSQL does not know that rows
    // with a NULL in a column are sorted.
    (
        Sort,
        "AND f.repository_id IS NULL AND f.repo = $2 AND f.result = $3",
    ),
    // The first pushes and merges of such a repository after a time, for the same reason.
    (
        Sort,
        "AND f.repository_id IS NULL AND f.repository_host IS NULL AND f.repo = $2 AND f.org_id = $1",
    ),
    // The few jobs that are due.
    (Sort, "ORDER BY due_at_us, mirror LIMIT 1"),
    (
        Walk,
        "SELECT COUNT(*) FROM quarantine_log WHERE org_id = $1",
    ),
    // The number of calls in each hour of a report's range, among those that an index finds.
    (Sort, "SELECT f.hour, COUNT(*) FROM"),
    (Walk, "SELECT f.hour, COUNT(*) FROM"),
    // Every Session, for an operator's report of all history.
    (Walk, "SELECT session_id FROM sessions WHERE org_id = $1"),
    // The pull requests of unclear repositories, for the same.
    (Walk, "f.pr_number, COUNT(*) FROM visible_"),
    // The latest Sessions of the rules of a token: those of a repository are sorted, because it may
    // have had several names.
    (Sort, "AS BIGINT) AS rule"),
    (Sort, "AS BIGINT), candidates."),
    // The count and the list of an operator's bulk change, with any conditions.
    (Walk, "FROM inference_calls f WHERE f.org_id = $1"),
    // The calls of a listed Session, counted up to a limit.
    (
        Walk,
        "WHERE f.session_number = s.session_number LIMIT 1000) counted",
    ),
    // The calls of a Session. The index has them by time; sorting those of one time by id as well
    // would take half its size again.
    (
        Sort,
        "n.org_id = $1) ORDER BY f.observed_at_us, f.inference_call_id",
    ),
    // The Sessions of which something was erased since the index of searches last looked.
    (
        Walk,
        "WHERE (e.org_id || '') = $1 AND e.erasure_revision > $2",
    ),
    // The next calls of a Session, for the index of searches: as above.
    (
        Sort,
        "f.observed_at_us < $4 AND (f.observed_at_us > $3 OR f.inference_call_id > $5) ORDER BY f.observed_at_us, f.inference_call_id LIMIT $6",
    ),
    // A Session's decisions and edits, of which there are at most a thousand.
    (
        Sort,
        "FROM visible_developer_decisions f WHERE f.org_id = $1 AND f.session_id = $2 ORDER BY",
    ),
    (
        Sort,
        "FROM visible_edit_observations f WHERE f.org_id = $1 AND f.session_id = $2 ORDER BY",
    ),
    // The outcomes of a few runs, grouped by run: PostgreSQL may sort them.
    (
        Sort,
        "FROM ci_outcomes o WHERE COALESCE(o.org_id, '') = $1 AND o.run_id IN",
    ),
    // The deliveries of one mirror.
    (Sort, "ORDER BY d.delivered_at_us, d.push_id LIMIT $3"),
    (
        Sort,
        "ORDER BY deferred_at_us DESC, commit_sha LIMIT $4 OFFSET $3",
    ),
];

/// The plans of statements, by whether they are PostgreSQL's and by text.
type Plans = HashMap<(bool, String), Vec<String>>;

/// Whether plans are checked. A program that is only built with this module checks none.
static CHECKS: AtomicBool = AtomicBool::new(cfg!(test));

/// The plans of the statements that were used.
static SEEN: Mutex<Option<Plans>> = Mutex::new(None);

thread_local! {
    static UNCHECKED: Cell<bool> = const { Cell::new(false) };
    static STATEMENTS: Cell<u64> = const { Cell::new(0) };
}

/// Runs a statement of a test without checking it.
pub(crate) fn unchecked<T>(run: impl FnOnce() -> T) -> T {
    let before = UNCHECKED.replace(true);
    let result = run();
    UNCHECKED.set(before);
    result
}

/// Returns how many statements this thread has run.
pub fn statements() -> u64 {
    STATEMENTS.get()
}

/// Checks plans from now on.
pub(crate) fn start() {
    CHECKS.store(true, Ordering::Relaxed);
}

/// Counts a statement, and checks its plan when it is first used.
///
/// # Panics
///
/// If it scans or sorts without permission.
pub(crate) fn first_use(connection: &mut Connection, sql: &str) {
    if !CHECKS.load(Ordering::Relaxed) {
        return;
    }
    if !UNCHECKED.get() {
        STATEMENTS.set(STATEMENTS.get() + 1);
    }
    let is_planned = ["SELECT", "UPDATE", "DELETE"]
        .iter()
        .any(|keyword| sql.starts_with(keyword));
    if !is_planned || UNCHECKED.get() {
        return;
    }
    let key = (is_postgres(connection), sql.to_owned());
    let is_new = |seen: &mut HashMap<_, _>| !seen.contains_key(&key);
    if !with_seen(is_new) {
        return;
    }
    // A statement that cannot be planned fails by itself.
    let Some(plan) = unchecked(|| plan(connection, sql)) else {
        return;
    };
    let faults = faults(sql, &plan);
    with_seen(|seen| seen.insert(key, plan.clone()));
    assert!(faults.is_empty(), "{faults:#?}\n{sql}\n{plan:#?}");
}

/// Returns the plans of the statements used on a backend whose text contains `part`.
#[cfg(test)]
pub(crate) fn of(connection: &Connection, part: &str) -> Vec<(String, String)> {
    let postgres = is_postgres(connection);
    with_seen(|seen| {
        seen.iter()
            .filter(|((backend, sql), _)| *backend == postgres && sql.contains(part))
            .map(|((_, sql), plan)| (sql.clone(), plan.join("\n")))
            .collect()
    })
}

fn with_seen<T>(each: impl FnOnce(&mut HashMap<(bool, String), Vec<String>>) -> T) -> T {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    each(seen.get_or_insert_default())
}

fn is_postgres(connection: &Connection) -> bool {
    !connection.is_sqlite()
}

/// The number of the next prepared statement.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the plan of a statement for any values.
fn plan(connection: &mut Connection, sql: &str) -> Option<Vec<String>> {
    if !is_postgres(connection) {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        return connection.all(&explain, &[], |row| row.text(3)).ok();
    }
    let name = format!("plan_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let parameters = (1..).take_while(|number| sql.contains(&format!("${number}")));
    let nulls = vec!["NULL"; parameters.count()].join(", ");
    let nulls = if nulls.is_empty() {
        nulls
    } else {
        format!("({nulls})")
    };
    connection.batch(&format!("PREPARE {name} AS {sql}")).ok()?;
    let explain = format!("EXPLAIN EXECUTE {name} {nulls}");
    let plan = connection.all(&explain, &[], |row| row.text(0)).ok();
    drop(connection.batch(&format!("DEALLOCATE {name}")));
    plan
}

/// Returns the lines of a plan that are not allowed.
fn faults(sql: &str, plan: &[String]) -> Vec<String> {
    let text = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let may = |what| {
        ALLOWED
            .iter()
            .any(|(may, part)| *may == what && text.contains(part))
    };
    let mut faults = Vec::new();
    for (place, line) in plan.iter().enumerate() {
        if line.contains("quarantine_log") && !is_scan(line) {
            continue;
        }
        let next = plan.get(place + 1).map_or("", String::as_str);
        let is_unbounded =
            line.contains("Index") && line.contains("Scan") && !next.contains("Cond:");
        let is_wide = conditions(line).is_some_and(|conditions| !is_bounded(&text, &conditions));
        let walks = is_scan(line) || is_unbounded || is_wide;
        let sorts = line.contains("TEMP B-TREE")
            || line
                .trim_start()
                .trim_start_matches("->  ")
                .starts_with("Sort ");
        if walks && !may(Walk) || sorts && !may(Sort) && !may(Walk) {
            faults.push(line.clone());
        }
    }
    faults
}

fn is_scan(line: &str) -> bool {
    // The result of the statement itself, where it is cut to a limited number of rows, is named
    // `candidates`.
    let is_of_rows =
        line.starts_with("SCAN") && !line.contains("CONSTANT ROW") && line != "SCAN candidates";
    line.contains("Seq Scan") || is_of_rows
}

/// Returns the conditions by which a line of a plan searches an index.
fn conditions(line: &str) -> Option<Vec<String>> {
    let conditions = match line.trim().strip_prefix("Index Cond: ") {
        Some(conditions) => conditions,
        None if line.starts_with("SEARCH") => line.rsplit_once('(')?.1,
        None => return None,
    };
    Some(conditions.split(" AND ").map(str::to_owned).collect())
}

/// Returns whether a search reads few facts of an organization: those that share a value, those in
/// a range, or only the latest.
fn is_bounded(sql: &str, conditions: &[String]) -> bool {
    let is_whole = |condition: &String| {
        let column = condition.trim_start_matches('(');
        column.starts_with("<expr>") || column.starts_with("org_id || ")
    };
    let is_range = |condition: &String| condition.contains("_at_us") && condition.contains('>');
    if conditions.first().is_some_and(is_whole) {
        return conditions.iter().any(is_range) || sql.contains("LIMIT 1");
    }
    conditions.iter().any(|condition| is_selective(condition))
}

/// Returns whether few facts of an organization meet a condition.
fn is_selective(condition: &str) -> bool {
    const WIDE: [&str; 9] = [
        "org_id",
        "captured_at_us",
        "observed_at_us",
        "repository_provider",
        "repository_host",
        "provider",
        "run_attempt",
        "result",
        "<expr>",
    ];
    let column = condition.trim_start_matches('(');
    let column = column.strip_prefix("COALESCE(").unwrap_or(column);
    !WIDE.iter().any(|wide| column.starts_with(wide))
        && !column.contains("IS NULL")
        && !column.contains("IS NOT NULL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(lines: &[&str]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_statement_that_scans_or_sorts_is_reported() {
        for bad in [
            &["SCAN f"][..],
            &["SCAN f USING COVERING INDEX pushes_by_capture"],
            &["SEARCH f USING INDEX calls (org_id=?)"],
            &["SEARCH f USING INDEX calls (org_id=? AND captured_at_us>?)"],
            &[
                "SEARCH f USING INDEX calls (session_id=?)",
                "USE TEMP B-TREE FOR ORDER BY",
            ],
            &["SEARCH f USING INDEX by_capture (<expr>=? AND captured_at_us<?)"],
            &["Seq Scan on pushes f"],
            &[
                "Index Scan using pushes_pkey on pushes f",
                "  Filter: (org_id = $1)",
            ],
            &[
                "Index Scan using calls on calls f",
                "  Index Cond: (org_id = $1)",
            ],
            &[
                "Sort  (cost=1)",
                "  ->  Index Scan using a on b",
                "        Index Cond: (session_id = $1)",
            ],
            &["Limit", "  ->  Sort  (cost=1)"],
        ] {
            assert_eq!(faults("SELECT 1", &plan(bad)).len(), 1, "{bad:?}");
        }
        for good in [
            &["SEARCH f USING INDEX calls (session_id=? AND org_id=?)"][..],
            &[
                "SEARCH f USING INDEX by_capture (<expr>=? AND captured_at_us>? AND captured_at_us<?)",
            ],
            &[
                "SEARCH q USING INDEX quarantine_log_by_fact (org_id=? AND fact_table=? AND fact_id=?)",
            ],
            &[
                "Index Only Scan using calls on calls f",
                "  Index Cond: (session_id = $1)",
            ],
            &["Result  (cost=0)"],
            &["SCAN candidates"],
        ] {
            assert_eq!(faults("SELECT 1", &plan(good)), [""; 0], "{good:?}");
        }
    }

    #[test]
    fn an_allowed_statement_may_do_only_what_is_allowed() {
        let walk = plan(&["SCAN quarantine_log"]);
        let counted = "SELECT COUNT(*)\n    FROM quarantine_log WHERE org_id = $1";
        assert_eq!(faults(counted, &walk), [""; 0]);
        let sorted = "SELECT f.call_id FROM visible_edit_observations f
            WHERE f.org_id = $1 AND f.session_id = $2 ORDER BY f.call_id";
        assert_eq!(
            faults(sorted, &plan(&["USE TEMP B-TREE FOR ORDER BY"])),
            [""; 0]
        );
        assert_eq!(faults(sorted, &plan(&["SCAN f"])).len(), 1);
    }
}
