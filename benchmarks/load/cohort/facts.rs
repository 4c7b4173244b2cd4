//! Writes the facts of a cohort through the store.

use std::ops::Range;
use std::time::{Duration, Instant as Moment};

use svc_engine::fact::{
    CiOutcome, DeveloperDecision, EditObservation, EditTexts, InferenceCall, ObservationOrigin,
    PullRequest as Named, PullRequestMerge, PullRequestRevision, Push, RetryLinkage,
    SessionCommitObservation,
};
use svc_engine::store::Append;
use svc_engine::testing::builders;
use svc_model::evidence::{Message, Part};
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::json::{Json, Object, Text};
use svc_model::repository::{Branch, CommitSha, RepositoryProvider};
use svc_model::time::Instant;

use super::code::{EDIT_LINES, FILE_LINES, committed, lines, prose};
use super::{Cohort, Forge, MINUTE, PullRequest, PullRequestCommits};
use crate::Failure;
use crate::population::{FactKind, fact_id, mix};
use crate::sink::Sink;

/// The models, which the Sessions use in turn.
const MODELS: [&str; 4] = ["model-a", "model-b", "model-c", "model-d"];
/// The number of workflows of a commit.
const WORKFLOWS: u64 = 5;
/// The first number of these facts. No fact of another organization has such a number.
const FIRST: u64 = 1 << 40;
/// More than one pull request has of any kind.
const NUMBERS_OF_ONE: u64 = 1 << 10;
/// Of ten commits, how many their Session was observed at.
const OBSERVED: u64 = 8;
const ZEROS: &str = "0000000000000000000000000000000000000000";

/// The next number for each kind of fact.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    pushes: u64,
    outcomes: u64,
    observations: u64,
    revisions: u64,
}

struct CohortWriter<'w> {
    cohort: &'w Cohort,
    sink: Sink,
    numbers: Numbers,
}

impl Cohort {
    /// Writes the facts about some pull requests, by their numbers among all, into a database.
    pub(crate) fn write(
        &self,
        forge: &Forge,
        url: &str,
        numbers: Range<u64>,
    ) -> Result<Duration, Failure> {
        let begin = Moment::now();
        let first = FIRST + numbers.start * NUMBERS_OF_ONE;
        let mut writing = CohortWriter {
            cohort: self,
            sink: Sink::open(url)?,
            numbers: Numbers {
                pushes: first,
                outcomes: first,
                observations: first,
                revisions: first,
            },
        };
        let written = |pull_request: &PullRequest| numbers.contains(&pull_request.number);
        for pull_request in self.pull_requests().filter(written) {
            let of_repository = &forge.merged[pull_request.repository as usize];
            writing.pull_request(pull_request, &of_repository[pull_request.place as usize])?;
        }
        writing.sink.finish()?;
        Ok(begin.elapsed())
    }
}

impl CohortWriter<'_> {
    fn pull_request(
        &mut self,
        pull_request: PullRequest,
        made: &PullRequestCommits,
    ) -> Result<(), Failure> {
        let pushed_at = self.cohort.pushed_at(pull_request);
        for session in 0..self.cohort.shape.sessions {
            self.session(pull_request, session, pushed_at)?;
        }
        let (first, head) = (&made.commits[0], made.commits.last().ok_or("no commit")?);
        let zeros = CommitSha::new(ZEROS).ok_or("zeros")?;
        let minutes = |minutes: i64| pushed_at + minutes * MINUTE;
        let branch = format!("refs/heads/work-{}", pull_request.place);
        self.push(pull_request, &branch, (&zeros, first), minutes(0))?;
        let source = self.push(pull_request, &branch, (first, head), minutes(2))?;
        let main = (&made.base, &made.merge);
        self.push(pull_request, "refs/heads/main", main, minutes(4))?;
        for (commit, sha) in (0..).zip(&made.commits) {
            let seed = pull_request.number * self.cohort.shape.commits + commit;
            if mix(seed, 211) % 10 < OBSERVED {
                let session = self.cohort.session_of(commit);
                self.observe(pull_request, session, sha, source, minutes(3))?;
            }
            self.outcomes(pull_request, sha, seed, minutes(5))?;
        }
        let seed = FIRST + pull_request.number;
        self.outcomes(pull_request, &made.merge, seed, minutes(6))?;
        self.merged(pull_request, made, pushed_at)
    }

    fn session(
        &mut self,
        pull_request: PullRequest,
        session: u64,
        pushed_at: i64,
    ) -> Result<(), Failure> {
        let shape = self.cohort.shape;
        for call in 0..shape.calls {
            self.call(pull_request, session, call, pushed_at)?;
        }
        for decision in 0..shape.decisions {
            let number = self.cohort.seed(pull_request, session, decision);
            self.sink
                .add(Append::DeveloperDecision(Box::new(DeveloperDecision {
                    decision_id: fact_id(FactKind::Decision, FIRST + number),
                    session_id: Cohort::session(pull_request, session),
                    file_path: format!("src/part_{decision}.rs"),
                    accepted: !mix(number, 212).is_multiple_of(5),
                    explicit: !mix(number, 213).is_multiple_of(4),
                    call_id: Some(tool(number)),
                    occurred_at: self.cohort.at(pushed_at),
                    captured_at: self.cohort.at(pushed_at + MINUTE),
                    ..builders::decision(0)
                })))?;
        }
        for call in 0..shape.edits {
            self.edit(pull_request, session, call, pushed_at)?;
        }
        if shape.decisions > 0 && session == 0 {
            let number = self.cohort.seed(pull_request, session, 0);
            let (rejected, accepted) = (tool(number), tool(number + 1));
            self.sink.add(Append::RetryLinkage(Box::new(RetryLinkage {
                retry_linkage_id: fact_id(FactKind::Retry, FIRST + number),
                session_id: Cohort::session(pull_request, session),
                occurred_at: self.cohort.at(pushed_at),
                captured_at: self.cohort.at(pushed_at + MINUTE),
                ..builders::linkage(0, &rejected, &accepted)
            })))?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        pull_request: PullRequest,
        session: u64,
        call: u64,
        pushed_at: i64,
    ) -> Result<(), Failure> {
        let cohort = self.cohort;
        let shape = cohort.shape;
        let number = cohort.seed(pull_request, session, call);
        let before = (mix(number, 214) % cohort.spread() as u64) as i64;
        let at = cohort.at(pushed_at - before);
        let content = if call < shape.writing {
            lines(shape.texts, number, written(call)).concat()
        } else {
            format!("cargo test part_{call}")
        };
        let text = if call < shape.writing {
            "I write the file.".to_owned()
        } else {
            prose(shape.texts, number)
        };
        let mut arguments = Object::new();
        let path = format!("src/part_{call}.rs");
        arguments.insert(Text::from("file_path"), Json::from(path.as_str()));
        arguments.insert(Text::from("content"), Json::from(content.as_str()));
        let answer = Message {
            role: Text::from("assistant"),
            parts: vec![
                Part::Text {
                    content: Text::from(text.as_str()),
                },
                Part::ToolCall {
                    id: tool(number),
                    name: Text::from("Write"),
                    arguments,
                    sent: None,
                },
            ],
            finish_reason: None,
        };
        let built = builders::call(0)
            .session(Cohort::session(pull_request, session).as_str())
            .model_call(&format!("chatcmpl-{:016x}", mix(number, 215)))
            .input(vec![builders::text("user", "go on")])
            .output(vec![answer])
            .build();
        let mut built = InferenceCall {
            inference_call_id: fact_id(FactKind::Call, FIRST + number),
            model: Some(MODELS[(pull_request.number + session) as usize % MODELS.len()].to_owned()),
            observed_at: at,
            ..built
        };
        built.call_aliases.push(tool(number));
        self.sink.call(built, at)
    }

    fn edit(
        &mut self,
        pull_request: PullRequest,
        session: u64,
        call: u64,
        pushed_at: i64,
    ) -> Result<(), Failure> {
        let cohort = self.cohort;
        let number = cohort.seed(pull_request, session, call);
        let texts = cohort.shape.texts;
        let count = written(call);
        let held = committed(texts, number, count).concat();
        // The rest of the file surrounds an edit.
        let around = lines(
            texts,
            number ^ 0xff_ffff,
            if call.is_multiple_of(2) { 0 } else { 160 },
        )
        .concat();
        self.sink
            .add(Append::EditObservation(Box::new(EditObservation {
                observation_id: fact_id(FactKind::Edit, FIRST + number),
                session_id: Cohort::session(pull_request, session),
                call_id: tool(number),
                file_path: format!("src/part_{call}.rs"),
                texts: EditTexts {
                    applied: Text::from(lines(texts, number, count).concat().as_str()),
                    observed_file: Text::from((held + &around).as_str()),
                },
                external_lines_added: Some((number % 3) as i64),
                external_lines_removed: (!number.is_multiple_of(5)).then_some(0),
                occurred_at: cohort.at(pushed_at + number as i64 % 1_000),
                captured_at: cohort.at(pushed_at + MINUTE),
                ..builders::edit(0, "")
            })))
    }

    fn push(
        &mut self,
        pull_request: PullRequest,
        r#ref: &str,
        (before, after): (&CommitSha, &CommitSha),
        at: i64,
    ) -> Result<svc_model::id::FactId, Failure> {
        let push_id = fact_id(FactKind::Push, self.numbers.pushes);
        self.numbers.pushes += 1;
        let repo = Cohort::name(pull_request.repository);
        self.sink.add(Append::Push(Box::new(Push {
            push_id,
            provider: RepositoryProvider::Github,
            clone_url: format!("https://github.com/{repo}.git"),
            repo: repo.as_str().to_owned(),
            repository: Some(Cohort::identity(pull_request.repository)),
            r#ref: r#ref.to_owned(),
            before_sha: before.clone(),
            after_sha: after.clone(),
            forced: false,
            captured_at: self.cohort.at(at),
        })))?;
        Ok(push_id)
    }

    fn observe(
        &mut self,
        pull_request: PullRequest,
        session: u64,
        commit: &CommitSha,
        source_push_id: svc_model::id::FactId,
        at: i64,
    ) -> Result<(), Failure> {
        let observation_id = fact_id(FactKind::Observation, self.numbers.observations);
        self.numbers.observations += 1;
        self.sink.add(Append::SessionCommitObservation(Box::new(
            SessionCommitObservation {
                observation_id,
                session_id: Cohort::session(pull_request, session),
                repo: Cohort::name(pull_request.repository),
                repository: Some(Cohort::identity(pull_request.repository)),
                commit_sha: commit.clone(),
                source_push_id,
                origin: ObservationOrigin::Note("refs/notes/svc".to_owned()),
                captured_at: self.cohort.at(at),
            },
        )))
    }

    fn outcomes(
        &mut self,
        pull_request: PullRequest,
        commit: &CommitSha,
        seed: u64,
        at: i64,
    ) -> Result<(), Failure> {
        for number in 0..self.cohort.shape.outcomes {
            let (workflow, attempt) = (number % WORKFLOWS, 1 + number / WORKFLOWS);
            let run_id = format!("{}", seed * WORKFLOWS + workflow);
            let result = if mix(seed, 216).is_multiple_of(6) {
                CiResult::Failed
            } else {
                CiResult::Passed
            };
            let outcome = CiOutcome {
                outcome_id: fact_id(FactKind::Outcome, self.numbers.outcomes),
                provider: CiProvider::ForgeActions,
                run_attempt: Some(attempt as i64),
                repo: Cohort::name(pull_request.repository).as_str().to_owned(),
                repository: Some(Cohort::identity(pull_request.repository)),
                commit_sha: commit.clone(),
                branch: Branch::new(&format!("work-{}", pull_request.place)).ok_or("a branch")?,
                workflow_name: Text::from(format!("workflow {workflow}").as_str()),
                workflow_id: Some(format!("{}", 90_000 + workflow)),
                workflow_path: Some(format!(".github/workflows/{workflow}.yml")),
                result,
                pr_number: (workflow == 0).then_some(pull_request.place as i64 + 1),
                signed: true,
                captured_at: self.cohort.at(at),
                ..builders::outcome(0, &run_id)
            };
            self.numbers.outcomes += 1;
            self.sink.add(Append::CiOutcome(Box::new(outcome)))?;
        }
        Ok(())
    }

    fn merged(
        &mut self,
        pull_request: PullRequest,
        made: &PullRequestCommits,
        pushed_at: i64,
    ) -> Result<(), Failure> {
        let repo = Cohort::name(pull_request.repository).as_str().to_owned();
        let identity = Cohort::identity(pull_request.repository);
        let named = |head: &CommitSha| Named {
            repo: repo.clone(),
            repository: Some(identity.clone()),
            pr_number: pull_request.place as i64 + 1,
            head_repo: Some(repo.clone()),
            head_repository: Some(identity.clone()),
            head_sha: head.clone(),
            base_sha: made.base.clone(),
            ..builders::pull_request()
        };
        let head = made.commits.last().ok_or("no commit")?;
        let at = |minutes: i64| -> Instant { self.cohort.at(pushed_at + minutes * MINUTE) };
        let moments = [at(1), at(3), at(4)];
        let revisions = [(&made.commits[0], None), (head, Some(&made.commits[0]))];
        for ((head, previous), captured_at) in revisions.into_iter().zip(moments) {
            let revision_id = fact_id(FactKind::Revision, self.numbers.revisions);
            self.numbers.revisions += 1;
            self.sink
                .add(Append::PullRequestRevision(Box::new(PullRequestRevision {
                    revision_id,
                    pull_request: named(head),
                    previous_head_sha: previous.cloned(),
                    source_event_id: None,
                    captured_at,
                })))?;
        }
        self.sink
            .add(Append::PullRequestMerge(Box::new(PullRequestMerge {
                merge_id: fact_id(FactKind::Merge, FIRST + pull_request.number),
                pull_request: named(head),
                merge_commit_sha: made.merge.clone(),
                merged_at: moments[2],
                source_event_id: None,
                captured_at: moments[2],
            })))
    }
}

/// Returns how many lines a call writes, which is as many as its file has in a commit.
const fn written(call: u64) -> u64 {
    if call.is_multiple_of(2) {
        FILE_LINES
    } else {
        EDIT_LINES
    }
}

/// Returns the id of a call's tool call.
fn tool(number: u64) -> String {
    format!("toolu_{:016x}", mix(number, 217))
}
