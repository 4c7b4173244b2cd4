//! A small world that reports are derived from in tests.

use serde_json::Value;
use svc_engine_fact::testing::builders::{
    at, commit, decision, edit, id, name, outcome, repository,
};
use svc_engine_fact::{Lifetime, RepositoryClaim};
use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, OrgId, SessionId};
use svc_model::ingest::CiResult;
use svc_model::json::Text;
use svc_model::query::AttributionSource;
use svc_model::reports::{LifecycleReport, ModelReport, ScoringSkip, Unobservable};
use svc_model::repository::{CommitSha, RepositoryDecline};

use super::{CohortCall, CohortEvidence};
use crate::attribution::{Attribution, Similarity};
use crate::ci::{CiAttempt, CiResolution};
use crate::decision::{CallOwner, Decision, Decisions};
use crate::fate::EditFate;
use crate::lifecycle::{self, FileScores, LifecycleFile};
use crate::model_report;
use crate::observed::{ObservedCommit, ObservedEdges};
use crate::repository::Repositories;

/// Facts, and earlier results derived from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct World {
    pub(crate) calls: Vec<CohortCall>,
    pub(crate) files: Vec<Attribution>,
    pub(crate) unobservable: Vec<(FactId, Unobservable)>,
    pub(crate) observations: Vec<ObservedCommit>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) owners: Vec<CallOwner>,
    pub(crate) edits: Vec<EditFate>,
    pub(crate) erased_edits: u64,
    pub(crate) attempts: Vec<CiAttempt>,
    pub(crate) claims: Vec<RepositoryClaim>,
    pub(crate) since_days: Option<u64>,
    pub(crate) models: model_report::ModelParts,
    pub(crate) lifecycle: lifecycle::LifecycleParts,
    pub(crate) quarantine_revision: u64,
}

/// The repository with this number.
pub(crate) fn home(number: u32) -> Lifetime {
    Lifetime::Identified(repository(number))
}

pub(crate) fn session(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

impl World {
    /// Adds a call that owns the id `t` followed by its number.
    pub(crate) fn call(&mut self, number: u128, of: &str, model: Option<&str>) {
        self.calls.push(CohortCall {
            inference_call_id: id(number),
            session_id: session(of),
            model: model.map(str::to_owned),
            is_erased: false,
        });
        self.owners.push(CallOwner {
            call_id: format!("t{number}"),
            inference_call_id: id(number),
            session_id: session(of),
        });
    }

    /// Ties a file of a commit to a call; they share `common` of ten tokens.
    pub(crate) fn tie(&mut self, call: u128, repository: u32, sha: char, common: u32) {
        let session_id = self.session_of(id(call));
        self.files.push(Attribution {
            repository: home(repository),
            commit_sha: commit(sha),
            file_path: format!("{}.py", self.files.len()),
            inference_call_id: id(call),
            session_id,
            similarity: Similarity { common, either: 10 },
            source: AttributionSource::Jaccard,
            push_id: id(0),
        });
    }

    /// Adds an observation of a call's Session at a commit.
    pub(crate) fn observe(&mut self, number: u128, call: u128, repository: u32, sha: char) {
        let session_id = self.session_of(id(call));
        self.observations.push(ObservedCommit {
            observation_id: id(number),
            session_id,
            repository: Ok(home(repository)),
            commit_sha: commit(sha),
        });
    }

    /// Adds a decision about a call's tool call.
    pub(crate) fn decide(&mut self, number: u128, call: u128, accepted: bool, explicit: bool) {
        let mut fact = decision(number);
        fact.session_id = self.session_of(id(call));
        fact.call_id = Some(format!("t{call}"));
        fact.accepted = accepted;
        fact.explicit = explicit;
        fact.occurred_at = at(i64::try_from(number).unwrap());
        self.decisions.push(Decision::from(&fact));
    }

    /// Adds an observation of what became of a call's edit.
    pub(crate) fn edit(
        &mut self,
        number: u128,
        call: u128,
        observed: &str,
        lines: Option<(i64, i64)>,
    ) {
        let mut fact = edit(number, &format!("t{call}"));
        fact.session_id = self.session_of(id(call));
        fact.texts.applied = Text::from("0123456789abc");
        fact.texts.observed_file = Text::from(observed);
        fact.external_lines_added = lines.map(|(added, _)| added);
        fact.external_lines_removed = lines.map(|(_, removed)| removed);
        self.edits.push(EditFate::of(&fact));
    }

    /// Adds a run of a workflow at a commit.
    pub(crate) fn run(
        &mut self,
        number: u128,
        repository_id: u32,
        sha: char,
        workflow: &str,
        result: CiResult,
    ) {
        let mut fact = outcome(number, &number.to_string());
        fact.repository = Some(repository(repository_id));
        fact.commit_sha = commit(sha);
        fact.workflow_name = Text::from(workflow);
        fact.result = result;
        fact.provider = svc_model::ingest::CiProvider::ForgeActions;
        self.attempts
            .push(CiAttempt::of(&fact, Ok(home(repository_id))));
    }

    /// Gives a repository a name.
    pub(crate) fn claim(&mut self, number: u32, text: &str) {
        self.claims.push(RepositoryClaim {
            name: name(text),
            repository: repository(number),
            borne_at: None,
        });
    }

    /// Makes a call's file a member of a merged pull request.
    pub(crate) fn join(&mut self, call: u128, scores: Option<(f64, f64)>) {
        let session_id = self.session_of(id(call));
        self.lifecycle.merges.candidates += 1;
        self.lifecycle.merges.joined.push(LifecycleFile {
            inference_call_id: id(call),
            session_id,
            scores: scores.map(|(head, merge)| FileScores { head, merge }),
        });
    }

    /// Erases a call's content: nothing is similar to it any more.
    pub(crate) fn erase(&mut self, call: FactId) {
        for known in &mut self.calls {
            known.is_erased |= known.inference_call_id == call;
        }
        self.files.retain(|file| file.inference_call_id != call);
        let merges = &mut self.lifecycle.merges;
        let before = merges.joined.len();
        merges.joined.retain(|file| file.inference_call_id != call);
        merges.candidates -= (before - merges.joined.len()) as u64;
    }

    fn session_of(&self, call: FactId) -> SessionId {
        self.calls
            .iter()
            .find(|known| known.inference_call_id == call)
            .map_or_else(|| session("elsewhere"), |known| known.session_id.clone())
    }

    fn derive<R>(&self, report: impl FnOnce(&CohortEvidence<'_>) -> R) -> R {
        let org_id = OrgId::new("acme").unwrap();
        let repositories = Repositories::new(self.claims.clone()).unwrap();
        let decisions = Decisions::attach(self.decisions.clone(), &self.owners);
        let ci = CiResolution::new(&self.attempts);
        report(&CohortEvidence {
            org_id: &org_id,
            quarantine_revision: self.quarantine_revision,
            repositories: &repositories,
            calls: &self.calls,
            attributions: &self.files,
            unobservable: &self.unobservable,
            observations: &self.observations,
            decisions: &decisions,
            edits: &self.edits,
            erased_edits: self.erased_edits,
            ci: &ci,
        })
    }

    pub(crate) fn model_report(&self) -> ModelReport {
        self.derive(|evidence| model_report::derive(evidence, self.since_days))
            .unwrap()
            .finish(self.models.clone())
    }

    pub(crate) fn lifecycle_report(&self) -> LifecycleReport {
        self.derive(|evidence| {
            let observed = ObservedEdges::new(evidence.observations);
            lifecycle::BeforeMerges::new(*evidence, &observed).finish(self.lifecycle.clone())
        })
    }

    /// Two models in one repository. The work of one is noted, accepted, merged and passed CI; the
    /// work of the other is guessed and failed CI.
    pub(crate) fn example() -> Self {
        let mut world = Self::default();
        world.claim(101, "o/full");
        world.call(1, "s1", Some("m1"));
        world.call(2, "s2", Some("m2"));
        world.tie(1, 101, 'a', 8);
        world.tie(2, 101, 'b', 10);
        world.observe(3, 1, 101, 'a');
        world.decide(4, 1, true, true);
        world.edit(5, 1, "0123456789abc\n", Some((1, 0)));
        world.run(6, 101, 'a', "CI", CiResult::Passed);
        world.run(7, 101, 'b', "Lint", CiResult::Failed);
        world.since_days = Some(3);
        world.join(1, Some((1.0, 1.0)));
        world
            .lifecycle
            .merges
            .scoring_skips
            .add(ScoringSkip::SessionCommitUnobserved, 1);
        world
    }

    /// A world in which nearly everything happens, different for each seed.
    pub(crate) fn random(seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = move |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % bound
        };
        let mut world = Self::default();
        for number in 1..=3 {
            world.claim(number, &format!("o/r{number}"));
        }
        let shas = ['1', '2', '3', '4', '5', '6', '7', '8', '9'];
        for call in 1..=30_u128 {
            let models = [None, Some("a"), Some("b"), Some("c")];
            let model = models[usize::try_from(below(4)).unwrap()];
            world.call(call, &format!("s{}", below(8)), model);
            for _ in 0..below(3) {
                let repository = 1 + u32::try_from(below(3)).unwrap();
                let sha = shas[usize::try_from(below(9)).unwrap()];
                let tenths = 3 + u32::try_from(below(8)).unwrap();
                world.tie(call, repository, sha, tenths);
                if below(3) > 0 {
                    world.observe(1000 + u128::from(below(10_000)), call, repository, sha);
                }
            }
            if below(2) == 0 {
                world.decide(20_000 + call, call, below(3) > 0, below(3) > 0);
            }
            if below(3) == 0 {
                let texts = ["0123456789abc", "0123456789", "0123", ""];
                let text = texts[usize::try_from(below(4)).unwrap()];
                let lines = [None, Some((0, 0)), Some((2, 1))];
                world.edit(
                    30_000 + call,
                    call,
                    text,
                    lines[usize::try_from(below(3)).unwrap()],
                );
            }
            match below(4) {
                0 => world.join(call, Some((0.5, 0.25))),
                1 => world.join(call, None),
                _ => {}
            }
        }
        for number in 0..20_u128 {
            let results = [CiResult::Passed, CiResult::Failed, CiResult::Cancelled];
            let result = results[usize::try_from(below(3)).unwrap()];
            let repository = 1 + u32::try_from(below(3)).unwrap();
            let sha = shas[usize::try_from(below(9)).unwrap()];
            world.run(
                40_000 + number,
                repository,
                sha,
                ["", "CI", "Lint"][usize::try_from(below(3)).unwrap()],
                result,
            );
        }
        world.lifecycle.retry_linkages = below(4);
        world.observations.push(ObservedCommit {
            observation_id: id(50_000),
            session_id: session("s1"),
            repository: Err(RepositoryDecline::SourceAbsent),
            commit_sha: CommitSha::new(&"1".repeat(40)).unwrap(),
        });
        world.decisions.push({
            let mut foreign = decision(60_000);
            foreign.call_id = Some("t1".to_owned());
            foreign.session_id = session("s-other");
            foreign.agent_harness = AgentHarness::Cursor;
            Decision::from(&foreign)
        });
        for call in 1..=30_u128 {
            if below(6) == 0 {
                world.erase(id(call));
            }
        }
        world
    }

    /// The same facts, plus those of another Session, call and repository.
    pub(crate) fn with_others(&self) -> Self {
        let mut world = self.clone();
        world.claim(9, "o/other");
        world.call(900, "s-foreign", Some("z"));
        world.tie(900, 9, 'f', 10);
        world.tie(900, 1, '1', 10);
        world.observe(901, 900, 9, 'f');
        world.observe(902, 900, 1, '1');
        world.run(903, 9, 'f', "CI", CiResult::Failed);
        // The call's Attributions, observations, runs and the ids that it owns are still there.
        world.calls.pop();
        world
    }

    /// The same facts in another order, some of them twice.
    pub(crate) fn shuffled(&self) -> Self {
        fn turn<T: Clone>(list: &mut Vec<T>) {
            let again: Vec<T> = list.iter().step_by(3).cloned().collect();
            list.extend(again);
            list.reverse();
            let middle = list.len() / 3;
            list.rotate_left(middle);
        }
        let mut world = self.clone();
        turn(&mut world.calls);
        turn(&mut world.files);
        turn(&mut world.observations);
        turn(&mut world.decisions);
        turn(&mut world.owners);
        turn(&mut world.edits);
        turn(&mut world.attempts);
        turn(&mut world.claims);
        // Joined files are derived, so none occurs twice.
        world.lifecycle.merges.joined.reverse();
        world
    }
}

/// Panics unless each rate only lost successes and failures, and gained none.
pub(crate) fn assert_only_lost(before: &[(u64, u64)], after: &[(u64, u64)], seed: u64) {
    for (place, (before, after)) in before.iter().zip(after).enumerate() {
        let failed = |(part, whole): &(u64, u64)| whole - part;
        assert!(
            after.0 <= before.0 && failed(after) <= failed(before),
            "seed {seed}, rate {place}: {before:?} became {after:?}"
        );
    }
}

/// Panics unless two JSON values are equal: numbers to 1e-9, and `"$text"` matches any text.
pub(crate) fn assert_same(actual: &Value, expected: &Value) {
    fn same(path: &str, actual: &Value, expected: &Value) {
        match (actual, expected) {
            (Value::Object(actual), Value::Object(expected)) => {
                let keys = |object: &serde_json::Map<String, Value>| -> Vec<String> {
                    let mut keys: Vec<String> = object.keys().cloned().collect();
                    keys.sort();
                    keys
                };
                assert_eq!(keys(actual), keys(expected), "at {path}");
                for (key, value) in actual {
                    same(&format!("{path}.{key}"), value, &expected[key]);
                }
            }
            (Value::Array(actual), Value::Array(expected)) => {
                assert_eq!(actual.len(), expected.len(), "at {path}");
                for (place, (actual, expected)) in actual.iter().zip(expected).enumerate() {
                    same(&format!("{path}[{place}]"), actual, expected);
                }
            }
            (Value::Number(a), Value::Number(b)) => {
                let near = a.as_f64().unwrap() - b.as_f64().unwrap();
                assert!(near.abs() < 1e-9, "{a} is not {b} at {path}");
                assert_eq!(a.is_f64(), b.is_f64(), "{a} is not {b} at {path}");
            }
            (Value::String(_), Value::String(text)) if text == "$text" => {}
            _ => assert_eq!(actual, expected, "at {path}"),
        }
    }
    same("$", actual, expected);
}
