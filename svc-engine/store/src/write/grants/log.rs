//! The rows of the log. Each organization's rows are appended in order and never changed.

use svc_model::facts::AgentHarness;
use svc_model::grant::{GrantAction, TokenName};
use svc_model::id::{OrgId, SessionId, UserId};
use svc_model::limit::{FACT_ID_BEGINNING_MIN, TOKEN_GRANTS_MAX};
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::{ChangedGrant, GrantChange, GrantRow, GrantRule, GrantTarget, NoGrant};
use crate::pack::column::{Column as _, Columns};
use crate::read::snapshot::Snapshot;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::write::ledger::Ledger;
use crate::write::store::Store;
use crate::write::transaction::Transaction;

const COLUMNS: [&str; 17] = [
    "grant_revision",
    "grant_id",
    "token",
    "action",
    "removed_grant_id",
    "session_id",
    "user_id",
    "agent_harness",
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
    "since_us",
    "reason",
    "recorded_at_us",
    "client_id",
    "whether it is in force",
];

macro_rules! select {
    ($in_force:literal, $from:literal) => {
        concat!(
            "SELECT l.grant_revision, l.grant_id, l.token, l.action, l.removed_grant_id, l.session_id, \
             l.user_id, l.agent_harness, l.repo, l.repository_provider, l.repository_host, \
             l.repository_id, l.since_us, l.reason, l.recorded_at_us, l.client_id, ",
            $in_force,
            " FROM ",
            $from
        )
    };
}
macro_rules! select_any {
    ($condition:literal) => {
        select!(
            "CASE WHEN EXISTS (SELECT 1 FROM grants_in_force g WHERE g.token = l.token \
             AND g.org_id = l.org_id AND g.grant_revision = l.grant_revision) \
             THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END",
            $condition
        )
    };
}
macro_rules! select_in_force {
    ($condition:literal) => {
        select!("CAST(1 AS BIGINT)", $condition)
    };
}

const OF_TOKEN: &str = select_in_force!(
    "grants_in_force g JOIN grant_log l ON l.grant_revision = g.grant_revision \
     WHERE g.token = $1 AND g.org_id = $2 ORDER BY g.grant_revision"
);
const ALL_IN_FORCE: &str = select_in_force!(
    "grants_in_force g JOIN grant_log l ON l.grant_revision = g.grant_revision \
     WHERE (g.org_id || '') = $1 AND g.grant_revision < $2 ORDER BY g.grant_revision DESC LIMIT $3"
);
const IN_FORCE_OF_TOKEN: &str = select_in_force!(
    "grants_in_force g JOIN grant_log l ON l.grant_revision = g.grant_revision \
     WHERE g.org_id = $1 AND g.grant_revision < $2 AND g.token = $4 \
     ORDER BY g.grant_revision DESC LIMIT $3"
);
const LOG: &str = select_any!(
    "grant_log l WHERE (l.org_id || '') = $1 AND l.grant_revision < $2 \
     ORDER BY l.grant_revision DESC LIMIT $3"
);
const LOG_OF_TOKEN: &str = select_any!(
    "grant_log l WHERE l.org_id = $1 AND l.grant_revision < $2 AND l.token = $4 \
     ORDER BY l.grant_revision DESC LIMIT $3"
);
const BY_ID: &str = select_any!("grant_log l WHERE l.grant_id = $1 AND l.org_id = $2");
const BY_BEGINNING: &str = select_any!(
    "grant_log l WHERE l.grant_id >= $1 AND l.grant_id < $3 AND l.org_id = $2 \
     AND l.action = 'add' LIMIT 2"
);
const REMOVAL: &str = select_any!("grant_log l WHERE l.removed_grant_id = $1 AND l.org_id = $2");
const RESTORED: &str = select_any!(
    "grant_log l WHERE l.token = $1 AND l.org_id = $2 AND l.action = 'restore' \
     ORDER BY l.grant_revision DESC LIMIT 1"
);
const REVISION: &str =
    "SELECT COALESCE(MAX(grant_revision), 0) FROM grant_log WHERE (org_id || '') = $1";
const APPEND: &str = "INSERT INTO grant_log (grant_id, org_id, token, action, removed_grant_id,
    session_id, user_id, agent_harness, repo, repository_provider, repository_host, repository_id,
    since_us, reason, recorded_at_us, client_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    RETURNING grant_revision";
const ENFORCE: &str =
    "INSERT INTO grants_in_force (token, org_id, grant_revision) VALUES ($1, $2, $3)";
const END: &str =
    "DELETE FROM grants_in_force WHERE token = $1 AND org_id = $2 AND grant_revision = $3";

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read(row: &Row<'_>) -> Result<GrantRow, StoreError> {
    let mut columns = Columns::of(row, "grant_log", &COLUMNS);
    let revision: i64 = columns.next()?;
    let grant_id = columns.next()?;
    let token: String = columns.next()?;
    let action: String = columns.next()?;
    let removed_grant_id = columns.next()?;
    let session_id: Option<SessionId> = columns.next()?;
    let rule = GrantRule {
        user_id: columns.next::<Option<UserId>>()?,
        agent_harness: columns.next::<Option<AgentHarness>>()?,
        repo: columns.next::<Option<RepositoryName>>()?,
        repository: columns.next::<Option<RepositoryIdentity>>()?,
        since: columns.next::<Option<Instant>>()?,
    };
    let target = match session_id {
        Some(session_id) => Some(GrantTarget::Session(session_id)),
        None if rule == GrantRule::default() => None,
        None => Some(GrantTarget::Rule(rule)),
    };
    Ok(GrantRow {
        revision: revision.unsigned_abs(),
        grant_id,
        token: TokenName::new(&token).map_err(|_| corrupt("grant_log", "token"))?,
        action: GrantAction::from_wire(&action).ok_or(corrupt("grant_log", "action"))?,
        removed_grant_id,
        target,
        reason: columns.next()?,
        recorded_at: columns.next()?,
        client_id: columns.next()?,
        is_in_force: columns.next()?,
    })
}

/// Returns the rows of a token that are in force, oldest first.
fn of_token(
    connection: &mut Connection,
    org_id: &OrgId,
    token: &TokenName,
) -> Result<Vec<GrantRow>, StoreError> {
    let keys = [token.as_str().into(), org_id.as_str().into()];
    connection.all(OF_TOKEN, &keys, read)
}

/// Appends a row. It is in force unless it ends another row.
fn append(
    transaction: &mut Transaction<'_>,
    token: &TokenName,
    (action, target, ended): (GrantAction, Option<&GrantTarget>, Option<&GrantRow>),
    change: &GrantChange,
) -> Result<GrantRow, StoreError> {
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let is_in_force = ended.is_none();
    let removed = ended.filter(|_| action == GrantAction::Remove);
    let removed_grant_id = removed.map(|row| row.grant_id.clone());
    let (session_id, rule) = match target.cloned() {
        Some(GrantTarget::Session(session_id)) => (Some(session_id), GrantRule::default()),
        Some(GrantTarget::Rule(rule)) => (None, rule),
        None => (None, GrantRule::default()),
    };
    let mut values = vec![
        Value::OwnText(change.grant_id.to_string()),
        Value::OwnText(org_id.as_str().to_owned()),
        Value::OwnText(token.as_str().to_owned()),
        action.as_str().into(),
    ];
    removed_grant_id.clone().write(&mut values);
    session_id.write(&mut values);
    rule.user_id.write(&mut values);
    rule.agent_harness.write(&mut values);
    rule.repo.write(&mut values);
    rule.repository.write(&mut values);
    rule.since.write(&mut values);
    change.reason.clone().write(&mut values);
    change.recorded_at.write(&mut values);
    change.client_id.clone().write(&mut values);
    let revision = connection
        .first(APPEND, &values, |row| row.count(0))?
        .ok_or(corrupt("grant_log", "no revision was given"))?;
    let keys = |revision| {
        [
            token.as_str().into(),
            org_id.as_str().into(),
            Value::Integer(number(revision)),
        ]
    };
    match ended {
        Some(ended) => connection.execute(END, &keys(ended.revision))?,
        None => connection.execute(ENFORCE, &keys(revision))?,
    };
    Ok(GrantRow {
        revision,
        grant_id: change.grant_id.to_string(),
        token: token.clone(),
        action,
        removed_grant_id,
        target: target.cloned(),
        reason: change.reason.clone(),
        recorded_at: change.recorded_at,
        client_id: change.client_id.clone(),
        is_in_force,
    })
}

const fn unchanged(row: GrantRow) -> ChangedGrant {
    ChangedGrant {
        row,
        unchanged: true,
    }
}

const fn changed(row: GrantRow) -> ChangedGrant {
    ChangedGrant {
        row,
        unchanged: false,
    }
}

/// Grants a token a target, unless it has the grant already.
pub(crate) fn add(
    transaction: &mut Transaction<'_>,
    token: &TokenName,
    target: &GrantTarget,
    change: &GrantChange,
) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
    // Lock before a revision is drawn and before the token's grants are read.
    transaction.organization()?;
    let rows = of_token(transaction.connection, transaction.org_id, token)?;
    let mut grants = rows
        .into_iter()
        .filter(|row| row.action == GrantAction::Add);
    let mut count = 0;
    for row in &mut grants {
        if row.target.as_ref() == Some(target) {
            return Ok(Ok(unchanged(row)));
        }
        count += 1;
    }
    if count >= TOKEN_GRANTS_MAX {
        return Ok(Err(NoGrant::Full));
    }
    let row = append(
        transaction,
        token,
        (GrantAction::Add, Some(target), None),
        change,
    )?;
    Ok(Ok(changed(row)))
}

/// Ends the one grant that has this id, or whose id begins with it.
pub(crate) fn remove(
    transaction: &mut Transaction<'_>,
    grant_id: &str,
    change: &GrantChange,
) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let grant = match find(connection, org_id, grant_id)? {
        Ok(grant) => grant,
        Err(reason) => return Ok(Err(reason)),
    };
    if !grant.is_in_force {
        let keys = [Value::Text(&grant.grant_id), org_id.as_str().into()];
        let removal = connection.first(REMOVAL, &keys, read)?;
        let removal = removal.ok_or(corrupt("grant_log", "a grant ended by no row"))?;
        return Ok(Ok(unchanged(removal)));
    }
    let ended = (GrantAction::Remove, grant.target.as_ref(), Some(&grant));
    let row = append(transaction, &grant.token, ended, change)?;
    Ok(Ok(changed(row)))
}

/// Finds a grant by its whole id, or else by the beginning of its id.
fn find(
    connection: &mut Connection,
    org_id: &OrgId,
    text: &str,
) -> Result<Result<GrantRow, NoGrant>, StoreError> {
    // Ids are written in lower case.
    let text = text.to_ascii_lowercase();
    let keys = [Value::Text(&text), org_id.as_str().into()];
    let whole = connection.first(BY_ID, &keys, read)?;
    if let Some(grant) = whole.filter(|row| row.action == GrantAction::Add) {
        return Ok(Ok(grant));
    }
    let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if text.len() < FACT_ID_BEGINNING_MIN || !text.bytes().all(is_id) {
        return Ok(Err(NoGrant::Absent));
    }
    // `g` sorts after every character of an id, so this sorts after every id that begins with the
    // text.
    let end = format!("{text}g");
    let keys = [
        Value::Text(&text),
        org_id.as_str().into(),
        Value::Text(&end),
    ];
    let mut found = connection.all(BY_BEGINNING, &keys, read)?;
    Ok(match found.len() {
        0 => Err(NoGrant::Absent),
        1 => found.pop().ok_or(NoGrant::Absent),
        _ => Err(NoGrant::Ambiguous),
    })
}

/// Revokes a token, or restores it.
pub(crate) fn change_token(
    transaction: &mut Transaction<'_>,
    token: &TokenName,
    action: GrantAction,
    change: &GrantChange,
) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let rows = of_token(connection, org_id, token)?;
    let mut rows = rows.into_iter();
    let revocation = rows.find(|row| row.action == GrantAction::Revoke);
    let row = match (action, revocation) {
        (GrantAction::Revoke, Some(revocation)) => return Ok(Ok(unchanged(revocation))),
        (GrantAction::Revoke, None) => append(transaction, token, (action, None, None), change)?,
        (_, None) => {
            let keys = [token.as_str().into(), org_id.as_str().into()];
            let earlier = connection.first(RESTORED, &keys, read)?;
            return Ok(earlier.map(unchanged).ok_or(NoGrant::NotRevoked));
        }
        (_, Some(revocation)) => {
            let ended = (GrantAction::Restore, None, Some(&revocation));
            append(transaction, token, ended, change)?
        }
    };
    Ok(Ok(changed(row)))
}

impl Snapshot<'_> {
    /// Returns the rows of a token that are in force, oldest first: its grants and its revocation.
    pub fn grants_of(&mut self, token: &TokenName) -> Result<Vec<GrantRow>, StoreError> {
        let org_id = self.org_id;
        of_token(self.connection()?, org_id, token)
    }

    /// Returns the last row that restored a token.
    pub fn restoration_of(&mut self, token: &TokenName) -> Result<Option<GrantRow>, StoreError> {
        let keys = [token.as_str().into(), self.org_id.as_str().into()];
        self.connection()?.first(RESTORED, &keys, read)
    }

    /// Returns whether the log has a row with this id.
    pub fn has_grant_row(&mut self, grant_id: &str) -> Result<bool, StoreError> {
        let keys = [Value::Text(grant_id), self.org_id.as_str().into()];
        Ok(self
            .connection()?
            .first(BY_ID, &keys, |_| Ok(()))?
            .is_some())
    }

    /// Returns the latest revision of the log, or 0 if it is empty.
    pub fn grant_revision(&mut self) -> Result<u64, StoreError> {
        let keys = [self.org_id.as_str().into()];
        let revision = self
            .connection()?
            .first(REVISION, &keys, |row| row.count(0))?;
        Ok(revision.unwrap_or_default())
    }

    /// Returns the latest rows before a revision, oldest first: those in force, or all of the log.
    pub fn grant_rows(
        &mut self,
        token: Option<&TokenName>,
        history: bool,
        rows_max: u64,
        before: Option<u64>,
    ) -> Result<Vec<GrantRow>, StoreError> {
        let mut keys = vec![
            self.org_id.as_str().into(),
            number(before.unwrap_or(u64::MAX)).into(),
            number(rows_max).into(),
        ];
        keys.extend(token.map(|token| Value::Text(token.as_str())));
        let text = match (history, token) {
            (false, None) => ALL_IN_FORCE,
            (false, Some(_)) => IN_FORCE_OF_TOKEN,
            (true, None) => LOG,
            (true, Some(_)) => LOG_OF_TOKEN,
        };
        let mut rows = self.connection()?.all(text, &keys, read)?;
        rows.reverse();
        Ok(rows)
    }
}

impl Store {
    /// Grants a token a target, unless it has it already, and waits for the commit.
    ///
    /// # Errors
    ///
    /// If nothing was stored, or it is unknown whether it was. The same holds for every change of
    /// grants.
    pub async fn add_grant(
        &self,
        token: TokenName,
        target: GrantTarget,
        change: GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        let add =
            move |transaction: &mut Transaction<'_>| add(transaction, &token, &target, &change);
        self.writer.run(add).await
    }

    /// Ends the one grant with this id or unique id prefix, and waits for the commit.
    pub async fn remove_grant(
        &self,
        grant_id: String,
        change: GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        let remove =
            move |transaction: &mut Transaction<'_>| remove(transaction, &grant_id, &change);
        self.writer.run(remove).await
    }

    /// Revokes or restores a token, and waits for the commit.
    pub async fn change_token(
        &self,
        token: TokenName,
        action: GrantAction,
        change: GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        let change_token = move |transaction: &mut Transaction<'_>| {
            change_token(transaction, &token, action, &change)
        };
        self.writer.run(change_token).await
    }
}

impl Ledger {
    /// Grants a token a target, unless it has it already.
    ///
    /// # Errors
    ///
    /// See [`Ledger::quarantine`]. The same holds for every change of grants.
    pub fn add_grant(
        &self,
        token: &TokenName,
        target: &GrantTarget,
        change: &GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        self.write(|transaction| add(transaction, token, target, change))
    }

    /// Ends the one grant with this id or unique id prefix.
    pub fn remove_grant(
        &self,
        grant_id: &str,
        change: &GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        self.write(|transaction| remove(transaction, grant_id, change))
    }

    /// Revokes or restores a token.
    pub fn change_token(
        &self,
        token: &TokenName,
        action: GrantAction,
        change: &GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        self.write(|transaction| change_token(transaction, token, action, change))
    }
}
