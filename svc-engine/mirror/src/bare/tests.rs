use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use tempfile::TempDir;

use super::*;
use crate::folder::MirrorFolder;
use crate::remote::{AllowedHosts, Remotes};
use crate::testing::git::{NOTES, Repository, stamp};

const SVC: NotesRef = NotesRef::Svc;

pub(in super::super) fn long() -> Allowance {
    Allowance::until(Deadline::after(Duration::from_mins(1)))
}

pub(in super::super) fn id(text: &str) -> ObjectId {
    ObjectId::parse(text.as_bytes()).unwrap()
}

pub(in super::super) fn digit(digit: char) -> ObjectId {
    id(&digit.to_string().repeat(40))
}

/// A mirror of a repository on this machine.
pub(in super::super) struct Mirrored {
    git: Git,
    root: TempDir,
}

impl Mirrored {
    pub(in super::super) fn new() -> Self {
        Self {
            git: Git::find(&Deadline::after(Duration::from_mins(1))).unwrap(),
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub(in super::super) fn mirror(&self) -> Mirror<'_> {
        Mirror::at(&self.git, self.root.path().join("m"))
    }

    fn lock(&self) -> MirrorLock {
        let org_id = svc_model::id::OrgId::new("acme").unwrap();
        let folder = MirrorFolder::new(self.root.path(), org_id);
        let lifetime = Lifetime::parse("own/name").unwrap();
        folder.lock(&lifetime, &long()).unwrap()
    }

    pub(in super::super) fn fetch(&self, repository: &Repository) -> Result<(), FetchError> {
        let like = id(&repository.run(&["rev-parse", "HEAD"]));
        let lifetime = Lifetime::parse("own/name").unwrap();
        let lock = self.lock();
        self.mirror().prepare(&lifetime, like, &lock, &long())?;
        let remotes = Remotes::new(AllowedHosts::Anything, std::collections::BTreeMap::new());
        let remote = remotes.check(&repository.url(), &long()).unwrap();
        self.mirror().fetch(&remote, &NotesRef::ALL, &lock, &long())
    }

    fn git(&self, arguments: &[&str]) -> String {
        crate::testing::git::git(&self.root.path().join("m"), arguments, "")
    }
}

#[test]
fn a_mirror_follows_branches_notes_and_pull_requests() {
    let repository = Repository::create();
    let mirrored = Mirrored::new();
    let first = repository.commit("first");
    repository.stamp(&first, &["s"]);
    repository.note("refs/notes/ai", &first, "x");
    repository.note("refs/notes/commits", &first, "private");
    repository.run(&["branch", "gone"]);
    repository.run(&["tag", "v1"]);
    repository.run(&["update-ref", "refs/pull/7/head", "HEAD"]);
    repository.run(&["update-ref", "refs/pull/7/merge", "HEAD"]);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let refs = || mirrored.git(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(
        refs().lines().collect::<Vec<_>>(),
        [
            "refs/heads/gone",
            "refs/heads/main",
            "refs/notes/ai",
            "refs/notes/svc",
            "refs/pull/7/head"
        ]
    );
    let tips = mirrored
        .mirror()
        .notes_tips(&[SVC, NotesRef::GitAi], &long())
        .unwrap();
    let tip = id(&repository.run(&["rev-parse", NOTES]));
    assert_eq!(tips[0], Some(tip));
    assert!(tips[1].is_some_and(|other| other != tip));

    repository.run(&["branch", "-D", "gone"]);
    repository.run(&["branch", "gone/deeper"]);
    repository.run(&["commit", "-q", "--amend", "--allow-empty", "-m", "second"]);
    repository.run(&["update-ref", "-d", "refs/notes/ai"]);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    assert_eq!(
        refs().lines().collect::<Vec<_>>(),
        [
            "refs/heads/gone/deeper",
            "refs/heads/main",
            "refs/notes/svc",
            "refs/pull/7/head"
        ]
    );
    assert_eq!(
        mirrored.git(&["rev-parse", "main"]),
        repository.run(&["rev-parse", "main"])
    );
    assert!(!mirrored.root.path().join("m/FETCH_HEAD").exists());
}

#[test]
fn a_repository_without_notes_or_with_longer_ids_is_mirrored_too() {
    let repository = Repository::create_with("sha256");
    let mirrored = Mirrored::new();
    let commit = repository.commit("first");
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let tips = mirrored.mirror().notes_tips(&[SVC], &long()).unwrap();
    assert_eq!(tips, [None]);
    repository.stamp(&commit, &["s"]);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let tip = mirrored.mirror().notes_tips(&[SVC], &long()).unwrap()[0].unwrap();
    let noted = mirrored
        .mirror()
        .notes_of(tip, &[id(&commit)], &long())
        .unwrap();
    assert_eq!(noted.len(), 1);
}

#[test]
fn harmless_old_mistakes_are_fetched_and_broken_objects_are_not() {
    let repository = Repository::create();
    let first = repository.commit("first");
    let tree = repository.run(&["rev-parse", "HEAD^{tree}"]);
    let write = |kind: &str, text: &str| {
        let arguments = ["hash-object", "-t", kind, "-w", "--stdin", "--literally"];
        repository.run_with(&arguments, text)
    };
    let odd = write(
        "commit",
        &format!(
            "tree {tree}\nparent {first}\nauthor A<a@x> 01 +051800\ncommitter <a@x> 99999999999999999999 +0000\n\nodd\n"
        ),
    );
    repository.run(&["update-ref", "refs/heads/main", &odd]);
    repository.push();
    let mirrored = Mirrored::new();
    mirrored.fetch(&repository).unwrap();
    assert_eq!(mirrored.git(&["rev-parse", "main"]), odd);

    let broken = write(
        "commit",
        &format!("tree {tree}\nparent {first}\nno header\n"),
    );
    repository.run(&["update-ref", "refs/heads/main", &broken]);
    repository.push();
    let Err(FetchError::Git(error)) = mirrored.fetch(&repository) else {
        panic!("a broken commit is refused");
    };
    assert_eq!(error.stopped(), None);
    assert_eq!(
        mirrored.git(&["rev-parse", "main"]),
        odd,
        "nothing has changed"
    );
}

#[test]
fn kinds_of_objects_are_distinguished() {
    let repository = Repository::create();
    let commit = repository.commit("first");
    repository.stamp(&commit, &["s"]);
    repository.push();
    let mirrored = Mirrored::new();
    mirrored.fetch(&repository).unwrap();
    let tip = id(&repository.run(&["rev-parse", NOTES]));
    let tree = repository.run(&["rev-parse", "HEAD^{tree}"]);
    let note = id(&repository.run(&["rev-parse", &format!("{tip}:{commit}")]));
    let names = [
        commit.clone(),
        tree,
        digit('f').to_string(),
        format!("{tip}:{commit}"),
        format!("{tip}:nothing at all"),
        format!("{}:x", digit('e')),
    ];
    let objects = mirrored.mirror().objects(&names, &long()).unwrap();
    let blob = Object::Blob {
        id: note,
        bytes: stamp(&["s"]).len() as u64,
    };
    assert_eq!(
        objects,
        [
            Object::Commit,
            Object::Other,
            Object::Absent,
            blob,
            Object::Absent,
            Object::Absent
        ]
    );
    let nothing: [&str; 0] = [];
    assert_eq!(mirrored.mirror().objects(nothing, &long()).unwrap(), []);
}

#[test]
fn a_truncated_range_keeps_its_newest_commits() {
    let repository = Repository::create();
    let commits: Vec<ObjectId> = (0..6)
        .map(|number| id(&repository.commit(&number.to_string())))
        .collect();
    repository.push();
    let mirrored = Mirrored::new();
    mirrored.fetch(&repository).unwrap();
    let range = |before, after, max| {
        mirrored
            .mirror()
            .range(before, after, max, &long())
            .unwrap()
    };
    assert_eq!(
        range(commits[1], commits[4], 20),
        [commits[4], commits[3], commits[2]]
    );
    assert_eq!(range(commits[0], commits[5], 2), [commits[5], commits[4]]);
    assert_eq!(range(commits[4], commits[1], 20), []);
}

#[test]
fn commits_that_no_branch_reaches_are_listed() {
    let repository = Repository::create();
    let mirrored = Mirrored::new();
    let base = repository.commit("base");
    repository.run(&["checkout", "-q", "-b", "side"]);
    let side = repository.commit("side");
    repository.run(&["update-ref", "refs/pull/1/head", &side]);
    repository.run(&["checkout", "-q", "main"]);
    let head = repository.commit("head");
    repository.run(&["branch", "-q", "-D", "side"]);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let commits = [id(&base), id(&side), id(&head), digit('f')];
    let unreached = mirrored.mirror().unreached(&commits, &long()).unwrap();
    assert_eq!(unreached, HashSet::from([id(&side)]));
    let none = mirrored.mirror().unreached(&[], &long()).unwrap();
    assert!(none.is_empty());
}

#[test]
fn blobs_are_read_back_completely() {
    let repository = Repository::create();
    let mirrored = Mirrored::new();
    let commit = repository.commit("first");
    let texts = ["", "\n", "two\nlines\n", &"x".repeat(200_000)];
    let blobs: Vec<ObjectId> = texts
        .iter()
        .map(|text| {
            repository.note(NOTES, &commit, "");
            id(&repository.run_with(&["hash-object", "-w", "--stdin"], text))
        })
        .collect();
    let mut lines = vec!["commit refs/heads/main\ncommitter A <a@x> 1 +0000\ndata 0\n".to_owned()];
    for (place, blob) in blobs.iter().enumerate() {
        lines.push(format!("M 100644 {blob} {place}"));
    }
    let stream = lines.join("\n") + "\n";
    repository.run_with(&["fast-import", "--quiet", "--force"], &stream);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let mut read = Vec::new();
    mirrored
        .mirror()
        .blobs(&blobs, &long(), |place, bytes| {
            read.push((place, String::from_utf8(bytes.to_vec()).unwrap()));
        })
        .unwrap();
    let expected: Vec<_> = texts
        .iter()
        .map(|&text| text.to_owned())
        .enumerate()
        .collect();
    assert_eq!(read, expected);
    let absent = mirrored
        .mirror()
        .blobs(&[digit('f')], &long(), |_, _| panic!("there is none"));
    assert!(absent.is_err());
}

#[test]
fn many_packs_are_repacked_into_few() {
    let repository = Repository::create();
    let mirrored = Mirrored::new();
    for number in 0..=PACKS_MAX {
        repository.commit(&number.to_string());
        repository.push();
        mirrored.fetch(&repository).unwrap();
    }
    let path = mirrored.root.path().join("m");
    assert!(count_packs(&path) > PACKS_MAX, "{}", count_packs(&path));
    mirrored.mirror().tidy(&mirrored.lock(), &long()).unwrap();
    assert!(count_packs(&path) <= 2, "{}", count_packs(&path));
    mirrored.git(&["fsck", "--strict"]);
    repository.commit("after");
    repository.push();
    mirrored.fetch(&repository).unwrap();
    assert_eq!(
        mirrored.git(&["rev-parse", "main"]),
        repository.run(&["rev-parse", "main"])
    );
}
