//! The overview of a week that was computed by hand.

use std::fs;

use svc_engine_fact::testing::builders::text;
use svc_engine_fact::{PullRequestMerge, PullRequestRevision};
use svc_engine_mirror::testing::git::Repository;
use svc_model::id::UserId;
use svc_model::overview::{
    Attention, Overview, OverviewDays, OverviewFigures, OverviewOutcome, OverviewRequest,
};
use svc_model::query::ModelName;
use svc_model::reports::Unobservable;
use svc_model::repository::{Branch, RepositoryIdentity};
use svc_model::spend::UnpricedReason;

use super::reports::Sources;
use super::*;

const DAY: i64 = 24 * 60 * 60;

/// What the call with a number writes: no two calls share a word.
fn code(call: u128) -> String {
    let words = (0..8).map(|word| format!("w{call}_{word}"));
    words.collect::<Vec<_>>().join(" ")
}

/// A call of a Session that cost so many micro-USD.
fn worked(stage: &Stage, call_number: u128, session: &str, cost: Option<i64>) -> Append {
    let mut made = call(call_number)
        .session(session)
        .observed(1_000 + i64::try_from(call_number).unwrap())
        .output(vec![text("assistant", &code(call_number))])
        .build();
    made.model = Some(if call_number < 5 { "m1" } else { "m2" }.to_owned());
    made.user_id = UserId::new(if call_number < 4 { "ann" } else { "bob" }).ok();
    made.call_aliases = vec![format!("t{call_number}")];
    made.usage.cost_usd_micros = cost;
    (made.input_tokens, made.output_tokens) = (None, None);
    Append::InferenceCall(Box::new(stage.store.encode(made, at(1_100))))
}

/// The history of a repository: each pull request has one commit for each of its calls.
struct History {
    repository: Repository,
    base: CommitSha,
}

impl History {
    fn new() -> Self {
        let repository = Repository::create();
        let base = CommitSha::new(&repository.commit("base")).unwrap();
        Self { repository, base }
    }

    /// Writes what a call wrote and commits it on the current branch.
    fn write(&self, call: u128) -> CommitSha {
        let work = self.repository.folder().join("work");
        fs::write(work.join(format!("f{call}.py")), code(call) + "\n").unwrap();
        self.repository.run(&["add", "-A"]);
        CommitSha::new(&self.repository.commit(&format!("work {call}"))).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> CommitSha {
        self.repository.run(arguments);
        self.head()
    }

    fn head(&self) -> CommitSha {
        CommitSha::new(&self.repository.run(&["rev-parse", "HEAD"])).unwrap()
    }

    /// Begins a branch at `main`.
    fn branch(&self, name: &str) {
        self.repository.run(&["checkout", "-q", "-b", name, "main"]);
    }

    fn main(&self) {
        self.repository.run(&["checkout", "-q", "main"]);
    }
}

fn home() -> RepositoryIdentity {
    repository(101)
}

fn to_branch(number: u128, branch: &str, before: &CommitSha, after: &CommitSha) -> Append {
    pushed(Push {
        repository: Some(home()),
        r#ref: format!("refs/heads/{branch}"),
        before_sha: before.clone(),
        after_sha: after.clone(),
        captured_at: at(2_000 + i64::try_from(number).unwrap()),
        ..push(number)
    })
}

fn noted(number: u128, push: u128, session: &str, commit_sha: &CommitSha) -> Append {
    observed(SessionCommitObservation {
        repository: Some(home()),
        commit_sha: commit_sha.clone(),
        session_id: SessionId::new(session).unwrap(),
        captured_at: at(3_000),
        ..observation(number, id(push))
    })
}

fn merged(
    number: u128,
    pr_number: i64,
    head: &CommitSha,
    base: &CommitSha,
    merge_commit: &CommitSha,
) -> Append {
    let mut merge = PullRequestMerge {
        merge_commit_sha: merge_commit.clone(),
        merged_at: at(4_000),
        captured_at: at(4_000),
        ..merge(number)
    };
    let of = &mut merge.pull_request;
    (of.pr_number, of.repository, of.head_repository) = (pr_number, Some(home()), Some(home()));
    of.head_repo = Some("own/repo".to_owned());
    (of.head_sha, of.base_sha) = (head.clone(), base.clone());
    Append::PullRequestMerge(Box::new(merge))
}

fn ran(number: u128, workflow: &str, commit_sha: &CommitSha, result: CiResult) -> Append {
    ci(CiOutcome {
        commit_sha: commit_sha.clone(),
        result,
        workflow_name: workflow.into(),
        ..checked(number, &format!("run {number}"), Some(101), 5_000)
    })
}

fn accepted(number: u128, session: &str, call: u128) -> Append {
    let mut accepted = decision(number);
    accepted.session_id = SessionId::new(session).unwrap();
    accepted.call_id = Some(format!("t{call}"));
    accepted.captured_at = at(2_500);
    Append::DeveloperDecision(Box::new(accepted))
}

/// The facts of a week.
///
/// | Call | Session, user | What became of it |
/// |---|---|---|
/// | 1 | squash, ann | squashed by pull request 16; CI failed on `main` since |
/// | 2 | rebase, ann | rebased by pull request 17; CI passed |
/// | 3 | queue, ann | merged by a queue as pull request 18; CI passed |
/// | 4 | queue, bob | the next in that queue, 19; no verdict |
/// | 5 | revert, bob | merged by pull request 20, reverted by 21 |
/// | 6 | open, bob | in the open pull request 22, without a note |
/// | 7 | lost, bob | accepted, and in no commit |
/// | 8 | gone, bob | its edit was gone before the end |
/// | 9 | talk, bob | only talked; its cost is unknown |
fn week(stage: &Stage, sources: &Sources) -> Vec<Append> {
    let history = History::new();
    let base = history.base.clone();
    history.branch("squash");
    let one = history.write(1);
    history.main();
    history
        .repository
        .run(&["merge", "-q", "--squash", "squash"]);
    let squashed = history.run(&["commit", "-q", "-m", "Work 1 (#16)"]);
    history
        .repository
        .run(&["checkout", "-q", "-b", "rebase", base.as_str()]);
    let two = history.write(2);
    history.main();
    let rebased = history.run(&["cherry-pick", two.as_str()]);
    let mut queued = Vec::new();
    for call in [3, 4] {
        let name = format!("queue{call}");
        history.branch(&name);
        let work = history.write(call);
        history.main();
        let title = format!("Merge pull request #{} from own/{name}", 15 + call);
        let merge = history.run(&["merge", "-q", "--no-ff", "-m", &title, &name]);
        queued.push((work, merge));
    }
    history.branch("reverted");
    let five = history.write(5);
    history.main();
    let before_revert = history.head();
    let twenty = history.run(&[
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "Merge pull request #20",
        "reverted",
    ]);
    history.branch("undo");
    let undo = history.run(&["revert", "--no-edit", "-m", "1", twenty.as_str()]);
    history.main();
    let twenty_one = history.run(&[
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "Merge pull request #21",
        "undo",
    ]);
    history.branch("open");
    let six = history.write(6);
    sources.mirror(&history.repository, 101);

    let mut opened = PullRequestRevision {
        captured_at: at(4_500),
        ..revision(70)
    };
    let of = &mut opened.pull_request;
    (of.pr_number, of.repository, of.head_repository) = (22, Some(home()), Some(home()));
    of.head_repo = Some("own/repo".to_owned());
    (of.head_sha, of.base_sha) = (six.clone(), twenty_one.clone());
    of.base_ref = Branch::new("main").unwrap();
    let mut gone = edit(80, "t8");
    gone.session_id = SessionId::new("gone").unwrap();
    gone.texts.observed_file = svc_model::json::Text::from("");
    gone.captured_at = at(2_500);
    let ((three, third), (four, fourth)) = (queued[0].clone(), queued[1].clone());
    vec![
        worked(stage, 1, "squash", Some(100)),
        worked(stage, 2, "rebase", Some(20)),
        worked(stage, 3, "queue", Some(3)),
        worked(stage, 4, "queue", Some(4)),
        worked(stage, 5, "revert", Some(5)),
        worked(stage, 6, "open", Some(6)),
        worked(stage, 7, "lost", Some(7)),
        worked(stage, 8, "gone", Some(8)),
        worked(stage, 9, "talk", None),
        to_branch(11, "squash", &base, &one),
        to_branch(12, "rebase", &base, &two),
        to_branch(13, "queue3", &rebased, &three),
        to_branch(14, "queue4", &third, &four),
        to_branch(15, "reverted", &before_revert, &five),
        to_branch(16, "undo", &twenty, &undo),
        to_branch(17, "main", &base, &twenty_one),
        to_branch(18, "open", &twenty_one, &six),
        noted(21, 11, "squash", &one),
        noted(22, 12, "rebase", &two),
        noted(23, 13, "queue", &three),
        noted(24, 14, "queue", &four),
        noted(25, 15, "revert", &five),
        merged(31, 16, &one, &base, &squashed),
        merged(32, 17, &two, &base, &rebased),
        merged(33, 18, &three, &rebased, &third),
        merged(34, 19, &four, &third, &fourth),
        merged(35, 20, &five, &before_revert, &twenty),
        merged(36, 21, &undo, &twenty, &twenty_one),
        Append::PullRequestRevision(Box::new(opened)),
        ran(41, "CI", &one, CiResult::Passed),
        ran(42, "CI", &squashed, CiResult::Failed),
        ran(43, "CI", &two, CiResult::Passed),
        ran(44, "CI", &third, CiResult::Passed),
        ran(45, "CI", &five, CiResult::Passed),
        ran(46, "CI", &six, CiResult::Passed),
        accepted(51, "squash", 1),
        accepted(52, "rebase", 2),
        accepted(57, "lost", 7),
        Append::EditObservation(Box::new(gone)),
    ]
}

impl Stage {
    fn overview(&self, sources: &Sources, request: &OverviewRequest) -> Overview {
        self.overview_at(sources, request, DAY)
    }

    fn overview_at(&self, sources: &Sources, request: &OverviewRequest, now: i64) -> Overview {
        let days = OverviewDays::One;
        let request = OverviewRequest {
            days: Some(request.days.unwrap_or(days)),
            ..request.clone()
        };
        overview(&mut self.snapshot(), sources.all(), &request, at(now)).unwrap()
    }

    fn behind(&self, sources: &Sources, outcome: OverviewOutcome) -> String {
        let request = OverviewRequest {
            outcome: Some(outcome),
            ..OverviewRequest::default()
        };
        sessions(&self.overview(sources, &request))
    }
}

fn sessions(overview: &Overview) -> String {
    let ids = overview.sessions.iter().map(|row| row.session_id.as_str());
    ids.collect::<Vec<_>>().join(" ")
}

/// The counts of changes, in the order of the members.
fn counts(figures: &OverviewFigures) -> [u64; 14] {
    [
        figures.calls,
        figures.changes,
        figures.accepted,
        figures.committed,
        figures.committed_by_similarity,
        figures.merged,
        figures.reverted,
        figures.passed,
        figures.failed,
        figures.no_verdict,
        figures.deleted,
        figures.no_commit_found,
        figures.not_observable,
        figures.rejected,
    ]
}

#[rstest]
fn a_week_is_counted_as_by_hand(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let stage = stage!(backend);
    let sources = Sources::new();
    stage.add(week(&stage, &sources));
    let overview = stage.overview(&sources, &OverviewRequest::default());
    let figures = &overview.figures;
    assert_eq!(
        counts(figures),
        [9, 8, 3, 6, 1, 5, 1, 4, 1, 1, 1, 1, 0, 0],
        "{overview:#?}"
    );
    assert_eq!((figures.sessions, figures.people), (8, 2));
    let spend = &figures.spend;
    assert_eq!((spend.cost_usd_micros, spend.unpriced_items), (153, 1));
    assert_eq!(overview.unpriced.get(UnpricedReason::NoCounts), 1);
    let of_models: Vec<_> = overview
        .models
        .iter()
        .map(|row| (row.model.as_deref(), row.figures.calls, row.figures.merged))
        .collect();
    assert_eq!(of_models, [(Some("m2"), 5, 1), (Some("m1"), 4, 4)]);
    let of_repositories: Vec<_> = overview
        .repositories
        .iter()
        .map(|row| {
            (
                row.repo.as_deref(),
                row.figures.calls,
                row.figures.committed,
            )
        })
        .collect();
    assert_eq!(of_repositories, [(Some("own/repo"), 6, 6), (None, 3, 0)]);
    let days: Vec<_> = overview.days.iter().map(|day| day.figures.calls).collect();
    assert_eq!(days, [9]);
}

#[rstest]
fn each_figure_leads_to_its_sessions(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    stage.add(week(&stage, &sources));
    for (outcome, expected) in [
        (
            OverviewOutcome::Changes,
            "gone lost open revert queue rebase squash",
        ),
        (OverviewOutcome::Accepted, "lost rebase squash"),
        (
            OverviewOutcome::Committed,
            "open revert queue rebase squash",
        ),
        (OverviewOutcome::Merged, "revert queue rebase squash"),
        (OverviewOutcome::Reverted, "revert"),
        (OverviewOutcome::Passed, "open revert queue rebase"),
        (OverviewOutcome::Failed, "squash"),
        (OverviewOutcome::NoVerdict, "queue"),
        (OverviewOutcome::Deleted, "gone"),
        (OverviewOutcome::NoCommitFound, "lost"),
        (OverviewOutcome::NotObservable, ""),
        (OverviewOutcome::Rejected, ""),
        (OverviewOutcome::Unpriced, "talk"),
    ] {
        assert_eq!(stage.behind(&sources, outcome), expected, "{outcome}");
    }
    let open = OverviewRequest {
        model: Some(ModelName::new("m2").unwrap()),
        user_id: UserId::new("bob").ok(),
        repository: by_identity(101),
        ..OverviewRequest::default()
    };
    let overview = stage.overview(&sources, &open);
    assert_eq!(
        (overview.figures.calls, sessions(&overview)),
        (2, "open revert".to_owned())
    );
    let [open, _] = &overview.sessions[..] else {
        panic!("{overview:?}");
    };
    let pull_request = &open.pull_requests[0];
    assert_eq!((pull_request.pr_number, pull_request.merged), (22, false));
}

#[rstest]
fn a_red_main_and_edits_that_are_gone_need_a_look(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    stage.add(week(&stage, &sources));
    let overview = stage.overview(&sources, &OverviewRequest::default());
    let attention: Vec<&Attention> = overview
        .attention
        .iter()
        .filter_map(|row| row.known())
        .collect();
    let [
        Attention::FailedCommit {
            repo,
            pr_number,
            workflows,
            session_ids,
            ..
        },
        Attention::DeletedEdits { session_id, calls },
    ] = &attention[..]
    else {
        panic!("{attention:?}");
    };
    assert_eq!((repo.as_str(), *pr_number), ("own/repo", Some(16)));
    assert_eq!(workflows, &["CI"]);
    assert_eq!(session_ids, &[SessionId::new("squash").unwrap()]);
    assert_eq!((session_id.as_str(), *calls), ("gone", 1));
}

#[rstest]
fn without_a_forge_nothing_is_said_to_have_failed(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    stage.add([
        worked(&stage, 1, "a", Some(1)),
        worked(&stage, 2, "b", None),
        accepted(51, "a", 1),
    ]);
    let overview = stage.overview(&sources, &OverviewRequest::default());
    assert_eq!(
        counts(&overview.figures),
        [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    );
    assert_eq!(overview.unobservable.get(Unobservable::NoPush), 1);
    assert!(overview.attention.is_empty(), "{:?}", overview.attention);
}

#[rstest]
fn quarantine_and_erasure_take_what_they_hide(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    stage.add(week(&stage, &sources));
    stage.quarantine(FactTable::InferenceCalls, id(1));
    stage.erase("rebase");
    let overview = stage.overview(&sources, &OverviewRequest::default());
    let figures = &overview.figures;
    // Nobody can tell any more whether what was erased is in a commit; its cost stays.
    assert_eq!(
        (figures.calls, figures.committed, figures.not_observable),
        (8, 4, 1)
    );
    assert_eq!(overview.unobservable.get(Unobservable::ContentErased), 1);
    assert_eq!(figures.spend.cost_usd_micros, 53);
}

#[rstest]
fn much_work_is_shown_as_of_the_last_minute_unless_some_of_it_was_hidden(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::remembering_overviews();
    stage.add([worked(&stage, 1, "a", Some(1))]);
    let seen = |request: &OverviewRequest, now: i64| {
        let overview = stage.overview_at(&sources, request, now);
        (overview.figures.calls, overview.window.as_of)
    };
    let request = OverviewRequest::default();
    assert_eq!(seen(&request, DAY), (1, at(DAY)));
    stage.add([worked(&stage, 2, "b", Some(2))]);
    assert_eq!(seen(&request, DAY + 59), (1, at(DAY)));
    let of_ann = OverviewRequest {
        user_id: UserId::new("ann").ok(),
        ..OverviewRequest::default()
    };
    assert_eq!(seen(&of_ann, DAY + 59), (2, at(DAY + 59)));
    let of_a_moment = OverviewRequest {
        as_of: Some(at(DAY)),
        ..OverviewRequest::default()
    };
    assert_eq!(seen(&of_a_moment, DAY + 59), (2, at(DAY)));
    assert_eq!(seen(&request, DAY + 60), (2, at(DAY + 60)));
    // A clock that was set back.
    assert_eq!(seen(&request, DAY + 50), (2, at(DAY + 50)));
    stage.quarantine(FactTable::InferenceCalls, id(1));
    assert_eq!(seen(&request, DAY + 61), (1, at(DAY + 61)));
    stage.erase("b");
    assert_eq!(seen(&request, DAY + 62), (1, at(DAY + 62)));
}

#[rstest]
fn an_empty_week_is_empty(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let overview = stage.overview(&sources, &OverviewRequest::default());
    assert_eq!(counts(&overview.figures), [0; 14]);
    assert_eq!((overview.session_count, overview.models.len()), (0, 0));
    assert_eq!(overview.days.len(), 1);
}
