use super::*;
use crate::bare::tests::{Mirrored, digit, id, long};
use crate::testing::git::{NOTES, Repository};

const SVC: NotesRef = NotesRef::Svc;

#[test]
fn notes_are_found_at_every_depth_of_folders() {
    let repository = Repository::create();
    let mirrored = Mirrored::new();
    let commits: Vec<String> = (0..4)
        .map(|number| repository.commit(&number.to_string()))
        .collect();
    let blob = repository.run_with(&["hash-object", "-w", "--stdin"], "n");
    let mut lines = vec![format!(
        "commit {NOTES}\ncommitter A <a@x> 1 +0000\ndata 0\n"
    )];
    for (depth, commit) in commits.iter().enumerate() {
        let path = fanned_out(commit, depth);
        lines.push(format!("M 100644 {blob} {path}"));
    }
    // Other entries beside the notes are not notes.
    lines.push(format!("M 120000 {blob} {}", "a".repeat(40)));
    lines.push(format!("M 100644 {blob} {}", "b".repeat(39)));
    lines.push(format!("M 100644 {blob} \"{}\\n\\t\"", "x".repeat(3_000)));
    lines.push(format!("M 100644 {blob} README\n"));
    let stream = lines.join("\n");
    repository.run_with(&["fast-import", "--quiet"], &stream);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let tip = mirrored.mirror().notes_tips(&[SVC], &long()).unwrap()[0].unwrap();
    let mut expected: Vec<TreeNote> = commits
        .iter()
        .map(|commit| TreeNote {
            commit: id(commit),
            note: id(&blob),
        })
        .collect();
    let asked: Vec<ObjectId> = expected.iter().map(|noted| noted.commit).collect();
    let asked = [&asked[..], &[digit('e')]].concat();
    let noted = mirrored.mirror().notes_of(tip, &asked, &long()).unwrap();
    assert_eq!(noted, expected);
    expected.sort();
    let all = mirrored.mirror().new_notes(None, tip, &long()).unwrap();
    assert_eq!(all, expected);
}

#[test]
fn only_new_and_changed_notes_are_new() {
    let repository = Repository::create();
    let mirrored = Mirrored::new();
    let commits: Vec<String> = (0..4)
        .map(|number| repository.commit(&number.to_string()))
        .collect();
    for commit in &commits[..3] {
        repository.stamp(commit, &["s"]);
    }
    let before = id(&repository.run(&["rev-parse", NOTES]));
    repository.stamp(&commits[0], &["other"]);
    repository.run(&["notes", "--ref=refs/notes/svc", "remove", &commits[1]]);
    repository.stamp(&commits[3], &["s"]);
    let flat = id(&repository.run(&["rev-parse", NOTES]));
    // The note that did not change moves into a folder.
    let blob = repository.run(&["rev-parse", &format!("{NOTES}:{}", commits[2])]);
    let stream = format!(
        "commit {NOTES}\ncommitter A <a@x> 1 +0000\ndata 0\n\nfrom {flat}\nD {commit}\nM 100644 {blob} {path}\n",
        commit = commits[2],
        path = fanned_out(&commits[2], 1),
    );
    repository.run_with(&["fast-import", "--quiet", "--force"], &stream);
    repository.push();
    mirrored.fetch(&repository).unwrap();
    let tip = mirrored.mirror().notes_tips(&[SVC], &long()).unwrap()[0].unwrap();
    assert_ne!(tip, flat);
    let new = mirrored
        .mirror()
        .new_notes(Some(before), tip, &long())
        .unwrap();
    let mut expected = [id(&commits[0]), id(&commits[3])];
    expected.sort();
    let new: Vec<ObjectId> = new.iter().map(|noted| noted.commit).collect();
    assert_eq!(new, expected);
    let none = mirrored
        .mirror()
        .new_notes(Some(tip), tip, &long())
        .unwrap();
    assert_eq!(none, []);
}
