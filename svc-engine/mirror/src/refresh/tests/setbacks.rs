//! What goes wrong, and what then happens to the job.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::{MirrorReader, ReadError};

#[test]
fn a_lost_mirror_is_created_again() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let remove = || fs::remove_dir_all(service.database.folder().join("mirrors")).unwrap();
    remove();
    let next = service.forge.commit("next");
    service.forge.stamp(&next, &["s"]);
    service.push(&head, &next);
    // The observed state is in the history of the notes, so only what is new is read.
    assert_eq!(service.refresh(), refreshed(1, 0));
    remove();
    let tree = service
        .forge
        .run(&["rev-parse", &format!("{NOTES}^{{tree}}")]);
    let alone = service.forge.run(&["commit-tree", "-m", "x", &tree]);
    service.forge.run(&["update-ref", NOTES, &alone]);
    service.push(&head, &next);
    // Without that history, everything is read again.
    assert_eq!(service.refresh(), refreshed(0, 2));
    // A mirror whose creation was interrupted before it had anything.
    let mirror = service
        .refresher
        .folder
        .path(&Lifetime::Identified(repository(7)));
    fs::remove_file(mirror.join("HEAD")).unwrap();
    service.deliver(&head, &next, |_| {});
    assert!(matches!(
        service.refresh(),
        Some(RefreshOutcome::Refreshed { .. })
    ));
}

#[test]
fn a_missing_repository_is_retried_until_it_is_back() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.forge.push();
    let url = service.forge.url();
    service.deliver(ZEROS, &head, |push| {
        push.clone_url = format!("{url}-missing");
    });
    let Some(RefreshOutcome::Failed(reason, detail, Some(retry_at))) = service.refresh() else {
        panic!("it fails");
    };
    assert_eq!(reason, MirrorFailure::FetchFailed);
    assert!(detail.starts_with("fatal: "), "{detail}");
    let status = service.status();
    assert_eq!(status.state, JobState::Retrying(retry_at));
    assert_eq!(status.last_failure.as_deref(), Some("fetch_failed"));
    assert_eq!(service.refresh(), None, "it waits");
    // The same push arrives again, with the clone URL.
    service.deliver(ZEROS, &head, |push| push.captured_at = at(2_000));
    assert_eq!(service.refresh(), refreshed(1, 0));
}

/// Somebody can write to the folder of the mirrors, and makes git run a program in each known way.
#[test]
fn an_altered_mirror_runs_nothing_and_says_why() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
    let folder = &service.refresher.folder;
    let lifetime = Lifetime::Identified(repository(7));
    let mirror = folder.path(&lifetime);
    let config = fs::read_to_string(mirror.join("config")).unwrap();
    let (marker, script) = (mirror.join("ran"), mirror.join("script"));
    fs::write(
        &script,
        format!("#!/bin/sh\ntouch '{}'\n", marker.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (script, url) = (script.display(), service.forge.url());
    let ext = format!(
        "[url \"ext::{script} #\"]\n\tinsteadOf = {url}\n[protocol \"ext\"]\n\tallow = always\n"
    );
    fs::write(mirror.join("more"), &ext).unwrap();
    let git = "git://127.0.0.1:1/r.git";
    for (added, alternate, url) in [
        (ext.clone(), false, &*url),
        ("[include]\n\tpath = more\n".to_owned(), false, &*url),
        (format!("[core]\n\tgitProxy = {script}\n"), false, git),
        (
            format!(
                "[url \"ssh://x/\"]\n\tinsteadOf = git://\n[core]\n\tsshCommand = {script}\n\
                 [protocol \"ssh\"]\n\tallow = always\n"
            ),
            false,
            git,
        ),
        (
            format!("[core]\n\talternateRefsCommand = {script}\n"),
            true,
            &*url,
        ),
        // The alternate alone would make the objects of another mirror readable.
        (String::new(), true, &*url),
    ] {
        fs::write(mirror.join("config"), format!("{config}{added}")).unwrap();
        let alternates = mirror.join("objects/info/alternates");
        if alternate {
            fs::create_dir_all(alternates.parent().unwrap()).unwrap();
            let objects = service.forge.folder().join("forge.git/objects");
            fs::write(&alternates, format!("{}\n", objects.display())).unwrap();
        }
        let next = service.forge.commit("next");
        service.forge.push();
        service.deliver(&head, &next, |push| push.clone_url = url.to_owned());
        let outcome = service.refresh();
        let Some(RefreshOutcome::Failed(MirrorFailure::MirrorAltered, detail, _)) = outcome else {
            panic!("{added}: {outcome:?}");
        };
        assert!(detail.contains("the mirror"), "{detail}");
        assert_eq!(
            service.status().last_failure.as_deref(),
            Some("mirror_altered")
        );
        let deadline = Deadline::after(Duration::from_mins(1));
        let git = Git::find(&deadline).unwrap();
        let reader = MirrorReader::open(&git, folder, &lifetime, &deadline).unwrap();
        let read = reader.unwrap().commit(&CommitSha::new(&head).unwrap());
        assert!(matches!(read, Err(ReadError::Git(_))), "{read:?}");
        assert!(!marker.exists(), "{added}");
        drop(fs::remove_file(alternates));
    }
    fs::write(mirror.join("config"), config).unwrap();
    let next = service.forge.commit("next");
    service.push(&head, &next);
    assert_eq!(service.refresh(), refreshed(0, 0));
}

#[test]
fn a_refused_url_is_not_retried_and_an_earlier_url_is_used() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        let allowed = AllowedHosts::Listed(vec!["forge.test".to_owned()]);
        config.remotes = Remotes::new(allowed, std::collections::BTreeMap::new());
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let Some(RefreshOutcome::Declined(reason, detail)) = service.refresh() else {
        panic!("it is refused");
    };
    assert_eq!(reason, MirrorFailure::CloneUrlRefused);
    assert_eq!(detail, "the scheme is not http, https, git or ssh");
    assert_eq!(service.refresh(), None);
    let status = service.status();
    assert_eq!(status.state, JobState::Refused);
    assert_eq!(status.last_failure.as_deref(), Some("clone_url_refused"));
    assert!(!service.database.folder().join("mirrors").exists());
}

#[test]
fn jobs_wait_while_there_is_no_disk_space() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.reserve_bytes = u64::MAX;
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    assert_eq!(
        service.refresh(),
        Some(RefreshOutcome::PutBack(Some(MirrorFailure::DiskReserve)))
    );
    let status = service.status();
    assert_eq!(status.last_failure.as_deref(), Some("disk_reserve"));
    assert_eq!((status.attempts, status.waiting_pushes), (0, 1));
    assert!(matches!(status.state, JobState::Retrying(_)));
}

#[test]
fn a_job_that_is_cancelled_or_finds_its_mirror_locked_is_put_back() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let cancellation = Cancellation::default();
    cancellation.cancel();
    let job = service.refresher.claim(JobChoice::Any).unwrap().unwrap();
    assert_eq!(
        service.refresher.run(&job, &cancellation).unwrap(),
        RefreshOutcome::PutBack(None)
    );
    assert_eq!(service.status().attempts, 0);
    let allowance = Allowance::until(Deadline::after(Duration::from_mins(1)));
    let lock = service
        .refresher
        .folder
        .lock(&job.lifetime, &allowance)
        .unwrap();
    assert_eq!(service.refresh(), Some(RefreshOutcome::PutBack(None)));
    drop(lock);
    assert!(
        service
            .refresher
            .claim_now(&job.lifetime)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_deadline_ends_a_job() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.deadline = Duration::ZERO;
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let outcome = service.refresh();
    assert!(
        matches!(
            outcome,
            Some(RefreshOutcome::Failed(
                MirrorFailure::FetchTimeout,
                _,
                Some(_)
            ))
        ),
        "{outcome:?}"
    );
}

#[rstest]
fn an_unreadable_row_fails_only_its_job(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(service) = Service::start_with(backend, |_| {}) else {
        return;
    };
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let broken = "UPDATE pushes SET before_sha = 'no commit'";
    assert_eq!(service.database.change(broken), 1);
    let Some(RefreshOutcome::Failed(reason, detail, Some(retry_at))) = service.refresh() else {
        panic!("it fails");
    };
    assert_eq!(reason, MirrorFailure::StoreFailed);
    assert_eq!(detail, "cannot read a row of pushes: a commit");
    let status = service.status();
    assert_eq!(status.state, JobState::Retrying(retry_at));
    assert_eq!(status.last_failure.as_deref(), Some("store_failed"));
    assert_eq!((status.attempts, status.waiting_pushes), (1, 1));
    assert_eq!(service.refresh(), None, "it waits");
}

#[test]
fn leftovers_of_a_killed_git_do_not_stop_the_next_one() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let mirror = service
        .refresher
        .folder
        .path(&Lifetime::Identified(repository(7)));
    let leave = || {
        for left in [
            "refs/heads/main.lock",
            "packed-refs.lock",
            "objects/pack/tmp_pack_abc123",
        ] {
            fs::create_dir_all(mirror.join(left).parent().unwrap()).unwrap();
            fs::write(mirror.join(left), "half").unwrap();
        }
    };
    leave();
    fs::write(mirror.join("svc-unfinished"), "").unwrap();
    let next = service.forge.commit("next");
    service.forge.stamp(&next, &["t"]);
    service.push(&head, &next);
    assert_eq!(service.refresh(), refreshed(1, 0));
    assert!(!mirror.join("objects/pack/tmp_pack_abc123").exists());
    assert!(!mirror.join("svc-unfinished").exists());
    // The leftovers of a failure are removed at once, because they may be what fills the disk.
    leave();
    let url = service.forge.url();
    service.deliver(&head, &next, |push| {
        push.clone_url = format!("{url}-missing");
    });
    assert!(matches!(
        service.refresh(),
        Some(RefreshOutcome::Failed(MirrorFailure::FetchFailed, ..))
    ));
    assert!(!mirror.join("objects/pack/tmp_pack_abc123").exists());
}

#[test]
fn a_mirror_that_git_cannot_read_is_created_again() {
    let service = Service::start();
    let mut last = service.forge.commit("first");
    service.push(ZEROS, &last);
    assert_eq!(service.refresh(), refreshed(0, 0));
    let mirror = service
        .refresher
        .folder
        .path(&Lifetime::Identified(repository(7)));
    let breaks: [&dyn Fn(); 5] = [
        &|| fs::remove_dir_all(mirror.join("objects")).unwrap(),
        &|| fs::remove_dir_all(mirror.join("objects/pack")).unwrap(),
        &|| fs::write(mirror.join("HEAD"), "no head").unwrap(),
        &|| fs::write(mirror.join("config"), "").unwrap(),
        &|| {
            fs::remove_dir_all(&mirror).unwrap();
            let arguments = ["init", "-q", "--bare", "--object-format=sha256"];
            let folder = mirror.to_str().unwrap();
            let arguments = [&arguments[..], &[folder]].concat();
            crate::testing::git::git(service.forge.folder(), &arguments, "");
        },
    ];
    for (number, make_broken) in breaks.iter().enumerate() {
        make_broken();
        let next = service.forge.commit("next");
        service.forge.stamp(&next, &[&format!("s{number}")]);
        service.push(&last, &next);
        let outcome = service.refresh();
        assert!(
            matches!(outcome, Some(RefreshOutcome::Refreshed { stored: 1, .. })),
            "{number}: {outcome:?}"
        );
        last = next;
    }
}
