//! Finds the Sessions that a rule reaches. Visible facts must say everything that the rule asks
//! for, and nothing else of the same kind.
//!
//! Anyone who may send facts may send a fact about any Session. So it is not enough that a fact
//! names the user: a Session that facts also tie to another user, agent or repository is not
//! reached.
//!
//! The rules of a token are evaluated in one statement.

use svc_engine_fact::Lifetime;
use svc_model::grant::GrantObstacle;
use svc_model::id::SessionId;
use svc_model::limit::GRANT_RULE_ROWS_MAX;
use svc_model::time::Instant;

use super::{GrantRule, OBSTACLES};
use crate::read::observations;
use crate::read::snapshot::Snapshot;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::statement::Statement;
use crate::table::session_claims::ClaimKind;
use crate::table::sessions::{self, exists};

/// The Sessions that the rules of a token reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachedSessions {
    /// The Sessions, sorted.
    pub sessions: Vec<SessionId>,
    /// Whether a rule has more rows than may be looked at.
    pub is_over: bool,
}

/// Returns the condition that a visible fact of the Session of `row` proves a value.
fn proof(kind: ClaimKind, row: &str, value: &str) -> String {
    let (org_id, session_id) = (format!("{row}.org_id"), format!("{row}.session_id"));
    kind.proof(&org_id, &session_id, value)
}

/// Returns the condition that a visible fact says something else about the Session of `row`. There
/// may be many facts, so they are searched only if the Session has another claim of the kind.
/// Claims are counted by their kind's letter and a colon. A value may contain both, so the count may
/// be too high, but never too low.
fn another(kind: ClaimKind, row: &str, value: &str) -> String {
    let letter = kind.letter();
    let column = kind.column();
    let facts = kind.tables().map(|table| {
        let condition = sessions::of_session(table, "z.org_id", "z.session_id");
        format!(
            "EXISTS (SELECT 1 FROM visible_{table} f WHERE {condition} \
            AND f.{column} <> {value})"
        )
    });
    let facts: Vec<String> = facts.collect();
    let facts = facts.join(" OR ");
    let length = letter.len() + 1;
    let proof = proof(kind, row, value);
    format!(
        "EXISTS (SELECT 1 FROM sessions z WHERE z.session_id = {row}.session_id \
        AND z.org_id = {row}.org_id \
        AND LENGTH(z.claims) - LENGTH(REPLACE(z.claims, '{letter}:', '')) \
        > CASE WHEN {proof} THEN {length} ELSE 0 END AND ({facts}))"
    )
}

/// Returns what may keep a rule from the Session of `row`: the conditions, each with its bit.
fn obstacles(statement: &mut Statement<'_>, row: &str, rule: &GrantRule) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut add = |obstacle: GrantObstacle, condition: String| {
        let bit = OBSTACLES.iter().position(|listed| *listed == obstacle);
        found.extend(bit.map(|bit| (1 << bit, condition)));
    };
    if let Some(since) = rule.since {
        let since = statement.value(since);
        add(
            GrantObstacle::BeforeSince,
            format!("{row}.captured_at_us < {since}"),
        );
    }
    if let Some(user_id) = &rule.user_id {
        let value = statement.own(user_id.as_str().to_owned());
        let proof = proof(ClaimKind::User, row, &value);
        add(GrantObstacle::UserNotNamed, format!("NOT {proof}"));
        add(
            GrantObstacle::OtherUser,
            another(ClaimKind::User, row, &value),
        );
    }
    if let Some(agent_harness) = rule.agent_harness {
        let value = statement.value(agent_harness.as_str());
        let proof = proof(ClaimKind::Harness, row, &value);
        add(GrantObstacle::HarnessNotNamed, format!("NOT {proof}"));
        add(
            GrantObstacle::OtherHarness,
            another(ClaimKind::Harness, row, &value),
        );
    }
    if let Some(repository) = rule.lifetime() {
        let is_of = observations::is_of(statement, &repository);
        // An observation whose repository cannot be told counts as one of another repository.
        let observed = |truth: &str| {
            let condition = format!("CASE WHEN {is_of} THEN 1 ELSE 0 END = {truth}");
            observations::some(row, &condition)
        };
        let proof = observed("1");
        add(GrantObstacle::RepositoryNotNamed, format!("NOT {proof}"));
        add(GrantObstacle::OtherRepository, observed("0"));
    }
    if rule.user_id.is_none() && rule.agent_harness.is_none() && rule.lifetime().is_none() {
        add(
            GrantObstacle::NothingVisible,
            format!("NOT {}", exists(row)),
        );
    }
    found
}

/// Selects a bounded number of rows, the latest, by the member of the rule that the fewest Sessions
/// share. Each Session that the rule can reach has a row. `among` limits them to some Sessions,
/// unless it is empty.
pub(crate) fn run(
    statement: &mut Statement<'_>,
    org: &str,
    rule: &GrantRule,
    among: &[SessionId],
) -> String {
    let along = |statement: &mut Statement<'_>, kind: ClaimKind, values: String| {
        let kind = statement.value(kind.letter());
        let run = format!(
            "session_claims c JOIN sessions s ON s.session_number = c.session_number \
            WHERE c.value {values} AND c.kind = {kind} AND c.org_id = {org}"
        );
        ("c", run)
    };
    // The table whose index is read.
    let (row, run) = if let Some(identity) = &rule.repository {
        let provider = statement.value(identity.repository_provider.as_str());
        let host = statement.own(identity.repository_host.clone().into());
        let id = statement.own(identity.repository_id.clone().into());
        let names = format!(
            "IN (SELECT r.name FROM repository_claims r WHERE r.repository_id = {id} \
            AND r.repository_host = {host} AND r.repository_provider = {provider} \
            AND r.org_id = {org})"
        );
        along(statement, ClaimKind::Repository, names)
    } else if let Some(repo) = rule.repo.clone() {
        let name = statement.own(repo.into());
        along(statement, ClaimKind::Repository, format!("= {name}"))
    } else if let Some(user_id) = rule.user_id.clone() {
        let user = statement.own(user_id.into());
        along(statement, ClaimKind::User, format!("= {user}"))
    } else if let Some(agent_harness) = rule.agent_harness {
        let harness = statement.value(agent_harness.as_str());
        along(statement, ClaimKind::Harness, format!("= {harness}"))
    } else {
        ("s", format!("sessions s WHERE (s.org_id || '') = {org}"))
    };
    let since = statement.value(rule.since.map_or(i64::MIN, Instant::microseconds));
    let among: Vec<String> = among
        .iter()
        .map(|session_id| statement.own(session_id.as_str().to_owned()))
        .collect();
    let among = if among.is_empty() {
        format!(" ORDER BY {row}.captured_at_us DESC")
    } else {
        format!(
            " AND {row}.session_number IN (SELECT n.session_number FROM sessions n \
            WHERE n.org_id = {org} AND n.session_id IN ({}))",
            among.join(", ")
        )
    };
    // One more than may be looked at, to tell whether there are more.
    let rows = GRANT_RULE_ROWS_MAX + 1;
    format!(
        "SELECT s.org_id, s.session_id, s.mark, {row}.captured_at_us FROM {run} \
        AND {row}.captured_at_us >= {since}{among} LIMIT {rows}"
    )
}

/// Selects, for each row of a run, whether the rule reaches its Session.
fn candidates(
    statement: &mut Statement<'_>,
    org: &str,
    number: usize,
    rule: &GrantRule,
    among: &[SessionId],
) -> String {
    let run = run(statement, org, rule, among);
    let found = obstacles(statement, "candidates", rule);
    let found: Vec<String> = found.into_iter().map(|(_, condition)| condition).collect();
    let found = found.join(" OR ");
    format!(
        "SELECT CAST({number} AS BIGINT), candidates.session_id, \
        CASE WHEN {found} THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END \
        FROM ({run}) candidates"
    )
}

/// The number of rows in the run of each rule.
pub(crate) struct LookedAt(Vec<u64>);

impl LookedAt {
    pub(crate) fn by(rules: &[&GrantRule]) -> Self {
        Self(vec![0; rules.len()])
    }

    /// Counts a row of a rule, given by its index.
    pub(crate) fn count(&mut self, rule: i64) {
        let place = usize::try_from(rule).ok();
        if let Some(rows) = place.and_then(|place| self.0.get_mut(place)) {
            *rows += 1;
        }
    }

    /// Returns whether a rule has more rows than may be looked at.
    pub(crate) fn is_over(&self) -> bool {
        self.0.iter().any(|rows| *rows > GRANT_RULE_ROWS_MAX)
    }
}

impl GrantRule {
    /// Returns the repository that the rule asks for, if any.
    fn lifetime(&self) -> Option<Lifetime> {
        let identified = self.repository.clone().map(Lifetime::Identified);
        identified.or_else(|| self.repo.clone().map(Lifetime::Named))
    }
}

impl Snapshot<'_> {
    /// Returns the obstacles between each rule and a Session, or nothing if no fact names the
    /// Session.
    pub fn grant_obstacles(
        &mut self,
        rules: &[&GrantRule],
        session_id: &SessionId,
    ) -> Result<Option<Vec<Vec<GrantObstacle>>>, StoreError> {
        let mut statement = Statement::default();
        let org = statement.value(self.org_id.as_str());
        let session = statement.value(session_id.as_str());
        let mut columns = vec!["CAST(0 AS BIGINT)".to_owned()];
        for rule in rules {
            let found = obstacles(&mut statement, "s", rule);
            let bits = found
                .into_iter()
                .map(|(bit, condition)| format!("CASE WHEN {condition} THEN {bit} ELSE 0 END"));
            let bits: Vec<String> = bits.collect();
            columns.push(format!("CAST({} AS BIGINT)", bits.join(" + ")));
        }
        statement.text = format!(
            "SELECT {} FROM sessions s WHERE s.session_id = {session} AND s.org_id = {org}",
            columns.join(", ")
        );
        self.connection()?
            .first(&statement.text, &statement.values, |row| {
                let of_rules = (1..=rules.len()).map(|column| {
                    let bits = row.integer(column)?;
                    let named = OBSTACLES.into_iter().enumerate();
                    let met = named.filter(|(place, _)| bits & (1 << place) != 0);
                    Ok(met.map(|(_, obstacle)| obstacle).collect())
                });
                of_rules.collect()
            })
    }

    /// Returns the Sessions that rules reach, of those in `among`, or of all if it is empty.
    pub fn grant_reach(
        &mut self,
        rules: &[&GrantRule],
        among: &[SessionId],
    ) -> Result<ReachedSessions, StoreError> {
        let mut reached = ReachedSessions::default();
        if rules.is_empty() {
            return Ok(reached);
        }
        let mut statement = Statement::default();
        let org = statement.value(self.org_id.as_str());
        let selects: Vec<String> = rules
            .iter()
            .enumerate()
            .map(|(number, rule)| candidates(&mut statement, &org, number, rule, among))
            .collect();
        statement.text = selects.join(" UNION ALL ");
        let mut looked_at = LookedAt::by(rules);
        self.connection()?
            .each(&statement.text, &statement.values, |row| {
                looked_at.count(row.integer(0)?);
                if row.integer(2)? != 0 {
                    let session_id = SessionId::new(&row.text(1)?);
                    let session_id = session_id.map_err(|_| corrupt("sessions", "session_id"))?;
                    reached.sessions.push(session_id);
                }
                Ok(())
            })?;
        // Several rules, or several names of a repository, may lead to one Session.
        reached.sessions.sort_unstable();
        reached.sessions.dedup();
        reached.is_over = looked_at.is_over();
        Ok(reached)
    }
}
