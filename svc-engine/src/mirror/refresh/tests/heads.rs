//! Heads of merged pull requests that a fetch does not bring.

use super::*;
use crate::testing::builders::merge;
use crate::testing::git::git;

impl Service {
    /// Stores that a pull request with this head was merged.
    fn merged(&self, number: i64, head: &str) {
        let mut merge = merge(u128::try_from(number).unwrap() + 1_000);
        merge.pull_request.repository = Some(repository(7));
        merge.pull_request.pr_number = number;
        merge.pull_request.head_sha = CommitSha::new(head).unwrap();
        merge.captured_at = at(number);
        let fact = Append::PullRequestMerge(Box::new(merge));
        self.store.append_blocking(vec![fact]).unwrap();
    }

    /// Makes a commit of which the forge has the object and shows no ref.
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

    /// Refreshes once more, without any news.
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
fn a_head_that_the_forge_no_longer_shows_is_fetched_by_its_id_and_kept(
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
    // The next fetch, which prunes, leaves it.
    service.refresh_again(&main);
    let kept = git(
        &service.mirror(),
        &["rev-parse", "refs/svc-merged/5/head"],
        "",
    );
    assert_eq!(kept, unshown);
    // A mirror that is made anew asks anew.
    fs::remove_dir_all(service.database.folder().join("mirrors")).unwrap();
    service.refresh_again(&main);
    assert!(service.mirror_has(&unshown));
}

#[test]
fn a_head_that_the_forge_lacks_is_asked_for_once() {
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
    assert!(
        service.mirror_has(&shown),
        "the others are asked for all the same"
    );
    // Now the forge has it, and nobody asks.
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
fn a_head_that_cannot_be_read_is_given_up_and_harms_nothing() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    // A commit without an author: a server sends it, and no check lets it pass.
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
fn many_missing_heads_are_asked_for_over_several_refreshes() {
    let service = Service::start();
    let main = service.forge.commit("main");
    service.forge.push();
    let heads: Vec<String> = (0..10).map(|it| service.unshown(&it.to_string())).collect();
    for (number, head) in (1..).zip(&heads) {
        service.merged(number, head);
    }
    service.refresh_again(&main);
    let there = || heads.iter().filter(|head| service.mirror_has(head)).count();
    assert_eq!(there(), 8);
    service.refresh_again(&main);
    assert_eq!(there(), 10);
}
