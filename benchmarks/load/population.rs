//! An organization that has used the service for half a year, written through the store.
//!
//! Everything about a fact is derived from its number, so the benchmarks know what to ask for
//! without reading it back. One repository has a fifth of all pushes, as a shared one would. A
//! tenth of the others is known by name alone, and some were renamed half-way.

use std::time::{Duration, Instant as Moment};

use svc_engine::fact::{
    CiOutcome, DeveloperDecision, EditObservation, EditTexts, InferenceCall, ObservationOrigin,
    Push, RepositoryRename, SessionCommitObservation,
};
use svc_engine::store::Append;
use svc_engine::testing::builders;
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId};
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::json::{Json, Object, Text};
use svc_model::repository::{
    Branch, CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName,
    RepositoryProvider,
};
use svc_model::time::Instant;

use crate::Failure;
use crate::sink::Sink;

/// The number of repositories in the organization. The first is the shared one.
const REPOSITORIES: u64 = 400;
/// The percentage of pushes to the shared repository.
const SHARED_PERCENT: u64 = 20;
/// The CI outcomes of each push.
pub(crate) const RUNS: u64 = 5;
/// The workflows, one for each outcome of a push.
pub(crate) const WORKFLOWS: [&str; RUNS as usize] =
    ["lint", "unit tests", "integration", "package", "deploy"];
/// The number of pushes per observed Session.
const PUSHES_PER_SESSION: u64 = 8;
/// The calls of a Session.
const CALLS: u64 = 10;
/// The decisions and edit observations of a Session.
const DECISIONS: u64 = 4;
const EDITS: u64 = 2;
/// The commits and calls of the one large Session.
pub(crate) const LARGE_COMMITS: u64 = 100;
pub(crate) const LARGE_CALLS: u64 = 490;
/// The number of pull requests that the runs of one repository belong to.
const PULL_REQUESTS: u64 = 2_000;
/// When it begins, and the time between two pushes.
const BEGIN: &str = "2026-01-01T00:00:00Z";
const INTERVAL_MICROSECONDS: i64 = 75_000_000;

/// The kinds of facts, which keep their ids distinct.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FactKind {
    Push = 1,
    Outcome,
    Call,
    Decision,
    Edit,
    Observation,
    Rename,
    Revision,
    Merge,
    Retry,
}

/// An organization of a given size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Population {
    /// The number of pushes. Each has [`RUNS`] outcomes.
    pub(crate) pushes: u64,
    /// The number of Sessions besides the large one.
    pub(crate) sessions: u64,
    begin: Instant,
}

/// A repository, as it was named at the time of a push.
#[derive(Clone, Debug)]
pub(crate) struct NamedRepository {
    pub(crate) name: RepositoryName,
    pub(crate) identity: Option<RepositoryIdentity>,
}

impl Population {
    /// Returns this share of an organization with 200,000 pushes, 1,000,000 outcomes and 240,000
    /// calls.
    pub(crate) fn new(share: f64) -> Result<Self, Failure> {
        let of = |whole: f64| (whole * share).round() as u64;
        let population = Self {
            pushes: of(200_000.0),
            sessions: of(24_000.0),
            begin: Instant::parse(BEGIN)?,
        };
        if population.pushes < 2 * LARGE_COMMITS * PUSHES_PER_SESSION || population.sessions == 0 {
            return Err("the population is too small".into());
        }
        Ok(population)
    }

    /// Returns the moment of a push.
    pub(crate) fn pushed_at(&self, push: u64) -> Instant {
        self.after(push, 0)
    }

    /// Returns the moment this many microseconds after a push. All are long before 2262.
    fn after(&self, push: u64, microseconds: i64) -> Instant {
        let since = push as i64 * INTERVAL_MICROSECONDS + microseconds;
        Instant::from_microseconds(self.begin.microseconds() + since).unwrap_or(self.begin)
    }

    /// Returns the number of the repository of a push.
    fn repository_number(push: u64) -> u64 {
        let draw = mix(push, 11);
        if draw % 100 < SHARED_PERCENT {
            0
        } else {
            1 + mix(push, 12) % (REPOSITORIES - 1)
        }
    }

    /// Returns the repository of a push, under its name at that time.
    pub(crate) fn repository(&self, push: u64) -> NamedRepository {
        Self::named(Self::repository_number(push), push >= self.pushes / 2)
    }

    /// Returns a repository. If `later`, it is named as after its renaming, if it was ever renamed.
    fn named(number: u64, later: bool) -> NamedRepository {
        let word = if Self::is_renamed(number) && !later {
            "former"
        } else {
            "service"
        };
        let name = format!("team-{}/{word}-{number}", number % 40);
        NamedRepository {
            name: RepositoryName::new(&name).expect("owner/name"),
            identity: (number % 10 != 9).then(|| RepositoryIdentity {
                repository_provider: RepositoryProvider::Github,
                repository_host: RepositoryHost::new("github.com").expect("a host"),
                repository_id: RepositoryId::new(&(500_000_000 + number * 7_919).to_string())
                    .expect("an id"),
            }),
        }
    }

    const fn is_renamed(number: u64) -> bool {
        number % 20 == 3
    }

    /// Returns the shared repository.
    pub(crate) fn shared() -> NamedRepository {
        Self::named(0, true)
    }

    /// Returns a push near this one whose repository is a wanted one.
    pub(crate) fn nearest(
        &self,
        push: u64,
        wanted: impl Fn(&NamedRepository) -> bool,
    ) -> Option<u64> {
        (push..self.pushes)
            .chain(0..push)
            .find(|push| wanted(&self.repository(*push)))
    }

    /// Returns the commit of a push. The first push is based on the commit before push 0.
    pub(crate) fn commit(push: u64) -> CommitSha {
        let low = push as u32;
        let digits = format!("{:016x}{:016x}{low:08x}", mix(push, 21), mix(push, 22));
        CommitSha::new(&digits).expect("40 digits")
    }

    /// Returns the id of one of the runs of a push.
    pub(crate) fn run_id(push: u64, run: u64) -> String {
        format!("{}", 7_000_000_000 + push * RUNS + run)
    }

    /// Returns the attempt of a run, if its system counts attempts.
    pub(crate) const fn run_attempt(run: u64) -> Option<i64> {
        if run < 3 { Some(1) } else { None }
    }

    /// Returns the CI system of a run.
    pub(crate) const fn run_provider(run: u64) -> CiProvider {
        if run < 3 {
            CiProvider::ForgeActions
        } else {
            CiProvider::CiB
        }
    }

    /// Returns the pull request of a push.
    pub(crate) const fn pull_request(push: u64) -> i64 {
        (1 + push / 60 % PULL_REQUESTS) as i64
    }

    /// Returns the id of a Session.
    pub(crate) fn session(number: u64) -> SessionId {
        let (high, low) = (mix(number, 31), mix(number, 32));
        SessionId::new(&format!("session-{high:016x}{low:016x}")).expect("an id")
    }

    /// Returns the id of the large Session.
    pub(crate) fn large_session() -> SessionId {
        SessionId::new("session-large").expect("an id")
    }

    /// Returns the first of the two pushes at which a Session was observed.
    pub(crate) fn first_push(&self, session: u64) -> u64 {
        session * PUSHES_PER_SESSION % self.pushes
    }

    /// Returns the approximate number of facts.
    pub(crate) const fn facts(&self) -> u64 {
        self.pushes * (1 + RUNS) + self.sessions * (CALLS + DECISIONS + EDITS + 2)
    }

    /// Returns some commits that a Session was observed at.
    pub(crate) fn some_observed_commits(&self, count: usize) -> Vec<CommitSha> {
        let session = |number: usize| mix(number as u64, 76) % self.sessions;
        let commits = (0..count).map(|number| Self::commit(self.first_push(session(number))));
        commits.collect()
    }

    /// Writes the organization into a database.
    pub(crate) fn write(&self, url: &str) -> Result<Duration, Failure> {
        let begin = Moment::now();
        let mut sink = Sink::open(url)?;
        for push in 0..self.pushes {
            if push == self.pushes / 2 {
                self.renames(&mut sink)?;
            }
            self.push(push, &mut sink)?;
            if push % PUSHES_PER_SESSION == 1 && push / PUSHES_PER_SESSION < self.sessions {
                self.session_facts(push / PUSHES_PER_SESSION, &mut sink)?;
            }
        }
        self.large(&mut sink)?;
        sink.finish()?;
        Ok(begin.elapsed())
    }

    fn renames(&self, sink: &mut Sink) -> Result<(), Failure> {
        for number in (0..REPOSITORIES).filter(|number| Self::is_renamed(*number)) {
            let (old, new) = (Self::named(number, false), Self::named(number, true));
            if let Some(repository) = new.identity {
                sink.add(Append::RepositoryRename(Box::new(RepositoryRename {
                    rename_id: fact_id(FactKind::Rename, number),
                    repository,
                    old_repo: old.name,
                    new_repo: new.name,
                    source_event_id: Some(format!("rename-{number}")),
                    occurred_at: None,
                    captured_at: self.after(self.pushes / 2, -1),
                })))?;
            }
        }
        Ok(())
    }

    fn push(&self, push: u64, sink: &mut Sink) -> Result<(), Failure> {
        let repository = self.repository(push);
        sink.add(Append::Push(Box::new(Push {
            push_id: fact_id(FactKind::Push, push),
            provider: RepositoryProvider::Github,
            repo: repository.name.as_str().to_owned(),
            repository: repository.identity.clone(),
            clone_url: format!("https://github.com/{}.git", repository.name),
            r#ref: format!("refs/heads/work-{}", push / 60),
            before_sha: Self::commit(push.wrapping_sub(1)),
            after_sha: Self::commit(push),
            forced: mix(push, 13).is_multiple_of(50),
            captured_at: self.pushed_at(push),
        })))?;
        for run in 0..RUNS {
            sink.add(Append::CiOutcome(Box::new(self.outcome(
                push,
                run,
                &repository,
            ))))?;
        }
        Ok(())
    }

    fn outcome(&self, push: u64, run: u64, repository: &NamedRepository) -> CiOutcome {
        let result = match mix(push, 41 + run) % 1_000 {
            0..120 => CiResult::Failed,
            120..150 => CiResult::Cancelled,
            150..160 => CiResult::Error,
            160..162 => CiResult::TimedOut,
            _ => CiResult::Passed,
        };
        let failed = result != CiResult::Passed;
        CiOutcome {
            provider: Self::run_provider(run),
            run_attempt: Self::run_attempt(run),
            repo: repository.name.as_str().to_owned(),
            repository: repository.identity.clone(),
            commit_sha: Self::commit(push),
            branch: Branch::new(&format!("work-{}", push / 60)).expect("a branch"),
            workflow_name: Text::from(WORKFLOWS[run as usize]),
            workflow_id: Some((90_000 + run).to_string()),
            workflow_path: Some(format!(".github/workflows/{run}.yml")),
            result,
            run_url: Some(Text::from(format!(
                "https://github.com/{}/actions/runs/{}",
                repository.name,
                Self::run_id(push, run)
            ))),
            provider_result: Some(Text::from(if failed { "failure" } else { "success" })),
            reason: failed.then(|| Text::from("step 7 of 12: 3 of 1,204 tests failed")),
            pr_number: (run < 3).then(|| Self::pull_request(push)),
            signed: true,
            captured_at: self.after(push, 20_000_000 + run as i64 * 7_000_000),
            raw: if run < 3 {
                run_description(push, run)
            } else {
                Json::Object(Object::new())
            },
            ..builders::outcome(0, &Self::run_id(push, run))
        }
        .with_id(fact_id(FactKind::Outcome, push * RUNS + run))
    }

    fn session_facts(&self, number: u64, sink: &mut Sink) -> Result<(), Failure> {
        let session = Self::session(number);
        let first = self.first_push(number);
        for call in 0..CALLS {
            Self::call(
                &session,
                number * CALLS + call,
                self.after(first, call as i64),
                sink,
            )?;
        }
        for decision in 0..DECISIONS {
            let tool = format!("tool-{number}-{decision}");
            sink.add(Append::DeveloperDecision(Box::new(DeveloperDecision {
                decision_id: fact_id(FactKind::Decision, number * DECISIONS + decision),
                session_id: session.clone(),
                user_id: None,
                agent_harness: AgentHarness::ClaudeCode,
                file_path: format!("src/module_{decision}.rs"),
                accepted: decision != 0,
                explicit: true,
                interaction_mode: InteractionMode::Agent,
                commit_sha: None,
                call_id: Some(tool),
                edit_retention_score: None,
                observation_delay_ms: None,
                occurred_at: self.after(first, 1_000 + decision as i64),
                captured_at: self.after(first, 2_000_000),
                raw: Json::Object(Object::new()),
            })))?;
        }
        for edit in 0..EDITS {
            sink.add(Append::EditObservation(Box::new(EditObservation {
                observation_id: fact_id(FactKind::Edit, number * EDITS + edit),
                session_id: session.clone(),
                user_id: None,
                agent_harness: AgentHarness::ClaudeCode,
                call_id: format!("tool-{number}-{edit}"),
                file_path: format!("src/module_{edit}.rs"),
                texts: EditTexts {
                    applied: Text::from("fn total(&self) -> u64 { self.lines.len() as u64 }"),
                    observed_file: Text::from("impl Ledger { fn total(&self) -> u64 { 0 } }"),
                },
                external_lines_added: Some(1),
                external_lines_removed: None,
                occurred_at: self.after(first, 3_000 + edit as i64),
                captured_at: self.after(first, 3_000_000),
                raw: Json::Object(Object::new()),
            })))?;
        }
        for push in [first, first + 1] {
            self.observe(&session, number * 2 + push - first, push, sink)?;
        }
        Ok(())
    }

    /// Writes the Session that comes close to every bound of a dossier: long work in the shared
    /// repository.
    fn large(&self, sink: &mut Sink) -> Result<(), Failure> {
        let session = Self::large_session();
        for call in 0..LARGE_CALLS {
            let at = self.after(0, call as i64);
            Self::call(&session, self.sessions * CALLS + call, at, sink)?;
        }
        let shared = (0..self.pushes).filter(|push| Self::repository_number(*push) == 0);
        for (commit, push) in (0..LARGE_COMMITS).zip(shared) {
            self.observe(&session, self.sessions * 2 + commit, push, sink)?;
        }
        Ok(())
    }

    fn call(
        session: &SessionId,
        number: u64,
        observed_at: Instant,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let question = format!("why does total {number} not add up?");
        let answer = format!("line {number} counts the header twice");
        let call = builders::call(u128::from(number))
            .session(session.as_str())
            .model_call(&format!("chatcmpl-{:016x}", mix(number, 51)))
            .input(vec![
                builders::text("system", "You are a careful engineer."),
                builders::text("user", &question),
            ])
            .output(vec![builders::text("assistant", &answer)])
            .build();
        let call = InferenceCall {
            inference_call_id: fact_id(FactKind::Call, number),
            input_tokens: Some(1_200),
            output_tokens: Some(340),
            duration_ms: Some(4_100),
            observed_at,
            ..call
        };
        sink.call(call, observed_at)
    }

    fn observe(
        &self,
        session: &SessionId,
        number: u64,
        push: u64,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let repository = self.repository(push);
        sink.add(Append::SessionCommitObservation(Box::new(
            SessionCommitObservation {
                observation_id: fact_id(FactKind::Observation, number),
                session_id: session.clone(),
                repo: repository.name,
                repository: repository.identity,
                commit_sha: Self::commit(push),
                source_push_id: fact_id(FactKind::Push, push),
                origin: ObservationOrigin::Note("refs/notes/svc".to_owned()),
                captured_at: self.after(push, 5_000_000),
            },
        )))
    }
}

/// Returns part of what the forge says about a run.
fn run_description(push: u64, run: u64) -> Json {
    let text = format!(
        "{{\"id\":{},\"event\":\"push\",\"run_number\":{push},\"status\":\"completed\",\
         \"head_commit\":{{\"message\":\"Count every line once\",\"timestamp\":\"2026-01-01T00:00:00Z\"}}}}",
        Population::run_id(push, run)
    );
    Json::parse(text.as_bytes()).expect("JSON")
}

/// Sets the id of an outcome.
trait WithId {
    fn with_id(self, outcome_id: FactId) -> Self;
}

impl WithId for CiOutcome {
    fn with_id(self, outcome_id: FactId) -> Self {
        Self { outcome_id, ..self }
    }
}

/// Returns the id of a fact. Like a random id, it may be anywhere in an index.
pub(crate) fn fact_id(kind: FactKind, number: u64) -> FactId {
    let (high, low) = (mix(number, kind as u64), mix(number, 100 + kind as u64));
    let random = (u128::from(high) << 64) | u128::from(low);
    let bytes = random.to_be_bytes();
    FactId::new(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

/// Returns bits that look random but are derived from the number and the purpose.
pub(crate) const fn mix(number: u64, purpose: u64) -> u64 {
    let mut bits = number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_population_has_its_size() {
        let population = Population::new(1.0).unwrap();
        assert_eq!(population.pushes * RUNS, 1_000_000);
        assert_eq!(population.sessions * CALLS, 240_000);
        assert!(population.first_push(population.sessions - 1) + 1 < population.pushes);
    }

    #[test]
    fn every_kind_of_repository_has_pushes() {
        let population = Population::new(0.01).unwrap();
        for wanted in [
            |repository: &NamedRepository| repository.identity.is_none(),
            |repository: &NamedRepository| repository.name.as_str().contains("former"),
            |repository: &NamedRepository| repository.name.as_str().ends_with("service-0"),
        ] {
            assert!(population.nearest(0, wanted).is_some());
        }
    }

    #[test]
    fn every_push_has_a_commit_and_its_predecessor() {
        let commits = [u64::MAX, 0, 1, 199_999].map(Population::commit);
        assert!(commits.iter().all(|commit| commit.as_str().len() == 40));
    }

    #[test]
    fn no_two_facts_share_an_id() {
        let ids: std::collections::HashSet<FactId> = (0..1_000)
            .flat_map(|number| {
                [FactKind::Push, FactKind::Outcome, FactKind::Call]
                    .map(|kind| fact_id(kind, number))
            })
            .collect();
        assert_eq!(ids.len(), 3_000);
    }
}
