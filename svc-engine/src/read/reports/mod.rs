//! Reports: what became of the calls of a cohort.
//!
//! A report comes from one snapshot. Mirrors are read as they are and never fetched. Whatever is
//! too much is refused as a whole.

mod additions;
mod answers;
mod calls;
mod ci;
mod edits;
mod extent;
mod halves;
mod history;
mod inferred;
mod memory;
mod merges;
mod mirrors;
mod outcomes;
mod past;
mod population;
mod pushed;
mod resolving;
mod scoring;
mod share;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use svc_model::endpoint::{AcceptedWorkLifecycleReport, ModelOutcomesReport};
use svc_model::id::{FactId, OrgId};
use svc_model::limit::REPORT_ANSWER_BYTES_MAX;
use svc_model::problem::ReportBound;
use svc_model::reports::{
    AcceptedWorkLifecycle, Counts, LifecycleReport, LifecycleRepositorySkips, ModelOutcomes,
    ModelReport, ModelRepositorySkips, ReportRequest,
};
use svc_model::repository::{CommitSha, RepositoryDecline};
use svc_model::time::Instant;
use svc_model::version::Version1;

use self::answers::Answers;
use self::ci::CohortCi;
pub use self::extent::Extent;
use self::history::History;
pub(in crate::read) use self::inferred::{Bounds, Inference, KnownCommit, moment};
pub use self::memory::{MemoryUse, ReportMemory};
pub(in crate::read) use self::mirrors::{OpenMirror, OpenMirrors};
pub use self::past::{abandonment, attribution_share, merge_retention};
use self::population::Population;
pub use self::pushed::attributions_of_pushes;
use svc_engine_derive::attribution::{self, Attributions, Inputs, Note};
use svc_engine_derive::cohort::{self, CohortEvidence};
use svc_engine_derive::declined::DeclinedFacts;
use svc_engine_derive::observed::{ObservedCommit, ObservedEdges};
use svc_engine_derive::repository::Repositories;
use svc_engine_derive::{lifecycle, model_report};
use svc_engine_fact::threads;
use svc_engine_mirror::MirrorReading;
use svc_engine_store::{CohortCall, Snapshot};

use self::resolving::Resolving;
use crate::error::Error;
use crate::read::answer::{AdmissionKind, Answer, ReadContext};

const MINUTE_MICROSECONDS: i64 = 60 * 1_000_000;

/// What reports read besides the store.
#[derive(Clone, Copy, Debug)]
pub struct ReportSources<'s> {
    /// The mirrors, if enabled.
    pub mirrors: Option<&'s MirrorReading>,
    /// What reports remember.
    pub memory: &'s ReportMemory,
}

/// Returns what became of the calls of each model.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many calls, or too many facts about them.
pub fn model_outcomes(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    request: &ReportRequest,
) -> Result<ModelOutcomes, Error> {
    Ok(ModelOutcomes {
        schema_version: Version1,
        scope: request.scope,
        report: model_report(snapshot, sources, &Extent::from(&request.scope))?,
    })
}

/// Returns what became of the calls of each model.
///
/// # Errors
///
/// As [`model_outcomes`].
pub fn model_report(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    extent: &Extent,
) -> Result<ModelReport, Error> {
    let Gathered { cohort, mut reader } = Gathered::new(snapshot, sources, extent, Diffs::Once)?;
    let state = DerivedOf::read(snapshot, &reader)?;
    let (shares, derived) = threads::both(
        || share::read(snapshot, &mut reader, &cohort.population, extent),
        || {
            cohort.derived(&state, |evidence| {
                model_report::derive(evidence, extent.since_days)
            })
        },
    );
    let shares = shares?;
    let derived =
        derived.map_err(|model_report::ModelReportError::TooManyPairs| ReportBound::Reply)?;
    let mut preloaded = shares.declined_observations;
    preloaded.extend(share::declined_of(&cohort.observations));
    let preload = preloaded.into_values().map(|decline| (decline, 1));
    Ok(derived.finish(model_report::ModelParts {
        shares: shares.rows,
        alerts: shares.alerts,
        shares_skipped: shares.skipped,
        repository_skipped: ModelRepositorySkips {
            push_sources: shares.pushes_declined,
            preload_session_observations: preload.collect(),
            assembly_sources: cohort.declined.assembly_sources(),
            // Undetermined facts are dropped before they are matched with anything.
            ..ModelRepositorySkips::default()
        },
        lost_mirrors: reader.lost_mirrors(snapshot)?,
    }))
}

/// Returns what became of accepted work, panel by panel.
///
/// # Errors
///
/// As [`model_outcomes`].
pub fn accepted_work_lifecycle(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    request: &ReportRequest,
) -> Result<AcceptedWorkLifecycle, Error> {
    Ok(AcceptedWorkLifecycle {
        schema_version: Version1,
        scope: request.scope,
        report: lifecycle_report(snapshot, sources, &Extent::from(&request.scope))?,
    })
}

/// Returns what became of accepted work, panel by panel.
///
/// # Errors
///
/// As [`model_outcomes`].
pub fn lifecycle_report(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    extent: &Extent,
) -> Result<LifecycleReport, Error> {
    let mut gathered = Gathered::new(snapshot, sources, extent, Diffs::Again)?;
    let inputs = merges::read(snapshot, &mut gathered, extent)?;
    let Gathered { cohort, reader } = gathered;
    let retry_linkages = cohort.population.retries(snapshot, reader.boundary)?;
    let repository_skipped = LifecycleRepositorySkips {
        session_observations: cohort.declined.observations.clone(),
        attribution_sources: cohort.declined.attribution_sources(),
        ci_population_outcomes: cohort.declined.outcomes.clone(),
    };
    let deadline = snapshot.deadline().clone();
    let state = DerivedOf::read(snapshot, &reader)?;
    let report = cohort.derived(&state, |evidence| {
        let observed = ObservedEdges::new(evidence.observations);
        let (before, merges) = threads::both(
            || lifecycle::BeforeMerges::new(*evidence, &observed),
            || merges::derive(inputs, &reader.history, &deadline),
        );
        Ok::<_, Error>(before.finish(lifecycle::LifecycleParts {
            merges: merges?.evidence(),
            retry_linkages,
            repository_skipped,
        }))
    })?;
    Ok(LifecycleReport {
        lost_mirrors: reader.lost_mirrors(snapshot)?,
        ..report
    })
}

/// What both reports are derived from, and the reader that can read more.
struct Gathered<'g> {
    cohort: CohortFacts,
    reader: Reader<'g>,
}

/// The facts about a cohort.
struct CohortFacts {
    population: Population,
    /// The links of the cohort's Sessions to commits.
    observations: Vec<ObservedCommit>,
    attributions: Attributions,
    /// What is left out because its repository cannot be determined.
    declined: DeclinedFacts,
    ci: CohortCi,
}

/// Reads what pushes brought and what calls answered, and resolves repositories from the facts up
/// to a boundary.
struct Reader<'g> {
    boundary: Instant,
    resolving: Resolving,
    history: History<'g>,
    answers: Answers<'g>,
}

/// The state of the store that a report is derived from.
struct DerivedOf {
    org_id: OrgId,
    quarantine_revision: u64,
    repositories: Arc<Repositories>,
}

impl DerivedOf {
    fn read(snapshot: &mut Snapshot<'_>, reader: &Reader<'_>) -> Result<Self, Error> {
        snapshot.check_deadline()?;
        Ok(Self {
            quarantine_revision: snapshot.quarantine_revision()?,
            org_id: snapshot.org_id().clone(),
            repositories: reader.resolving.known(),
        })
    }
}

/// How often the diffs of commits are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Diffs {
    /// Only for Attribution.
    Once,
    /// Also to score what is left at the merge.
    Again,
}

impl<'g> Gathered<'g> {
    fn new(
        snapshot: &mut Snapshot<'_>,
        sources: ReportSources<'g>,
        extent: &Extent,
        diffs: Diffs,
    ) -> Result<Self, Error> {
        let boundary = snapshot.boundary(Some(extent.as_of))?;
        let (population, pushes) = Population::read(snapshot, sources.memory, extent, boundary)?;
        let mut resolving = Resolving::default();
        for observed in &population.observed {
            resolving.touch_observed(observed);
        }
        for push in &pushes {
            resolving.touch_push(push);
        }
        resolving.read(snapshot, boundary)?;
        let observations: Vec<ObservedCommit> = population
            .observed
            .iter()
            .map(|observed| resolving.observed(observed))
            .collect();
        let mirrors = OpenMirrors::new(sources.mirrors, snapshot.deadline());
        let mut history = History::new(mirrors, sources.memory);
        if diffs == Diffs::Again {
            history.want_again(observations.iter().filter_map(|observed| {
                Some((
                    observed.repository.clone().ok()?,
                    observed.commit_sha.clone(),
                ))
            }));
        }
        let answers = Answers::new(sources.memory);
        let question = Question {
            calls: population.calls.iter().collect(),
            pushes: history.pushed(&pushes, &resolving),
            notes: notes(&observations),
            as_of: extent.as_of,
            answer_bytes_max: REPORT_ANSWER_BYTES_MAX,
            only: None,
        };
        let (has_push, pushes) = (!pushes.is_empty(), declined(&question.pushes));
        let attributions = attribute(snapshot, &mut history, &answers, question)?;
        let rows = attributions
            .rows
            .chunk_by(|file, next| file.commit_sha == next.commit_sha);
        let attributed: BTreeSet<&CommitSha> = rows.map(|files| &files[0].commit_sha).collect();
        let observed = observations.iter().map(|observed| &observed.commit_sha);
        let ci = ci::read(snapshot, &mut resolving, boundary, &attributed, observed)?;
        let declined = DeclinedFacts {
            pushes,
            observations: (share::declined_of(&observations).into_values())
                .map(|decline| (decline, 1))
                .collect(),
            outcomes: ci.resolution.skipped.source_outcomes.clone(),
            has_push: extent.is_all().then_some(has_push),
        };
        Ok(Self {
            cohort: CohortFacts {
                population,
                observations,
                attributions,
                declined,
                ci,
            },
            reader: Reader {
                boundary,
                resolving,
                history,
                answers,
            },
        })
    }
}

impl Reader<'_> {
    /// Counts the repositories whose mirror was asked for and is missing although it was fetched
    /// once: its folder may not be mounted. A repository that was never mirrored is not lost; its
    /// pushes are simply tied to no call.
    fn lost_mirrors(&self, snapshot: &mut Snapshot<'_>) -> Result<Option<u64>, Error> {
        let absent = self.history.mirrors.absent();
        if absent.is_empty() {
            return Ok(None);
        }
        let jobs = snapshot.mirrors(self.boundary)?;
        let lost = jobs
            .iter()
            .filter(|job| job.last_success_at.is_some() && absent.contains(&job.lifetime));
        let lost = lost.count() as u64;
        Ok((lost > 0).then_some(lost))
    }
}

impl CohortFacts {
    /// Derives a report from these facts.
    fn derived<T>(&self, of: &DerivedOf, derive: impl FnOnce(&CohortEvidence<'_>) -> T) -> T {
        let calls: Vec<cohort::CohortCall> = self
            .population
            .calls
            .iter()
            .map(|call| self.population.counted(call))
            .collect();
        derive(&CohortEvidence {
            org_id: &of.org_id,
            quarantine_revision: of.quarantine_revision,
            repositories: &of.repositories,
            calls: &calls,
            attributions: &self.attributions.rows,
            observations: &self.observations,
            decisions: &self.population.decisions,
            edits: &self.population.edits,
            erased_edits: self.population.erased_edits,
            ci: &self.ci.resolution,
        })
    }
}

/// Returns the notes that observations stand for.
fn notes(observations: &[ObservedCommit]) -> Vec<Note> {
    let note = |observed: &ObservedCommit| {
        Some(Note {
            repository: observed.repository.clone().ok()?,
            commit_sha: observed.commit_sha.clone(),
            session_id: observed.session_id.clone(),
        })
    };
    observations.iter().filter_map(note).collect()
}

/// Counts the pushes whose repository cannot be determined.
fn declined(pushes: &[attribution::Push]) -> Counts<RepositoryDecline> {
    let declines = pushes
        .iter()
        .filter_map(|push| push.repository.as_ref().err());
    declines.map(|decline| (*decline, 1)).collect()
}

/// A question: which commits are tied to which calls?
struct Question<'q> {
    /// The competing calls. May contain duplicates.
    calls: Vec<&'q CohortCall>,
    /// The pushes whose commits are matched.
    pushes: Vec<attribution::Push>,
    /// The notes on commits.
    notes: Vec<Note>,
    /// Calls observed later do not compete.
    as_of: Instant,
    /// Maximum canonical bytes of all answers.
    answer_bytes_max: u64,
    /// The commits of each push, if the caller has read them; `None` for everything it brought.
    only: Option<HashMap<FactId, Vec<CommitSha>>>,
}

/// Ties the files of pushed commits to calls, reading from mirrors and answers only what is needed
/// and not remembered.
fn attribute(
    snapshot: &mut Snapshot<'_>,
    history: &mut History<'_>,
    answers: &Answers<'_>,
    question: Question<'_>,
) -> Result<Attributions, Error> {
    let Question {
        calls,
        pushes,
        notes,
        as_of,
        answer_bytes_max,
        mut only,
    } = question;
    let inputs = Inputs {
        calls: calls.iter().copied().map(population::candidate).collect(),
        pushes,
        notes,
    };
    let plan = attribution::Plan::new(inputs, as_of);
    if only.is_none() {
        history.read_ranges(plan.pushes())?;
    }
    let mut commits = plan.with_ranges(|_, push_id| match &mut only {
        Some(only) => only.remove(&push_id),
        None => history.range(push_id),
    });
    let memory = history.memory();
    commits.recall(&memory.reach_key, |repository, commit_sha, reach| {
        let place = (repository.clone(), commit_sha.clone());
        memory.tied.get(&(place, reach))
    });
    history.read_files(&mut commits)?;
    let mut texts = commits.with_files();
    answers.read(snapshot, &mut texts, &calls, answer_bytes_max)?;
    let deadline = snapshot.deadline().clone();
    let mut attributions = texts.attribute(&|| deadline.check())?;
    for commit in attributions.tied.drain(..) {
        let place = (commit.repository, commit.commit_sha);
        memory.tied.insert((place, commit.reach), commit.tied);
    }
    Ok(attributions)
}

/// Returns the moment `minutes` later, clamped to the range of moments.
pub(in crate::read) fn minutes_later(moment: Instant, minutes: i64) -> Instant {
    let later = moment.microseconds() + minutes * MINUTE_MICROSECONDS;
    let start = if later < 0 { 0 } else { later };
    Instant::from_microseconds(start).unwrap_or(Instant::MAX)
}

/// Returns the moment right after, as the end of a range that includes `moment`.
fn just_after(moment: Instant) -> Instant {
    Instant::from_microseconds(moment.microseconds() + 1).unwrap_or(moment)
}

impl Answer for ModelOutcomesReport {
    const ADMISSION: AdmissionKind = AdmissionKind::Report;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        mut request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        request.scope.as_of = reading.bound(request.scope.as_of)?;
        let memory = reading.report_memory()?;
        let sources = reading.report_sources(&memory);
        model_outcomes(reading.snapshot, sources, &request)
    }
}

impl Answer for AcceptedWorkLifecycleReport {
    const ADMISSION: AdmissionKind = AdmissionKind::Report;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        mut request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        request.scope.as_of = reading.bound(request.scope.as_of)?;
        let memory = reading.report_memory()?;
        let sources = reading.report_sources(&memory);
        accepted_work_lifecycle(reading.snapshot, sources, &request)
    }
}
