//! The heads of merged pull requests that a fetch does not bring.

use svc_engine_fact::PullRequestMerge;
use svc_engine_fact::testing::builders::merge;

use super::*;
use crate::bare::Mirror;
use crate::heads::{HeadCounts, Heads, HeadsError};
use crate::testing::git::git;

impl Service {
    /// Stores the merge of a pull request with this head.
    fn merged(&self, number: i64, head: &str) -> PullRequestMerge {
        let merge = Self::merge(number, head, at(number));
        let fact = Append::PullRequestMerge(Box::new(merge.clone()));
        self.store.append_blocking(vec![fact]).unwrap();
        merge
    }

    fn merge(number: i64, head: &str, captured_at: Instant) -> PullRequestMerge {
        let mut merge = merge(u128::try_from(number).unwrap() + 1_000);
        merge.pull_request.repository = Some(repository(7));
        merge.pull_request.pr_number = number;
        merge.pull_request.head_sha = CommitSha::new(head).unwrap();
        merge.captured_at = captured_at;
        merge
    }

    /// Requests the heads of merges, as a refresh does.
    fn ask(
        &self,
        merges: &[PullRequestMerge],
        deadline: Deadline,
    ) -> (HeadCounts, Result<(), HeadsError>) {
        let Refresher {
            config,
            folder,
            git,
            ..
        } = &self.refresher;
        let lifetime = Lifetime::Identified(repository(7));
        let allowance = Allowance::until(deadline);
        let remote = config.remotes.check(&self.forge.url(), &allowance).unwrap();
        let lock = folder.lock(&lifetime, &allowance).unwrap();
        let mirror = Mirror::at(git, self.mirror());
        let heads = Heads::of(&mirror.path);
        let mut asked = HeadCounts::default();
        let done = heads.fetch(&mirror, merges, &remote, &lock, &allowance, &mut asked);
        (asked, done)
    }

    /// Creates a commit that the forge has but that none of its refs shows.
    fn unshown(&self, message: &str) -> String {
        let forge = &self.forge;
        forge.run(&["checkout", "-q", "--detach"]);
        let head = forge.commit(message);
        forge.run(&["push", "-q", "origin", "HEAD:refs/heads/away"]);
        git(&forge.bare(), &["update-ref", "-d", "refs/heads/away"], "");
        forge.run(&["checkout", "-q", "main"]);
        head
    }

    fn mirror(&self) -> std::path::PathBuf {
        self.refresher
            .folder
            .path(&Lifetime::Identified(repository(7)))
    }

    fn mirror_has(&self, commit: &str) -> bool {
        let what = git(&self.mirror(), &["cat-file", "--batch-check"], commit);
        what.contains(" commit ")
    }

    /// Refreshes once more, with nothing new.
    fn refresh_again(&self, head: &str) {
        self.deliver(ZEROS, head, |_| {});
        let outcome = self.refresh();
        assert!(
            matches!(outcome, Some(RefreshOutcome::Refreshed { .. })),
            "{outcome:?}"
        );
    }
}

#[rstest]
fn a_head_without_a_ref_on_the_forge_is_fetched_by_its_id_and_kept(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(service) = Service::start_with(backend, |_| {}) else {
        return;
    };
    let main = service.forge.commit("main");
    service.forge.push();
    let unshown = service.unshown("from a fork");
    service.merged(5, &unshown);
    service.refresh_again(&main);
    assert!(service.mirror_has(&unshown));
    let kept = git(
        &service.mirror(),
        &["rev-parse", "refs/svc-merged/5/head"],
        "",
    );
    assert_eq!(kept, unshown);
    // The next fetch prunes, but keeps it.
    service.refresh_again(&main);
    let kept = git(
        &service.mirror(),
        &["rev-parse", "refs/svc-merged/5/head"],
        "",
    );
    assert_eq!(kept, unshown);
    // A recreated mirror requests the heads again.
    fs::remove_dir_all(service.database.folder().join("mirrors")).unwrap();
    service.refresh_again(&main);
    assert!(service.mirror_has(&unshown));
}

#[test]
fn a_head_missing_on_the_forge_is_requested_once() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    service.forge.run(&["checkout", "-q", "--detach"]);
    let local = service.forge.commit("not pushed yet");
    service.forge.run(&["checkout", "-q", "main"]);
    let shown = service.unshown("another");
    service.merged(1, &local);
    service.merged(2, &shown);
    service.refresh_again(&main);
    assert!(!service.mirror_has(&local));
    assert!(service.mirror_has(&shown), "the others are still requested");
    // The forge has it now, but nobody asks.
    service
        .forge
        .run(&["push", "-q", "origin", &format!("{local}:refs/heads/away")]);
    git(
        &service.forge.bare(),
        &["update-ref", "-d", "refs/heads/away"],
        "",
    );
    service.refresh_again(&main);
    assert!(!service.mirror_has(&local));
}

#[test]
fn a_malformed_head_is_given_up_without_affecting_others() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    // A commit without an author: the server sends it, but the checks refuse it.
    let tree = service.forge.run(&["rev-parse", "HEAD^{tree}"]);
    let odd = format!("tree {tree}\ncommitter A <a@example.test> 1 +0000\n\nodd\n");
    let write = [
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--literally",
        "--stdin",
    ];
    let odd = git(&service.forge.bare(), &write, &odd);
    let shown = service.unshown("behind it");
    service.merged(1, &odd);
    service.merged(2, &shown);
    for tries in 1..=3 {
        service.refresh_again(&main);
        assert!(!service.mirror_has(&odd));
        assert_eq!(service.mirror_has(&shown), tries == 3, "{tries}");
    }
    assert!(service.mirror_has(&main));
}

#[test]
fn many_missing_heads_are_requested_over_several_refreshes() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    let heads: Vec<String> = (0..10)
        .map(|number| service.unshown(&number.to_string()))
        .collect();
    // Facts that are stored together may have been received at the same time.
    let merged = |(number, head): (i64, &String)| {
        Append::PullRequestMerge(Box::new(Service::merge(number, head, at(1))))
    };
    let merges: Vec<Append> = (1..).zip(&heads).map(merged).collect();
    service.store.append_blocking(merges).unwrap();
    service.refresh_again(&main);
    let there = || heads.iter().filter(|head| service.mirror_has(head)).count();
    assert_eq!(there(), 8);
    service.refresh_again(&main);
    assert_eq!(there(), 10);
}

#[test]
fn a_stopped_refresh_reports_the_heads_it_has_and_requests_the_rest_later() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    service.refresh_again(&main);
    let heads: Vec<String> = (0..8)
        .map(|number| service.unshown(&number.to_string()))
        .collect();
    let merges: Vec<PullRequestMerge> = (1..)
        .zip(&heads)
        .map(|(number, head)| service.merged(number, head))
        .collect();
    let deadline = Deadline::after(Duration::from_mins(1));
    // Its fetch begins only after the first one has been counted.
    let second = service.mirror().join("refs/svc-merged/2/head");
    let (asked, done) = thread::scope(|scope| {
        let stop = deadline.clone();
        scope.spawn(move || {
            while !second.exists() {
                thread::sleep(Duration::from_millis(1));
            }
            stop.cancel();
        });
        service.ask(&merges, deadline)
    });
    assert!(done.is_err(), "{asked:?}");
    assert!((1..8).contains(&asked.fetched), "{asked:?}");
    let (rest, done) = service.ask(&merges, Deadline::after(Duration::from_mins(1)));
    done.unwrap();
    assert_eq!(asked.fetched + rest.fetched, 8, "each is reported once");
    for (number, head) in (1..).zip(&heads) {
        let name = format!("refs/svc-merged/{number}/head");
        assert_eq!(git(&service.mirror(), &["rev-parse", &name], ""), *head);
    }
}

#[test]
fn a_head_that_arrived_before_its_fetch_was_killed_is_kept_and_reported() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    service.refresh_again(&main);
    let unshown = service.unshown("from a fork");
    let merges = [service.merged(5, &unshown)];
    // The state that a server leaves if it is killed after the head arrived and before its ref
    // exists.
    fs::write(
        service.mirror().join("svc-pull-requests"),
        format!("0 - 0 {unshown}\n"),
    )
    .unwrap();
    let fetch = [
        "fetch",
        "-q",
        "--no-write-fetch-head",
        &service.forge.url(),
        &unshown,
    ];
    git(&service.mirror(), &fetch, "");
    assert!(service.mirror_has(&unshown));
    let minute = || Deadline::after(Duration::from_mins(1));
    let (asked, done) = service.ask(&merges, minute());
    done.unwrap();
    assert_eq!(asked.fetched, 1);
    let name = ["rev-parse", "refs/svc-merged/5/head"];
    assert_eq!(git(&service.mirror(), &name, ""), unshown);
    let (again, done) = service.ask(&merges, minute());
    done.unwrap();
    assert_eq!(again, HeadCounts::default(), "it is reported once");
}
