//! The links from a commit to its pull requests, and to the commits that its message names.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use svc_engine_mirror::testing::git::{Repository, command};
use svc_model::query::{LinkSkip, LinkedCommit, NamedCommit, ThroughPullRequest};

use super::reports::Sources;
use super::*;

/// The number of the repository, and that of a fork.
const NUMBER: u32 = 101;
const FORK: u32 = 102;
const PUSH: u128 = 1;
const PUSH_OF_FORK: u128 = 2;

/// A forge with one repository, and what the service knows of it.
struct Forge {
    stage: Stage,
    repository: Repository,
    sources: Sources,
    names: RefCell<BTreeMap<CommitSha, String>>,
    next: Cell<u128>,
    clock: Cell<i64>,
}

impl Forge {
    fn open(backend: Backend) -> Option<Self> {
        let forge = Self {
            stage: Stage::open(backend)?,
            repository: Repository::create(),
            sources: Sources::new(),
            names: RefCell::default(),
            next: Cell::new(10),
            clock: Cell::new(0),
        };
        let base = forge.write("base", "base", "base");
        for (number, of) in [(PUSH, NUMBER), (PUSH_OF_FORK, FORK)] {
            forge.stage.add([pushed(Push {
                repository: Some(repository(of)),
                after_sha: base.clone(),
                ..push(number)
            })]);
        }
        Some(forge)
    }

    fn id(&self) -> u128 {
        self.next.replace(self.next.get() + 1)
    }

    /// Runs git a minute later than what ran before.
    fn run(&self, arguments: &[&str]) -> CommitSha {
        self.clock.set(self.clock.get() + 60);
        let seconds = at(self.clock.get()).microseconds() / 1_000_000;
        let date = format!("{seconds} +0000");
        let output = command(&self.repository.folder().join("work"))
            .args(arguments)
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        CommitSha::new(&self.repository.run(&["rev-parse", "HEAD"])).unwrap()
    }

    /// Names the commit that the work tree is at.
    fn named(&self, name: &str, commit: CommitSha) -> CommitSha {
        let mut names = self.names.borrow_mut();
        names.insert(commit.clone(), name.to_owned());
        commit
    }

    /// Commits a file.
    fn write(&self, name: &str, file: &str, text: &str) -> CommitSha {
        self.write_as(name, name, file, text)
    }

    fn write_as(&self, name: &str, message: &str, file: &str, text: &str) -> CommitSha {
        let path = self.repository.folder().join("work").join(file);
        fs::write(path, format!("{text}\n")).unwrap();
        self.repository.run(&["add", "-A"]);
        let commit = self.run(&["commit", "-q", "-m", message]);
        self.named(name, commit)
    }

    fn checkout(&self, branch: &str) {
        self.run(&["checkout", "-q", branch]);
    }

    /// Goes to a new branch of the current one.
    fn branch(&self, branch: &str) {
        self.run(&["checkout", "-q", "-b", branch]);
    }

    /// Commits each file of a new branch, as `BRANCH-FILE`, with a Session of the same name, and
    /// shows the branch as the pull request with this number. Goes back to the branch before.
    fn proposed(&self, number: u32, branch: &str, files: &[&str]) -> CommitSha {
        let before = self.repository.run(&["rev-parse", "--abbrev-ref", "HEAD"]);
        self.branch(branch);
        let mut head = None;
        for file in files {
            let name = format!("{branch}-{file}");
            let commit = self.write(&name, file, &name);
            self.observe(&name, &commit);
            head = Some(commit);
        }
        let head = head.unwrap();
        self.show(number, &head);
        self.checkout(&before);
        head
    }

    /// Shows a head as that of a pull request.
    fn show(&self, number: u32, head: &CommitSha) {
        let name = format!("refs/pull/{number}/head");
        self.repository.run(&["update-ref", &name, head.as_str()]);
    }

    fn squash(&self, branch: &str, message: &str) -> CommitSha {
        self.run(&["merge", "-q", "--squash", branch]);
        let commit = self.run(&["commit", "-q", "-m", message]);
        self.named(message, commit)
    }

    fn merge(&self, branch: &str, message: &str) -> CommitSha {
        let commit = self.run(&["merge", "-q", "--no-ff", "-m", message, branch]);
        self.named(message, commit)
    }

    fn observe(&self, session: &str, commit: &CommitSha) -> FactId {
        self.observe_in(NUMBER, PUSH, session, commit)
    }

    fn observe_in(&self, number: u32, push: u128, session: &str, commit: &CommitSha) -> FactId {
        let fact = SessionCommitObservation {
            repository: Some(repository(number)),
            commit_sha: commit.clone(),
            session_id: SessionId::new(session).unwrap(),
            captured_at: at(self.clock.get()),
            ..observation(self.id(), id(push))
        };
        let observation_id = fact.observation_id;
        self.stage.add([observed(fact)]);
        observation_id
    }

    /// Reports a merge, and returns its id.
    fn merged(
        &self,
        number: i64,
        head: &CommitSha,
        base: &CommitSha,
        as_commit: &CommitSha,
    ) -> FactId {
        self.merged_from(NUMBER, number, head, base, as_commit)
    }

    fn merged_from(
        &self,
        fork: u32,
        number: i64,
        head: &CommitSha,
        base: &CommitSha,
        as_commit: &CommitSha,
    ) -> FactId {
        let mut fact = merge(self.id());
        fact.merge_commit_sha = as_commit.clone();
        fact.merged_at = at(self.clock.get());
        fact.captured_at = at(self.clock.get() + 5);
        fact.pull_request.pr_number = number;
        fact.pull_request.repository = Some(repository(NUMBER));
        fact.pull_request.head_repository = Some(repository(fork));
        fact.pull_request.head_sha = head.clone();
        fact.pull_request.base_sha = base.clone();
        let merge_id = fact.merge_id;
        self.stage.add([Append::PullRequestMerge(Box::new(fact))]);
        merge_id
    }

    fn mirror(&self) -> &Self {
        self.sources.mirror(&self.repository, NUMBER);
        self
    }

    fn asked(&self, commit: &CommitSha, as_of: Option<Instant>) -> CommitEvidence {
        let request = CommitRequest {
            repository: by_identity(NUMBER),
            as_of,
            ..CommitRequest::new(commit.clone())
        };
        let now = at(1_000_000);
        commit_evidence(&mut self.stage.snapshot(), self.sources.all(), request, now).unwrap()
    }

    /// Returns the links of a commit, a line each.
    fn links(&self, commit: &CommitSha) -> Vec<String> {
        self.links_of(&self.asked(commit, None))
    }

    fn links_of(&self, evidence: &CommitEvidence) -> Vec<String> {
        let mut lines = Vec::new();
        for repository in evidence.repos.iter().flatten() {
            self.through(&repository.through_pull_requests, "", &mut lines);
            self.by_name(&repository.named_commits, "", &mut lines);
        }
        lines
    }

    fn through(&self, links: &[ThroughPullRequest], margin: &str, lines: &mut Vec<String>) {
        for link in links {
            let method = link
                .merge_method
                .as_ref()
                .map_or("-", |method| method.as_str());
            let by = if link.merged_at.is_some() {
                "fact"
            } else {
                "mirror"
            };
            lines.push(format!("{margin}#{} {method} by {by}", link.pr_number));
            for commit in &link.commits {
                self.commit(commit, &format!("{margin}  "), lines);
            }
        }
    }

    fn by_name(&self, links: &[NamedCommit], margin: &str, lines: &mut Vec<String>) {
        for link in links {
            lines.push(format!("{margin}{}", link.relation));
            self.commit(&link.commit, &format!("{margin}  "), lines);
        }
    }

    fn commit(&self, commit: &LinkedCommit, margin: &str, lines: &mut Vec<String>) {
        let names = self.names.borrow();
        let name = names.get(&commit.commit_sha).map_or("?", String::as_str);
        let sessions = commit.observed_sessions.iter();
        let sessions: Vec<&str> = sessions.map(|seen| seen.session_id.as_str()).collect();
        lines.push(format!("{margin}{name}: {}", sessions.join(" ")));
        self.through(&commit.through_pull_requests, &format!("{margin}  "), lines);
        self.by_name(&commit.named_commits, &format!("{margin}  "), lines);
    }
}

fn skips(evidence: &CommitEvidence) -> Vec<(LinkSkip, u64)> {
    let skipped = evidence.links_skipped.iter();
    skipped
        .flat_map(|skipped| skipped.iter().collect::<Vec<_>>())
        .collect()
}

/// Opens a forge, or ends the case if the backend is skipped.
macro_rules! forge {
    ($backend:expr) => {
        match Forge::open($backend) {
            Some(forge) => forge,
            None => return,
        }
    };
}

const BOTH: [&str; 3] = ["#16 squash by fact", "  work-a: work-a", "  work-b: work-b"];

#[rstest]
fn a_squash_leads_to_every_commit_of_its_pull_request(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let head = forge.proposed(16, "work", &["a", "b"]);
    forge.write("other", "other", "other");
    let squash = forge.squash("work", "Work");
    let merge_id = forge.merged(16, &head, &base, &squash);
    let evidence = forge.mirror().asked(&squash, None);
    assert_eq!(forge.links_of(&evidence), BOTH);
    assert!(
        !evidence.attributed,
        "nothing was observed at the commit itself"
    );
    assert_eq!(skips(&evidence), []);
    let repository = &evidence.repos.as_ref().unwrap()[0];
    assert_eq!(repository.observed_sessions, []);
    let link = &repository.through_pull_requests[0];
    assert_eq!(link.merge_commit_sha, squash);
    assert_eq!(link.merged_at, Some(at(forge.clock.get())));
    // Nothing leads from what was on the branch before.
    assert_eq!(forge.links(&base), [""; 0]);

    // Before the merge was captured, it is not known.
    let before = Some(at(forge.clock.get()));
    assert_eq!(forge.links_of(&forge.asked(&squash, before)), [""; 0]);
    forge
        .stage
        .quarantine(FactTable::PullRequestMerges, merge_id);
    assert_eq!(forge.links(&squash), [""; 0]);
    forge.stage.release(FactTable::PullRequestMerges, merge_id);
    assert_eq!(forge.links(&squash), BOTH);
}

#[rstest]
fn a_quarantined_observation_is_not_shown(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let head = forge.proposed(16, "work", &["a"]);
    let squash = forge.squash("work", "Work (#16)");
    forge.merged(16, &head, &base, &squash);
    let seen = forge.observe("x", &head);
    let line = |sessions: &str| {
        [
            "#16 squash by fact".to_owned(),
            format!("  work-a: {sessions}"),
        ]
    };
    assert_eq!(forge.mirror().links(&squash), line("work-a x"));
    forge
        .stage
        .quarantine(FactTable::SessionCommitObservations, seen);
    assert_eq!(forge.links(&squash), line("work-a"));
}

#[rstest]
#[case(1)]
#[case(3)]
fn each_rebased_commit_leads_to_the_one_that_it_copies(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[case] commits: usize,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let files = &["a", "b", "c"][..commits];
    let head = forge.proposed(16, "work", files);
    forge.write("other", "other", "other");
    let copies: Vec<CommitSha> = (0..commits)
        .rev()
        .map(|place| forge.run(&["cherry-pick", &format!("work~{place}")]))
        .collect();
    let other = forge.run(&["rev-parse", "HEAD"]);
    assert_eq!(Some(&other), copies.last());
    forge.merged(16, &head, &base, &other);
    let next = forge.write("next", "next", "next");
    forge.mirror();
    for (copy, file) in copies.iter().zip(files) {
        let name = format!("work-{file}");
        let expected = ["#16 rebase by fact".to_owned(), format!("  {name}: {name}")];
        assert_eq!(forge.links(copy), expected);
    }
    for outside in [&base, &next] {
        assert_eq!(forge.links(outside), [""; 0]);
    }
}

#[rstest]
fn a_merge_commit_leads_to_what_its_pull_request_brought_and_no_further(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    forge.proposed(16, "work", &["a"]);
    let update = forge.write("update", "other", "update");
    forge.observe("of-base", &update);
    // The branch takes up what was added to its base, which is not its own.
    forge.checkout("work");
    let taken = forge.merge("main", "take");
    forge.show(16, &taken);
    forge.checkout("main");
    let merge = forge.merge("work", "Merge pull request #16 from own/work");
    forge.merged(16, &taken, &base, &merge);
    let expected = ["#16 merge by fact", "  work-a: work-a", "  take: "];
    assert_eq!(forge.mirror().links(&merge), expected);
}

#[rstest]
fn each_commit_of_a_merge_queue_leads_to_its_own_pull_request(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let one = forge.proposed(16, "one", &["a"]);
    let two = forge.proposed(17, "two", &["b", "c"]);
    forge.branch("gh-readonly-queue/main/pr-17");
    let first = forge.squash("one", "One (#16)");
    let second = forge.squash("two", "Two (#17)");
    forge.checkout("main");
    forge.run(&["merge", "-q", "--ff-only", "gh-readonly-queue/main/pr-17"]);
    forge.merged(16, &one, &base, &first);
    forge.merged(17, &two, &base, &second);
    forge.mirror();
    assert_eq!(
        forge.links(&first),
        ["#16 squash by fact", "  one-a: one-a"]
    );
    let expected = ["#17 squash by fact", "  two-b: two-b", "  two-c: two-c"];
    assert_eq!(forge.links(&second), expected);
}

#[rstest]
fn a_message_names_the_commit_that_was_copied_or_taken_back(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let fix = forge.write("fix", "fix", "fix");
    forge.observe("s", &fix);
    let head = forge.proposed(16, "work", &["a"]);
    let merge = forge.merge("work", "Merge pull request #16 from own/work");
    forge.merged(16, &head, &fix, &merge);
    let undone = forge.run(&["revert", "--no-edit", "-m", "1", "HEAD"]);
    forge.run(&["checkout", "-q", "-b", "release", base.as_str()]);
    let picked = forge.run(&["cherry-pick", "-x", fix.as_str()]);
    let reverted = forge.run(&["revert", "--no-edit", picked.as_str()]);
    forge.named("picked", picked.clone());
    forge.mirror();
    assert_eq!(forge.links(&picked), ["cherry_picked_from", "  fix: s"]);
    let expected = [
        "reverts",
        "  picked: ",
        "    cherry_picked_from",
        "      fix: s",
    ];
    assert_eq!(forge.links(&reverted), expected);
    let evidence = forge.asked(&undone, None);
    assert!(!evidence.attributed);
    let expected = [
        "reverts",
        "  Merge pull request #16 from own/work: ",
        "    #16 merge by fact",
        "      work-a: work-a",
    ];
    assert_eq!(forge.links_of(&evidence), expected);
}

#[rstest]
fn a_squashed_revert_leads_over_its_pull_request_to_what_it_takes_back(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let head = forge.proposed(16, "work", &["a"]);
    let squash = forge.squash("work", "Work (#16)");
    forge.merged(16, &head, &base, &squash);
    forge.branch("undo");
    let revert = forge.run(&["revert", "--no-edit", "HEAD"]);
    forge.named("revert", revert.clone());
    forge.show(17, &revert);
    forge.checkout("main");
    let undone = forge.squash("undo", "Revert \"Work (#16)\" (#17)");
    forge.merged(17, &revert, &squash, &undone);
    let expected = [
        "#17 squash by fact",
        "  revert: ",
        "    reverts",
        "      Work (#16): ",
        "        #16 squash by fact",
        "          work-a: work-a",
    ];
    assert_eq!(forge.mirror().links(&undone), expected);
}

#[rstest]
fn a_pull_request_into_the_branch_of_another_is_followed(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let lower = forge.proposed(16, "lower", &["a"]);
    forge.checkout("lower");
    let upper = forge.proposed(17, "upper", &["b"]);
    forge.write("more-lower", "c", "c");
    let stacked = forge.squash("upper", "Upper (#17)");
    forge.merged(17, &upper, &lower, &stacked);
    forge.checkout("main");
    let squash = forge.squash("lower", "Lower (#16)");
    forge.merged(16, &stacked, &base, &squash);
    let expected = [
        "#16 squash by fact",
        "  lower-a: lower-a",
        "  more-lower: ",
        "  Upper (#17): ",
        "    #17 squash by fact",
        "      upper-b: upper-b",
    ];
    assert_eq!(forge.mirror().links(&squash), expected);
}

#[rstest]
fn earlier_heads_count_and_lost_ones_are_counted(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    let before = forge.proposed(15, "before", &["a"]);
    let head = forge.proposed(16, "work", &["a"]);
    let squash = forge.squash("work", "Work (#16)");
    let mut fact = revision(forge.id());
    fact.pull_request.pr_number = 16;
    fact.pull_request.repository = Some(repository(NUMBER));
    fact.pull_request.head_sha = before;
    fact.previous_head_sha = Some(commit('e'));
    forge
        .stage
        .add([Append::PullRequestRevision(Box::new(fact))]);
    forge.merged(16, &head, &base, &squash);
    let evidence = forge.mirror().asked(&squash, None);
    let lines: BTreeSet<String> = forge.links_of(&evidence).into_iter().collect();
    let expected = [
        "  before-a: before-a",
        "  work-a: work-a",
        "#16 squash by fact",
    ];
    assert!(lines.iter().eq(&expected), "{lines:?}");
    assert_eq!(skips(&evidence), [(LinkSkip::HeadUnavailable, 1)]);
}

#[rstest]
fn of_a_pull_request_whose_head_is_gone_nothing_is_claimed(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    forge.proposed(15, "work", &["a"]);
    let squash = forge.squash("work", "Work (#16)");
    forge.observe("s", &squash);
    forge.merged(16, &commit('d'), &base, &squash);
    let evidence = forge.mirror().asked(&squash, None);
    assert_eq!(forge.links_of(&evidence), ["#16 - by fact", "  ?: "]);
    assert_eq!(skips(&evidence), [(LinkSkip::HeadUnavailable, 1)]);
    // Without a mirror, only the heads that facts name are known.
    let unmirrored = Forge {
        sources: Sources::new(),
        ..forge
    };
    let evidence = unmirrored.asked(&squash, None);
    assert_eq!(unmirrored.links_of(&evidence), ["#16 - by fact", "  ?: "]);
    assert_eq!(
        skips(&evidence),
        [(LinkSkip::HeadUnavailable, 1), (LinkSkip::MirrorAbsent, 1)]
    );
}

#[rstest]
fn the_sessions_of_a_fork_are_those_that_were_observed_there(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let base = forge.write("more", "base", "more");
    forge.branch("work");
    let head = forge.write("work-a", "a", "a");
    forge.observe_in(FORK, PUSH_OF_FORK, "forked", &head);
    forge.show(16, &head);
    forge.checkout("main");
    let squash = forge.squash("work", "Work (#16)");
    // By the mirror alone, it is unknown which fork it was.
    assert_eq!(forge.mirror().links(&squash), [""; 0]);
    forge.merged_from(FORK, 16, &head, &base, &squash);
    assert_eq!(
        forge.links(&squash),
        ["#16 squash by fact", "  work-a: forked"]
    );
}

#[rstest]
fn what_only_a_mirror_knows_is_found_if_the_commit_brings_what_the_pull_request_has(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    forge.proposed(16, "merged", &["a"]);
    forge.proposed(17, "squashed", &["b", "c"]);
    forge.proposed(18, "again", &["base"]);
    let merge = forge.merge("merged", "Merge pull request #16 from own/merged");
    let squash = forge.squash("squashed", "Squashed (#17)");
    // Nothing but the change itself tells that these are the same.
    let again = forge.squash("again", "Again (#18)");
    forge.mirror();
    assert_eq!(
        forge.links(&merge),
        ["#16 merge by mirror", "  merged-a: merged-a"]
    );
    let expected = [
        "#17 squash by mirror",
        "  squashed-b: squashed-b",
        "  squashed-c: squashed-c",
    ];
    assert_eq!(forge.links(&squash), expected);
    assert_eq!(
        forge.links(&again),
        ["#18 squash by mirror", "  again-base: again-base"]
    );
    // At the time of the question, these commits did not exist.
    let before = Some(at(100));
    for commit in [&merge, &squash] {
        assert_eq!(forge.links_of(&forge.asked(commit, before)), [""; 0]);
    }
}

#[rstest]
fn a_message_that_lies_leads_nowhere(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let forge = forge!(backend);
    let head = forge.proposed(16, "work", &["a"]);
    forge.proposed(17, "elsewhere", &["b"]);
    let squash = forge.write_as("lie", "Other work (#16)", "x", "x");
    let empty = forge.run(&["commit", "-q", "--allow-empty", "-m", "Nothing (#16)"]);
    let merge = forge.merge("elsewhere", "Merge pull request #16 from own/work");
    let plain = forge.write_as("plain", "Merge pull request #16 from own/work", "y", "y");
    let absent = format!("Undo\n\nThis reverts commit {}.", commit('9'));
    let revert = forge.write_as("undo", &absent, "z", "z");
    // The forge says that this one was merged as another commit.
    let copied = forge.squash("work", "Work (#16)");
    forge.merged(16, &head, &head, &squash);
    forge.mirror();
    for lie in [&empty, &merge, &plain, &revert, &copied] {
        let evidence = forge.asked(lie, None);
        assert_eq!(forge.links_of(&evidence), [""; 0], "{lie}");
        assert_eq!(skips(&evidence), []);
    }
}

/// What is linked is observed at a commit of the pull request, whatever the way of merging.
#[test]
fn only_sessions_at_commits_of_the_pull_request_are_claimed() {
    let forge = Forge::open(Backend::Sqlite).expect("SQLite is never skipped");
    let mut dice = super::worlds::Dice::new(7);
    let mut claimed = 0;
    for number in 1..12 {
        let base = forge.run(&["rev-parse", "HEAD"]);
        let branch = format!("branch{number}");
        let files: Vec<String> = (0..=dice.below(3))
            .map(|file| format!("f{number}-{file}"))
            .collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let head = forge.proposed(number, &branch, &files);
        if dice.below(2) == 0 {
            let foreign = forge.write("foreign", "foreign", &format!("{number}"));
            forge.observe("foreign", &foreign);
        }
        let message = format!("Work (#{number})");
        let landed = match dice.below(3) {
            0 => forge.squash(&branch, &message),
            1 => forge.merge(&branch, &message),
            _ => forge.run(&["cherry-pick", &format!("{base}..{branch}")]),
        };
        if dice.below(10) < 7 {
            forge.merged(i64::from(number), &head, &base, &landed);
        }
        fs::remove_dir_all(forge.sources.path(NUMBER)).unwrap_or_default();
        let evidence = forge.mirror().asked(&landed, None);
        for repository in evidence.repos.iter().flatten() {
            for commit in repository.linked_commits() {
                for session in &commit.observed_sessions {
                    claimed += 1;
                    assert!(
                        session
                            .session_id
                            .as_str()
                            .starts_with(&format!("{branch}-"))
                    );
                }
            }
        }
    }
    assert!(claimed > 8, "{claimed}");
}
