//! Reports.

mod observable;
mod past;
mod remembered;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::testing::builders::text;
use svc_engine_fact::{InferenceCall, Lifetime, PullRequestMerge};
use svc_engine_mirror::testing::git::{Repository, git};
use svc_engine_mirror::{MirrorFolder, MirrorReading};
use svc_engine_store::{ErasedContent, ErasureOrder, ErasureSubject};
use svc_model::limit::REPORT_CALL_IDS_MAX;
use svc_model::problem::ReportBound;
use svc_model::reports::{
    AcceptedWorkLifecycle, AcceptedWorkSkip, AttributionSkip, CompletionSkip, Counts,
    ModelOutcomes, ModelRow, ReportRequest, ReportScope, Unobservable,
};
use tempfile::TempDir;

use super::*;
use crate::read::overview::OverviewMemory;

/// What reports read besides the store.
pub(super) struct Sources {
    root: TempDir,
    mirrors: MirrorReading,
    memory: ReportMemory,
}

impl Sources {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self {
            mirrors: MirrorReading::new(root.path(), svc_model::id::OrgId::new("acme").unwrap()),
            root,
            memory: ReportMemory::new(4_000_000),
        }
    }

    /// Returns sources whose memory keeps the overview of any number of calls.
    pub(super) fn remembering_overviews() -> Self {
        let mut sources = Self::new();
        sources.memory.overviews = OverviewMemory::of_calls(0);
        sources
    }

    pub(super) fn all(&self) -> ReportSources<'_> {
        ReportSources {
            mirrors: Some(&self.mirrors),
            memory: &self.memory,
        }
    }

    /// Mirrors a forge's repository as the one with this number.
    pub(super) fn mirror(&self, forge: &Repository, number: u32) {
        let path = self.path(number);
        let work = forge.folder().join("work");
        let arguments = ["clone", "-q", "--mirror", "--no-local"];
        let paths = [work.to_str().unwrap(), path.to_str().unwrap()];
        git(self.root.path(), &[&arguments[..], &paths].concat(), "");
    }

    pub(super) fn path(&self, number: u32) -> PathBuf {
        let org_id = svc_model::id::OrgId::new("acme").unwrap();
        let folder = MirrorFolder::new(self.root.path(), org_id);
        folder.path(&Lifetime::Identified(repository(number)))
    }

    /// Fetches the forge's current state into a mirror.
    pub(super) fn fetch(&self, number: u32) {
        git(&self.path(number), &["fetch", "-q"], "");
    }

    /// Overwrites every pack of a mirror.
    pub(super) fn damage(&self, number: u32) {
        for pack in fs::read_dir(self.path(number).join("objects/pack")).unwrap() {
            let path = pack.unwrap().path();
            fs::remove_file(&path).unwrap();
            fs::write(path, "damaged").unwrap();
        }
    }
}

/// Asks about the calls of the first 3,000 seconds, with a boundary at second 9,000.
fn request() -> ReportRequest {
    ReportRequest {
        scope: ReportScope::new(at(0)..at(3_000), at(9_000)).unwrap(),
    }
}

impl Stage {
    fn models(&self, sources: &Sources) -> Result<ModelOutcomes, Error> {
        model_outcomes(&mut self.snapshot(), sources.all(), &request())
    }

    fn lifecycle(&self, sources: &Sources) -> Result<AcceptedWorkLifecycle, Error> {
        accepted_work_lifecycle(&mut self.snapshot(), sources.all(), &request())
    }

    /// Erases the content of a Session.
    pub(super) fn erase(&self, session: &str) -> ErasedContent {
        let deadline = Deadline::after(Duration::from_mins(1));
        let subject = ErasureSubject::Session(SessionId::new(session).unwrap());
        let order = ErasureOrder {
            erasure_id: Uuid::from_u128(1),
            subject: subject.clone(),
            reason: "because".to_owned(),
            recorded_at: at(9),
            client_id: "operator".to_owned(),
        };
        let plan = self.ledger.plan_erasure(&subject, &deadline).unwrap();
        let erased = self.ledger.erase(plan, &order, &deadline, &mut |_| {});
        erased.unwrap()
    }

    pub(super) fn call_with_answer(&self, number: u128, session: &str, answer: &str) -> Append {
        let mut call: InferenceCall = call(number)
            .session(session)
            .observed(1_000)
            .output(vec![text("assistant", answer)])
            .build();
        call.model = Some(format!("m{number}"));
        call.call_aliases = vec![format!("t{number}")];
        Append::InferenceCall(Box::new(self.store.encode(call, at(1_001))))
    }
}

/// A repository with two commits, and a third that contains both.
pub(super) struct Forge {
    pub(super) repository: Repository,
    pub(super) commits: [CommitSha; 4],
}

pub(super) const NOTED: &str = "fn alpha beta gamma delta epsilon zeta eta";
pub(super) const GUESSED: &str = "let one two three four five six seven";

impl Forge {
    pub(super) fn new() -> Self {
        let repository = Repository::create();
        let commit = |message: &str| CommitSha::new(&repository.commit(message)).unwrap();
        let write = |name: &str, text: &str| {
            let work = repository.folder().join("work");
            fs::write(work.join(name), format!("{text}\n")).unwrap();
            repository.run(&["add", "-A"]);
        };
        let base = commit("base");
        repository.run(&["checkout", "-q", "-b", "feature"]);
        write("a.py", NOTED);
        let noted = commit("noted");
        write("b.py", GUESSED);
        let guessed = commit("guessed");
        repository.run(&["checkout", "-q", "-b", "merged", base.as_str()]);
        write("a.py", NOTED);
        let merged = commit("squashed");
        Self {
            repository,
            commits: [base, noted, guessed, merged],
        }
    }

    /// The facts of a call that a note names, of a guessed call, and of a merge.
    pub(super) fn facts(&self, stage: &Stage) -> Vec<Append> {
        let [base, noted, guessed, merged] = &self.commits;
        let pushed_to = Push {
            repository: Some(repository(101)),
            before_sha: base.clone(),
            after_sha: guessed.clone(),
            captured_at: at(2_000),
            ..push(11)
        };
        let seen = SessionCommitObservation {
            repository: Some(repository(101)),
            commit_sha: noted.clone(),
            captured_at: at(2_001),
            ..observation(12, id(11))
        };
        let mut decided = decision(13);
        decided.call_id = Some("t1".to_owned());
        decided.captured_at = at(2_002);
        let passed = CiOutcome {
            commit_sha: noted.clone(),
            result: CiResult::Passed,
            ..checked(14, "run", Some(101), 2_003)
        };
        let mut merge = PullRequestMerge {
            merge_commit_sha: merged.clone(),
            merged_at: at(2_004),
            captured_at: at(2_004),
            ..merge(15)
        };
        merge.pull_request.repository = Some(repository(101));
        merge.pull_request.head_repository = Some(repository(101));
        merge.pull_request.head_repo = Some("own/repo".to_owned());
        merge.pull_request.head_sha = guessed.clone();
        merge.pull_request.base_sha = base.clone();
        vec![
            stage.call_with_answer(1, "s", NOTED),
            stage.call_with_answer(2, "t", GUESSED),
            pushed(pushed_to),
            observed(seen),
            Append::DeveloperDecision(Box::new(decided)),
            ci(passed),
            Append::PullRequestMerge(Box::new(merge)),
        ]
    }
}

#[rstest]
fn a_noted_call_is_followed_to_ci_and_merge_and_a_guess_is_not(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let models = stage.models(&sources).unwrap();
    let rows: Vec<_> = models
        .report
        .rows
        .iter()
        .map(|row| {
            let unobserved = row.session_commit_unobserved;
            let attributed = row.attributed_inference_calls;
            (row.model.as_str(), attributed, row.ci_passed, unobserved)
        })
        .collect();
    assert_eq!(rows, [("m1", 1, 1, 0), ("m2", 1, 0, 1)]);
    let [share] = &models.report.attribution_share[..] else {
        panic!("{:?}", models.report.attribution_share);
    };
    let classes = (share.git_notes_attributed, share.jaccard_attributed);
    assert_eq!((share.agent_plausible_commits, classes), (2, (1, 1)));
    let lifecycle = stage.lifecycle(&sources).unwrap().report;
    let accepted = &lifecycle.accepted_work;
    assert_eq!(
        (
            accepted.accepted_calls,
            accepted.attributed.count,
            accepted.pull_request_membership.count,
            accepted.ci_passed
        ),
        (1, 1, 1, 1)
    );
    let merges = &lifecycle.merge_durability;
    assert_eq!(
        (merges.attributed_file_candidates, merges.scored_rows),
        (1, 1)
    );
    assert_eq!(merges.merge.distribution.mean, Some(1.0));
    assert_eq!(lifecycle.session_attrition.committed, 1);
}

#[rstest]
fn an_erased_call_is_in_no_rate_and_counts_without_text_remain(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let rows = |sources: &Sources| {
        let report = stage.models(sources).unwrap().report;
        let rows = report.rows.iter().map(|row| {
            let attribution = (row.attributed_inference_calls, row.attribution_cases());
            let ci = (row.ci_passed, row.ci_linked);
            (row.completions, attribution, ci, row.explicit_accepts)
        });
        rows.collect::<Vec<_>>()
    };
    assert_eq!(
        rows(&sources),
        [(1, (1, 1), (1, 1), 1), (1, (1, 1), (0, 0), 0)]
    );
    stage.erase("s");
    // The service drops what it remembered from before the erasure.
    let sources = Sources::new();
    sources.mirror(&forge.repository, 101);
    assert_eq!(
        rows(&sources),
        [(1, (0, 0), (0, 0), 1), (1, (1, 1), (0, 0), 0)]
    );
    let report = stage.models(&sources).unwrap().report;
    let skipped = |row: &ModelRow| row.completions_skipped.get(CompletionSkip::ContentErased);
    assert_eq!((skipped(&report.rows[0]), skipped(&report.rows[1])), (1, 0));
    // The commit with the note is in no share.
    let hidden = Counts::from_iter([(AttributionSkip::ContentErased, 1)]);
    assert_eq!(report.attribution_share_skipped, hidden);
    let [share] = &report.attribution_share[..] else {
        panic!("{:?}", report.attribution_share);
    };
    let classes = (share.git_notes_attributed, share.jaccard_attributed);
    assert_eq!((share.agent_plausible_commits, classes), (1, (0, 1)));
    let lifecycle = stage.lifecycle(&sources).unwrap().report;
    let accepted = &lifecycle.accepted_work;
    assert_eq!(
        (accepted.accepted_calls, accepted.attributed.denominator),
        (1, 0)
    );
    let skipped = Counts::from_iter([(AcceptedWorkSkip::ContentErased, 1)]);
    assert_eq!(accepted.skips, skipped);
    assert_eq!(lifecycle.session_attrition.committed, 1);
}

#[rstest]
fn a_remembered_report_is_identical_and_without_a_mirror_nothing_is_attributed(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources, bare) = (Forge::new(), Sources::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let texts = |sources: &Sources| {
        let models = stage.models(sources).unwrap();
        let lifecycle = stage.lifecycle(sources).unwrap();
        [
            serde_json::to_string(&models).unwrap(),
            serde_json::to_string(&lifecycle).unwrap(),
        ]
    };
    let first = texts(&sources);
    assert_eq!(texts(&sources), first);
    let fresh = Sources::new();
    fresh.mirror(&forge.repository, 101);
    assert_eq!(texts(&fresh), first);
    let models = stage.models(&bare).unwrap().report;
    assert!(
        models
            .rows
            .iter()
            .all(|row| row.attributed_inference_calls == 0)
    );
    assert_eq!(models.attribution_share, []);
    // Unattributed work is not a failure.
    let attrition = stage.lifecycle(&bare).unwrap().report.session_attrition;
    assert_eq!((attrition.committed, attrition.abandoned), (1, 0));
}

#[test]
fn both_backends_give_the_same_bytes() {
    let forge = Forge::new();
    let sources = Sources::new();
    sources.mirror(&forge.repository, 101);
    let texts: Vec<[String; 2]> = [Backend::Sqlite, Backend::Postgres]
        .into_iter()
        .filter_map(Stage::open)
        .map(|stage| {
            stage.add(forge.facts(&stage));
            [
                serde_json::to_string(&stage.models(&sources).unwrap()).unwrap(),
                serde_json::to_string(&stage.lifecycle(&sources).unwrap()).unwrap(),
            ]
        })
        .collect();
    assert!(
        texts.windows(2).all(|pair| pair[0] == pair[1]),
        "{texts:#?}"
    );
}

/// A push, its observation and an outcome without an identity, whose name another repository takes.
#[rstest]
fn facts_made_ambiguous_by_a_reused_name_are_counted(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let (mut legacy, mut seen) = delivered(11, None);
    legacy.captured_at = at(2_000);
    seen.captured_at = at(2_001);
    let taken = Push {
        repository: Some(repository(7)),
        after_sha: commit('e'),
        captured_at: at(8_000),
        ..push(21)
    };
    let outcome = CiOutcome {
        commit_sha: commit('c'),
        ..checked(31, "run", None, 2_002)
    };
    stage.add([
        stage.call_with_answer(1, "s", NOTED),
        pushed(legacy),
        observed(seen),
        ci(outcome),
        pushed(taken),
    ]);
    let report = serde_json::to_value(stage.models(&sources).unwrap().report).unwrap();
    let one = serde_json::json!({"repository_identity_unresolved": 1});
    assert_eq!(
        report["repository_skipped"],
        serde_json::json!({
            "assembly_sources": {"repository_identity_unresolved": 2},
            "push_sources": one,
            "preload_session_observations": one,
        })
    );
    assert_eq!(
        report["ci_skipped"],
        serde_json::json!({"source_outcomes": one})
    );
    let report = stage.lifecycle(&sources).unwrap().report;
    let report = serde_json::to_value(report.repository_skipped).unwrap();
    assert_eq!(
        report,
        serde_json::json!({
            "session_observations": one,
            "attribution_sources": one,
            "ci_population_outcomes": one,
        })
    );
}

#[test]
fn decisions_naming_more_calls_than_the_limit_are_declined() {
    let stage = Stage::open(Backend::Sqlite).expect("SQLite is never skipped");
    let sources = Sources::new();
    stage.add([stage.call_with_answer(1, "s", NOTED)]);
    let decided = |number: usize| {
        let mut decided = decision(100 + number as u128);
        decided.call_id = Some(format!("t{number}"));
        Append::DeveloperDecision(Box::new(decided))
    };
    stage.add((0..REPORT_CALL_IDS_MAX).map(decided));
    let report = stage.lifecycle(&sources).unwrap().report;
    assert_eq!(report.accepted_work.accepted_calls, 1);
    stage.add([decided(REPORT_CALL_IDS_MAX)]);
    for refused in [
        stage.lifecycle(&sources).err(),
        stage.models(&sources).err(),
    ] {
        assert!(
            matches!(refused, Some(Error::ReportBound(ReportBound::Evidence))),
            "{refused:?}"
        );
    }
}
