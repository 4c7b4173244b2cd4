//! The text beside a structured result, for agents that read only text.
//!
//! The text of a compact answer says the same as its structure. A dossier is given in full, up to a
//! limit. Captured text is quoted and has no control characters, so it cannot pass for a line of this
//! service.

mod lines;
mod member;
mod outline;
mod spend;

use rmcp::model::JsonObject;
use svc_model::endpoint::{AcceptedWorkLifecycleReport, Endpoint, ModelOutcomesReport};
use svc_model::json::{Json, Object, from_value};
use svc_view::SHELL;

pub(crate) use self::lines::written;
pub(crate) use self::member::{counted, one_line};
pub(crate) use self::spend::spend;
use crate::answer::call;

/// The maximum number of characters of a dossier. This is about 8,000 tokens, which agents accept in
/// one result.
const WHOLE_CHARACTERS_MAX: usize = 32_768;

/// The text of a dossier, and what is said about it besides.
pub(crate) type DossierText = (String, Option<String>);

/// Writes what became of a Session.
pub(crate) fn session(body: &Object) -> DossierText {
    let mut calls = JsonObject::new();
    if let Some(session) = body.get("session_id").and_then(Json::as_str) {
        calls.insert("session_id".to_owned(), session.into());
    }
    let next = format!(
        "Next: {} for its calls, commit_dossier with the commit_sha of a commit, ci_run with the \
         run_id of an outcome.",
        call("open_evidence", calls)
    );
    (dossier(body, &next), None)
}

/// Writes what is known about a commit.
pub(crate) fn commit(body: &Object) -> DossierText {
    let next = "Next: session_dossier with a session_id, ci_run with the run_id of an outcome; for \
                less, call commit_dossier for one repository.";
    (dossier(body, next), None)
}

/// Writes what is known about a CI run.
pub(crate) fn ci_runs(body: &Object) -> DossierText {
    let next = "Next: commit_dossier with a commit_sha, session_dossier with a session_id; for \
                less, call ci_run with the provider of the run and its repository.";
    (dossier(body, next), None)
}

/// Writes the outcomes by model.
pub(crate) fn model_outcomes(body: &Object) -> DossierText {
    let unknown = typed::<ModelOutcomesReport>(body).and_then(|outcomes| {
        let report = outcomes.report;
        let counts = SHELL.unobservable_calls_of_all(&report)?;
        let all = report
            .unobservable()
            .map(|why| why.sentence("attribution_rate"));
        let rest = all.unwrap_or_else(|| {
            "Where attribution_observable is 0, attribution_rate is unknown, not 0; elsewhere the \
             rate of what could be observed is attributed_inference_calls divided by it."
                .to_owned()
        });
        Some(format!("attribution_rate: {counts}. {rest}"))
    });
    report(body, unknown)
}

/// Writes the lifecycle of accepted work.
pub(crate) fn accepted_work_lifecycle(body: &Object) -> DossierText {
    let unknown = typed::<AcceptedWorkLifecycleReport>(body).and_then(|lifecycle| {
        let report = lifecycle.report;
        let has_work = report.session_attrition.eligible_sessions > 0;
        let why = report.commits_unobservable().filter(|_| has_work);
        Some(why?.sentence("What was committed"))
    });
    report(body, unknown)
}

/// Reads a reply as the type of its route.
fn typed<E: Endpoint>(body: &Object) -> Option<E::Reply> {
    from_value(Json::Object(body.clone())).ok()
}

/// Writes a report. `unknown` says which of its rates are unknown although they read as 0.
fn report(body: &Object, unknown: Option<String>) -> DossierText {
    let next = "For less, call again with fewer since_days.";
    (dossier(body, next), unknown)
}

/// Writes a dossier as JSON. If that is too long, writes an outline and how to read the rest.
fn dossier(body: &Object, next: &str) -> String {
    let mut whole = Vec::new();
    body.write_canonical(&mut whole);
    let whole = one_line(&String::from_utf8_lossy(&whole));
    if whole.chars().count() <= WHOLE_CHARACTERS_MAX {
        return whole;
    }
    format!("{}\n{next}", outline::outline(body))
}

#[cfg(test)]
mod tests;
