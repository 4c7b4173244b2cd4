//! What a caller may read: the configured Sessions, or those granted to its token.
//!
//! Grants are read when the token is checked, for this query or an earlier one, so a revoked token,
//! or a Session that no grant can reach, takes no slot. In the query's snapshot, one look-up
//! ([`GrantMark`]) tells whether the grants, and the remembered verdict of their rules about the
//! Session, still hold; only what has changed is read again.

mod seen;

use std::borrow::Cow;
use std::sync::Arc;

use svc_model::endpoint::{GrantExplain, Grants};
use svc_model::grant::{
    GrantAction, GrantEntry, GrantExplanation, GrantExplanationRequest, GrantList, GrantObstacle,
    GrantReach, GrantRequest, GrantScope, GrantVerdict, GrantsRequest, TokenName,
};
use svc_model::id::SessionId;
use svc_model::limit::{GRANT_SESSIONS_MAX, QUARANTINE_LOG_MAX};
use svc_model::problem::QueryFault;
use svc_model::query::RepositorySelector;

pub use self::seen::SeenGrants;
use svc_engine_derive::repository::Selection;
use svc_engine_fact::Lifetime;
use svc_engine_store::{GrantCandidates, GrantMark, GrantRow, GrantRule, GrantTarget, Snapshot};

use super::answer::{AdmissionKind, Answer, ReadContext};
use super::repository::{TouchedRepositories, select};
use crate::error::Error;

/// The Sessions that a caller may read.
#[derive(Clone, Debug)]
pub enum Reach {
    /// All Sessions of the organization.
    All,
    /// Those in the settings.
    Configured(Arc<[SessionId]>),
    /// Those granted to a token.
    Granted(Arc<TokenGrants>),
}

/// The grants of a token that is not revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrants {
    token: TokenName,
    grants: Vec<GrantRow>,
    /// The last row of the log at the time when they were read.
    log_end: Option<String>,
}

impl TokenGrants {
    /// Returns the token.
    pub const fn token(&self) -> &TokenName {
        &self.token
    }

    fn targets(&self) -> impl Iterator<Item = &GrantTarget> {
        self.grants.iter().filter_map(|row| row.target.as_ref())
    }

    fn rules(&self) -> Vec<&GrantRule> {
        self.targets().filter_map(rule).collect()
    }

    fn names(&self, session_id: &SessionId) -> bool {
        self.targets()
            .any(|target| matches!(target, GrantTarget::Session(named) if named == session_id))
    }

    /// Returns whether the grants may reach a Session. Without rules, the answer is exact.
    pub fn may_reach(&self, session_id: &SessionId) -> bool {
        self.names(session_id) || self.targets().any(|target| rule(target).is_some())
    }

    /// Returns the grants, oldest first.
    pub fn scopes(&self) -> Vec<GrantScope> {
        self.targets().cloned().map(scope).collect()
    }
}

const fn rule(target: &GrantTarget) -> Option<&GrantRule> {
    match target {
        GrantTarget::Rule(rule) => Some(rule),
        GrantTarget::Session(_) => None,
    }
}

/// Returns the grants of a token.
///
/// # Errors
///
/// If the token is revoked.
pub fn token_grants(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    token: &TokenName,
) -> Result<Arc<TokenGrants>, Error> {
    let log_end = snapshot.grant_log_end()?;
    read_grants(snapshot, seen, token, log_end)
}

/// Returns a revocation of a token that this process has seen and the store has lost, unless the
/// token was restored after it.
pub fn lost_revocation(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    token: &TokenName,
) -> Result<Option<GrantRow>, Error> {
    let Some(revocation) = seen.of(token) else {
        return Ok(None);
    };
    if snapshot.has_grant_row(&revocation.row.grant_id)? {
        return Ok(None);
    }
    let restored = snapshot.restoration_of(token)?;
    let is_taken_back = restored.is_some_and(|row| {
        row.recorded_at >= revocation.row.recorded_at
            && revocation.restored_before.as_ref() != Some(&row.grant_id)
    });
    Ok((!is_taken_back).then_some(revocation.row))
}

fn read_grants(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    token: &TokenName,
    log_end: Option<String>,
) -> Result<Arc<TokenGrants>, Error> {
    let grants = snapshot.grants_of(token)?;
    if let Some(revocation) = grants.iter().find(|row| row.action == GrantAction::Revoke) {
        if !seen.has(token, revocation) {
            let restored = snapshot.restoration_of(token)?;
            seen.set(token, revocation, restored.map(|row| row.grant_id));
        }
        return Err(Error::TokenRevoked);
    }
    if lost_revocation(snapshot, seen, token)?.is_some() {
        tracing::warn!(%token, "grants.revocation_is_gone_from_the_store");
        return Err(Error::TokenRevoked);
    }
    seen.forget(token);
    let grants = Arc::new(TokenGrants {
        token: token.clone(),
        grants,
        log_end,
    });
    seen.keep(&grants);
    Ok(grants)
}

/// Returns the grants of a token in this snapshot, whose log ends with `log_end`.
fn current(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    grants: Arc<TokenGrants>,
    log_end: Option<String>,
) -> Result<Arc<TokenGrants>, Error> {
    if grants.log_end == log_end {
        return Ok(grants);
    }
    read_grants(snapshot, seen, &grants.token, log_end)
}

/// Returns whether a token was granted a Session, by its id or by a rule.
fn is_granted(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    mut grants: Arc<TokenGrants>,
    session_id: &SessionId,
) -> Result<bool, Error> {
    if grants.names(session_id) {
        let log_end = snapshot.grant_log_end()?;
        grants = current(snapshot, seen, grants, log_end)?;
        if grants.names(session_id) {
            return Ok(true);
        }
    }
    let mark = snapshot.grant_mark(session_id)?;
    grants = current(snapshot, seen, grants, mark.grants.clone())?;
    Ok(grants.names(session_id) || is_reached_by_rule(snapshot, seen, &grants, session_id, mark)?)
}

/// Returns whether the rules of a token reach a Session, from memory or from the facts.
fn is_reached_by_rule(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    grants: &TokenGrants,
    session_id: &SessionId,
    mark: GrantMark,
) -> Result<bool, Error> {
    let rules = grants.rules();
    if rules.is_empty() || !mark.is_session_known() {
        return Ok(false);
    }
    if let Some(is_reached) = seen.verdict(&grants.token, session_id, &mark) {
        return Ok(is_reached);
    }
    let obstacles = snapshot.grant_obstacles(&rules, session_id)?;
    let is_reached = obstacles.iter().flatten().any(Vec::is_empty);
    seen.keep_verdict(&grants.token, session_id, mark, is_reached);
    Ok(is_reached)
}

/// Checks that a caller may read a Session.
///
/// # Errors
///
/// If it may not, whether or not the Session exists; or if its token has been revoked.
pub fn check_reach(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    reach: &Reach,
    session_id: &SessionId,
) -> Result<(), Error> {
    let is_reached = match reach {
        Reach::All => true,
        Reach::Configured(sessions) => sessions.contains(session_id),
        Reach::Granted(grants) => is_granted(snapshot, seen, Arc::clone(grants), session_id)?,
    };
    if is_reached {
        Ok(())
    } else {
        Err(Error::OutsideGrant)
    }
}

/// Returns the Sessions that a caller may read, sorted. Of the Sessions that a rule would have to
/// examine, it examines the latest.
///
/// # Errors
///
/// If the token has been revoked.
pub fn reached<'r>(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    reach: &'r Reach,
) -> Result<Cow<'r, [SessionId]>, Error> {
    reached_of(snapshot, seen, reach).map(|(sessions, _)| sessions)
}

/// Returns the Sessions that a caller may read, as [`reached`] does, if they are few and certainly
/// all.
///
/// # Errors
///
/// If the token has been revoked.
pub fn few_reached(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    reach: &Reach,
) -> Result<Option<Vec<SessionId>>, Error> {
    let (sessions, is_over) = reached_of(snapshot, seen, reach)?;
    let is_listed = !is_over && sessions.len() <= GRANT_SESSIONS_MAX;
    Ok(is_listed.then(|| sessions.into_owned()))
}

/// Returns the Sessions that a caller may read, and whether a rule has more to examine.
fn reached_of<'r>(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    reach: &'r Reach,
) -> Result<(Cow<'r, [SessionId]>, bool), Error> {
    let grants = match reach {
        Reach::All => return Ok((Cow::Borrowed(&[]), false)),
        Reach::Configured(sessions) => return Ok((Cow::Borrowed(sessions), false)),
        Reach::Granted(grants) => grants,
    };
    let mut candidates = snapshot.grant_candidates(&grants.rules())?;
    let log_end = candidates.grants.clone();
    let now = current(snapshot, seen, Arc::clone(grants), log_end)?;
    if !Arc::ptr_eq(&now, grants) {
        candidates = snapshot.grant_candidates(&now.rules())?;
    }
    let is_over = candidates.is_over;
    let mut sessions = reached_by_rules(snapshot, seen, &now, candidates)?;
    let named = now.targets().filter_map(|target| match target {
        GrantTarget::Session(session_id) => Some(session_id.clone()),
        GrantTarget::Rule(_) => None,
    });
    sessions.extend(named);
    sessions.sort_unstable();
    sessions.dedup();
    Ok((Cow::Owned(sessions), is_over))
}

/// Returns the candidates that the rules of a token reach, from memory or from the facts.
fn reached_by_rules(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    grants: &TokenGrants,
    candidates: GrantCandidates,
) -> Result<Vec<SessionId>, Error> {
    let mut reached = Vec::new();
    let mut undecided = Vec::new();
    for (session_id, mark) in candidates.sessions {
        match seen.verdict(&grants.token, &session_id, &mark) {
            Some(true) => reached.push(session_id),
            Some(false) => {}
            None => undecided.push((session_id, mark)),
        }
    }
    if undecided.is_empty() {
        return Ok(reached);
    }
    let mut among = Vec::new();
    if undecided.len() <= GRANT_SESSIONS_MAX {
        among.extend(undecided.iter().map(|(session_id, _)| session_id.clone()));
    }
    let found = snapshot.grant_reach(&grants.rules(), &among)?.sessions;
    for (session_id, mark) in undecided {
        let is_reached = found.binary_search(&session_id).is_ok();
        seen.keep_verdict(&grants.token, &session_id, mark, is_reached);
        if is_reached {
            reached.push(session_id);
        }
    }
    Ok(reached)
}

/// Returns the scope of a request for a grant. A repository name stands for the repository that has
/// it now, so a repository that takes the name later is not included.
///
/// # Errors
///
/// If no repository has the name, several have it, or only one with another identity has it.
pub fn grant_target(
    snapshot: &mut Snapshot<'_>,
    request: &GrantRequest,
) -> Result<GrantTarget, Error> {
    if let Some(session_id) = &request.session_id {
        return Ok(GrantTarget::Session(session_id.clone()));
    }
    let mut repository = request.repository.clone();
    if request.repo.is_some() {
        let selector = RepositorySelector {
            repo: request.repo.clone(),
            identity: repository.clone(),
        };
        let boundary = snapshot.boundary(None)?;
        let repositories = TouchedRepositories::by(&selector).read(snapshot, boundary)?;
        repository = match select(snapshot, &repositories, &selector, boundary)? {
            Selection::One(Lifetime::Identified(identity)) => Some(identity),
            Selection::One(Lifetime::Named(name))
                if snapshot.is_repository_named(&name, boundary)? =>
            {
                None
            }
            // A name without facts may later belong to any repository.
            Selection::One(Lifetime::Named(_)) | Selection::All | Selection::None => {
                return Err(QueryFault::RepositoryAbsent.into());
            }
        };
    }
    Ok(GrantTarget::Rule(GrantRule {
        user_id: request.user_id.clone(),
        agent_harness: request.agent_harness,
        repo: request.repo.clone(),
        repository,
        since: request.since,
    }))
}

/// Returns how many Sessions a grant reaches by itself.
///
/// # Errors
///
/// If the store does not answer.
pub fn grant_reach(snapshot: &mut Snapshot<'_>, row: &GrantRow) -> Result<GrantReach, Error> {
    Ok(match &row.target {
        None => GrantReach {
            sessions: 0,
            over_limit: false,
        },
        Some(GrantTarget::Session(session_id)) => GrantReach {
            sessions: u64::from(snapshot.session_known(session_id)?),
            over_limit: false,
        },
        Some(GrantTarget::Rule(rule)) => {
            let found = snapshot.grant_reach(&[rule], &[])?;
            GrantReach {
                sessions: found.sessions.len() as u64,
                over_limit: found.is_over,
            }
        }
    })
}

/// Returns the latest grants, or rows of the log, before the one in the request, oldest first.
///
/// # Errors
///
/// If the store does not answer.
pub fn grants(snapshot: &mut Snapshot<'_>, request: &GrantsRequest) -> Result<GrantList, Error> {
    let limit = request.limit.min(QUARANTINE_LOG_MAX);
    let token = request.token.as_ref();
    // One more row than the page shows whether there are earlier ones.
    let mut rows = snapshot.grant_rows(token, request.history, limit + 1, request.before)?;
    let more = rows.len() as u64 > limit;
    if more {
        rows.remove(0);
    }
    Ok(GrantList {
        org_id: snapshot.org_id().clone(),
        grant_revision: snapshot.grant_revision()?,
        next_before: rows.first().map(|row| row.revision).filter(|_| more),
        entries: rows.into_iter().map(grant_entry).collect(),
        configured_tokens: None,
    })
}

/// Returns which grants of a token reach a Session, and why the others do not.
///
/// # Errors
///
/// If the store does not answer.
pub fn explain_grant(
    snapshot: &mut Snapshot<'_>,
    request: GrantExplanationRequest,
) -> Result<GrantExplanation, Error> {
    let GrantExplanationRequest { token, session_id } = request;
    let rows = snapshot.grants_of(&token)?;
    let rules: Vec<&GrantRule> = rows
        .iter()
        .filter_map(|row| row.target.as_ref().and_then(rule))
        .collect();
    let obstacles = snapshot.grant_obstacles(&rules, &session_id)?;
    let found = obstacles.is_some();
    let mut of_rules = obstacles.into_iter().flatten();
    let mut revocation = None;
    let mut entries = Vec::new();
    for row in rows {
        let obstacles = match &row.target {
            None => {
                revocation = Some(grant_entry(row));
                continue;
            }
            Some(GrantTarget::Session(named)) if *named == session_id => Vec::new(),
            Some(GrantTarget::Session(_)) => vec![GrantObstacle::OtherSession],
            Some(GrantTarget::Rule(_)) => {
                let obstacles = of_rules.next();
                obstacles.unwrap_or_else(|| vec![GrantObstacle::NothingVisible])
            }
        };
        entries.push(GrantVerdict {
            entry: grant_entry(row),
            grants: obstacles.is_empty(),
            obstacles: obstacles.into_iter().map(Into::into).collect(),
        });
    }
    Ok(GrantExplanation {
        org_id: snapshot.org_id().clone(),
        token,
        session_id,
        configured: None,
        found,
        granted: revocation.is_none() && entries.iter().any(|verdict| verdict.grants),
        revocation,
        entries,
    })
}

/// Returns the explanation of [`explain_grant`] as this process enforces it, with a revocation that
/// the store has lost.
///
/// # Errors
///
/// If the store does not answer.
pub fn explain_enforced_grant(
    snapshot: &mut Snapshot<'_>,
    seen: &SeenGrants,
    request: GrantExplanationRequest,
) -> Result<GrantExplanation, Error> {
    let mut explanation = explain_grant(snapshot, request)?;
    if explanation.revocation.is_none()
        && let Some(row) = lost_revocation(snapshot, seen, &explanation.token)?
    {
        explanation.revocation = Some(grant_entry(row));
        explanation.granted = false;
    }
    Ok(explanation)
}

/// Returns a row of the log in the form of replies.
pub fn grant_entry(row: GrantRow) -> GrantEntry {
    GrantEntry {
        grant_revision: row.revision,
        grant_id: row.grant_id,
        action: row.action.into(),
        token: row.token,
        scope: row.target.map(scope),
        removed_grant_id: row.removed_grant_id,
        reason: row.reason,
        recorded_at: row.recorded_at,
        client_id: row.client_id,
        in_force: row.is_in_force,
    }
}

fn scope(target: GrantTarget) -> GrantScope {
    match target {
        GrantTarget::Session(session_id) => GrantScope {
            session_id: Some(session_id),
            ..GrantScope::default()
        },
        GrantTarget::Rule(rule) => GrantScope {
            session_id: None,
            user_id: rule.user_id,
            agent_harness: rule.agent_harness.map(Into::into),
            repo: rule.repo,
            repository: rule.repository.map(Into::into),
            since: rule.since,
        },
    }
}

impl Answer for Grants {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        grants(reading.snapshot, &request)
    }
}

impl Answer for GrantExplain {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        explain_enforced_grant(reading.snapshot, &reading.resources.grants, request)
    }
}
