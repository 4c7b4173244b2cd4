use std::cell::RefCell;

use proptest::prelude::*;
use svc_engine_fact::deadline::Passed;
use svc_engine_fact::testing::builders::{id, repository};
use svc_model::query::AttributionSource;

use super::*;
use crate::attribution::Similarity;
use crate::diff::{CommitDiff, FileChange, FileDiff};

const GO_ON: fn() -> Result<(), Passed> = || Ok(());

fn lifetime(number: u32) -> Lifetime {
    Lifetime::Identified(repository(number))
}

fn sha(number: u32) -> CommitSha {
    CommitSha::new(&format!("{number:040x}")).unwrap()
}

fn session(number: u32) -> SessionId {
    SessionId::new(&format!("s{number}")).unwrap()
}

/// A file of a commit in repository 1, written by Session 1.
fn file(commit: u32, path: &str) -> Attribution {
    Attribution {
        repository: lifetime(1),
        commit_sha: sha(commit),
        file_path: path.to_owned(),
        inference_call_id: id(1),
        session_id: session(1),
        similarity: Similarity {
            common: 1,
            either: 2,
        },
        source: AttributionSource::GitNotes,
        push_id: id(2),
    }
}

fn edge(commit: u32) -> ObservedEdge {
    ObservedEdge {
        observation_id: id(100 + u128::from(commit)),
        repository: lifetime(1),
        commit_sha: sha(commit),
        session_id: session(1),
    }
}

/// A pull request in repository 1 with this head and base 900.
fn merge(number: i64, head: u32) -> Merge {
    Merge {
        merge_id: id(200 + u128::from(number.unsigned_abs())),
        repository: lifetime(1),
        head_repository: Ok(lifetime(1)),
        pr_number: number,
        head_sha: sha(head),
        base_sha: sha(900),
        merge_commit_sha: sha(800),
    }
}

/// A world with one observed file of commit 1, and these pull requests.
fn one_file(merges: Vec<Merge>) -> Inputs {
    Inputs {
        attributions: vec![file(1, "a.py")],
        observed: vec![edge(1)],
        merges,
        ..Inputs::default()
    }
}

/// Derives without texts, given which commits are reached from which tips, and which tips are
/// unknown.
fn join(inputs: Inputs, reached: &[(u32, u32)], unknown: &[u32]) -> MergeRetention {
    let reached = |_: &Lifetime, commit: &CommitSha| -> ReachedFrom<'_> {
        let commit = commit.clone();
        Box::new(move |tip| {
            if unknown.iter().any(|number| sha(*number) == *tip) {
                return None;
            }
            let is = |(ancestor, of): &(u32, u32)| {
                (sha(*ancestor), sha(*of)) == (commit.clone(), tip.clone())
            };
            Some(commit == *tip || reached.iter().any(is))
        })
    };
    let joined = Candidates::new(inputs).join(&reached, &GO_ON).unwrap();
    joined.finish()
}

fn reason(result: &MergeRetention) -> Option<MembershipSkip> {
    assert_eq!(result.candidates, 1);
    let total = result.joined.len() as u64 + result.membership.total();
    assert_eq!(total, 1);
    result.membership.iter().next().map(|(skip, _)| skip)
}

#[test]
fn a_commit_belongs_to_the_pull_request_whose_head_but_not_base_reaches_it() {
    let unsure = Some(MembershipSkip::AncestryCheckFailed);
    let none = Some(MembershipSkip::WithoutMerge);
    for (reached, unknown, expected) in [
        (&[(1, 10)][..], &[][..], None),
        (&[], &[], none),
        (&[(1, 10), (1, 900)], &[], none),
        (&[(1, 900)], &[], none),
        (&[(1, 10)], &[900], unsure),
        (&[], &[900], none),
        (&[], &[10], unsure),
        (&[(1, 900)], &[10], unsure),
    ] {
        let result = join(one_file(vec![merge(5, 10)]), reached, unknown);
        assert_eq!(reason(&result), expected, "{reached:?} {unknown:?}");
        let unchecked = result
            .unchecked
            .get(&lifetime(1))
            .map(|numbers| numbers.contains(&5));
        assert_eq!(unchecked, (expected == unsure).then_some(true));
    }
    // The head is reached from itself.
    assert_eq!(reason(&join(one_file(vec![merge(5, 1)]), &[], &[])), None);
    assert_eq!(reason(&join(one_file(vec![]), &[], &[])), none);
}

#[test]
fn every_earlier_head_of_a_pull_request_makes_its_commits_members() {
    let mut inputs = one_file(vec![merge(5, 10)]);
    let revision = |number: i64| Revision {
        repository: lifetime(1),
        pr_number: number,
        head_sha: sha(11),
        previous_head_sha: Some(sha(12)),
    };
    inputs.revisions = vec![revision(5)];
    for head in [10, 11, 12] {
        assert_eq!(reason(&join(inputs.clone(), &[(1, head)], &[])), None);
        let others: Vec<u32> = [10, 11, 12]
            .into_iter()
            .filter(|other| *other != head)
            .collect();
        let unknown = join(inputs.clone(), &[(1, head)], &others);
        assert_eq!(reason(&unknown), None, "one head is enough");
    }
    inputs.revisions = vec![revision(6)];
    let none = Some(MembershipSkip::WithoutMerge);
    assert_eq!(reason(&join(inputs, &[(1, 11)], &[])), none);
}

#[test]
fn ci_for_a_pull_request_proves_membership_without_history() {
    let ci = |repository: u32, number: i64, commit: u32| CiMembership {
        repository: lifetime(repository),
        pr_number: number,
        commit_sha: sha(commit),
    };
    let unsure = Some(MembershipSkip::AncestryCheckFailed);
    for (ci, expected) in [
        (ci(1, 5, 1), None),
        (ci(2, 5, 1), unsure),
        (ci(1, 6, 1), unsure),
        (ci(1, 5, 2), unsure),
    ] {
        let mut inputs = one_file(vec![merge(5, 10)]);
        inputs.ci = vec![ci];
        assert_eq!(reason(&join(inputs, &[], &[10, 900])), expected);
    }
}

#[test]
fn a_commit_that_may_belong_to_several_pull_requests_is_ambiguous() {
    let two = || one_file(vec![merge(5, 10), merge(6, 11)]);
    let ambiguous = Some(MembershipSkip::Ambiguous);
    let unsure = Some(MembershipSkip::AncestryCheckFailed);
    assert_eq!(reason(&join(two(), &[(1, 10), (1, 11)], &[])), ambiguous);
    assert_eq!(reason(&join(two(), &[(1, 10)], &[])), None);
    let unknown = join(two(), &[(1, 10)], &[11]);
    assert_eq!(reason(&unknown), unsure);
    assert_eq!(unknown.unchecked[&lifetime(1)], BTreeSet::from([6]));
    let mut inputs = two();
    inputs.unresolved = [(lifetime(1), [7].into())].into();
    let unknown = join(inputs, &[(1, 10)], &[]);
    assert_eq!(reason(&unknown), unsure);
    assert_eq!(unknown.unchecked[&lifetime(1)], BTreeSet::from([7]));
    // A pull request in another repository does not matter.
    let mut elsewhere = two();
    elsewhere.merges[1].repository = lifetime(2);
    elsewhere.unresolved = [(lifetime(2), [7].into())].into();
    assert_eq!(reason(&join(elsewhere, &[(1, 10)], &[11])), None);
}

#[test]
fn facts_of_undetermined_repositories_are_scoring_skips_and_change_no_membership() {
    let mut inputs = one_file(vec![merge(5, 10)]);
    let known = join(inputs.clone(), &[(1, 10)], &[]);
    inputs.declined = Counts::from_iter([
        (RepositoryDecline::IdentityUnresolved, 3),
        (RepositoryDecline::SourceAbsent, 1),
    ]);
    let mut with_skips = join(inputs, &[(1, 10)], &[]);
    let skipped = std::mem::take(&mut with_skips.skipped);
    let mut expected = known.skipped.clone();
    expected.add(ScoringSkip::RepositoryIdentityUnresolved, 3);
    expected.add(ScoringSkip::RepositorySourceAbsent, 1);
    assert_eq!(skipped, expected);
    let known = MergeRetention {
        skipped: Counts::default(),
        ..known
    };
    assert_eq!(with_skips, known);
}

#[test]
fn only_attributions_at_observed_commits_are_candidates() {
    let mut inputs = one_file(vec![merge(5, 10)]);
    inputs.attributions = vec![
        file(1, "a.py"),
        file(1, "b.py"),
        file(2, "a.py"),
        file(2, "b.py"),
    ];
    let mut other = edge(2);
    other.session_id = session(2);
    inputs.observed.push(other);
    let result = join(inputs, &[(1, 10), (2, 10)], &[]);
    assert_eq!((result.candidates, result.joined.len()), (2, 2));
    assert_eq!(result.skipped.get(ScoringSkip::SessionCommitUnobserved), 1);
    assert_eq!(result.skipped.get(ScoringSkip::FileReadFailed), 2);
    assert_eq!(
        (result.joined_pull_requests, result.scored_pull_requests),
        (1, 0)
    );
}

/// A head in the mirror does not show which pull request it belongs to; CI that names the pull
/// request does.
#[test]
fn a_pull_request_from_an_unresolved_repository_cannot_be_checked() {
    let unresolved = |merges: &[i64]| {
        let mut inputs = one_file(vec![merge(5, 10), merge(6, 11)]);
        for merge in &mut inputs.merges {
            if merges.contains(&merge.pr_number) {
                merge.head_repository = Err(RepositoryDecline::IdentityUnresolved);
            }
        }
        inputs
    };
    let unsure = Some(MembershipSkip::AncestryCheckFailed);
    for (merges, reached) in [
        (&[5][..], &[(1, 10)][..]),
        (&[5], &[(1, 11)]),
        (&[5, 6], &[]),
    ] {
        let result = join(unresolved(merges), reached, &[]);
        assert_eq!(reason(&result), unsure, "{merges:?} {reached:?}");
        let unchecked = result.unchecked.get(&lifetime(1));
        assert_eq!(unchecked, Some(&merges.iter().copied().collect()));
    }
    let mut named = unresolved(&[5]);
    named.ci.push(CiMembership {
        repository: lifetime(1),
        commit_sha: sha(1),
        pr_number: 5,
    });
    let result = join(named, &[], &[]);
    assert_eq!(reason(&result), None);
}

#[test]
fn the_history_of_each_repository_is_asked_once() {
    let mut inputs = one_file(vec![merge(5, 10), merge(6, 11)]);
    inputs.merges[1].head_repository = Ok(lifetime(3));
    inputs.merges.push(Merge {
        repository: lifetime(2),
        ..merge(7, 12)
    });
    inputs.revisions = vec![Revision {
        repository: lifetime(1),
        pr_number: 6,
        head_sha: sha(13),
        previous_head_sha: None,
    }];
    let questions = Candidates::new(inputs).ancestry();
    let expected = AncestryQuestion {
        head_repositories: BTreeSet::from([lifetime(3)]),
        commits: BTreeSet::from([sha(1)]),
        tips: [10, 11, 13, 900].map(sha).into(),
    };
    assert_eq!(questions, BTreeMap::from([(lifetime(1), expected)]));
}

#[test]
fn joining_stops_at_the_deadline() {
    let candidates = Candidates::new(one_file(vec![merge(5, 10)]));
    let asked = RefCell::new(Vec::new());
    let reached = |_: &Lifetime, commit: &CommitSha| -> ReachedFrom<'_> {
        asked.borrow_mut().push(commit.clone());
        Box::new(|_| None)
    };
    let stopped = candidates.join(&reached, &|| Err(Passed::Time));
    assert_eq!(stopped.err(), Some(Passed::Time));
    assert_eq!(*asked.borrow(), []);
}

fn scored(added: &str, head: &FileAt, merge: &FileAt) -> Result<Scores, ScoringSkip> {
    score(left(added, head), left(added, merge))
}

fn text(path: &str, text: &str) -> FileAt {
    file_text(path.to_owned(), text.as_bytes())
}

#[test]
fn added_text_is_searched_for_at_the_head_and_at_the_merge() {
    let ten: Vec<String> = (0..10)
        .map(|number| format!("value_{number} = compute({number})"))
        .collect();
    let first = |lines: usize| text("a.py", &(ten[..lines].join("\n") + "\n"));
    let scores = scored(&ten.join("\n"), &first(8), &first(5)).unwrap();
    assert!((scores.head - 0.800_970_873_786_407_7).abs() < 1e-9);
    assert!((scores.merge - 0.495_145_631_067_961_2).abs() < 1e-9);
    assert_eq!((&*scores.head_path, &*scores.merge_path), ("a.py", "a.py"));
    // Other line breaks do not reduce the share.
    let windows = text("a.py", &(ten.join("\r\n") + "\r\n"));
    let scores = scored(&ten.join("\n"), &windows, &windows).unwrap();
    assert!((scores.head - 1.0).abs() < 1e-12 && (scores.merge - 1.0).abs() < 1e-12);
}

#[test]
fn the_first_reason_that_prevents_a_comparison_is_counted() {
    let good = || text("a.py", "x");
    let at = |bytes: &[u8]| file_text("a.py".to_owned(), bytes);
    assert_eq!(at(b"a\0b"), FileAt::Binary);
    assert!(matches!(at(&vec![b'x'; 1_000_000]), FileAt::Text { .. }));
    assert_eq!(at(&vec![b'x'; 1_000_001]), FileAt::Oversized);
    assert_eq!(at(&vec![0; 1_000_001]), FileAt::Binary);
    assert_eq!(at(b"\xff"), text("a.py", "\u{fffd}"));
    for (head, merge, expected) in [
        (
            FileAt::PathUnresolved,
            FileAt::Absent,
            ScoringSkip::HeadPathUnresolved,
        ),
        (
            FileAt::Absent,
            FileAt::PathUnresolved,
            ScoringSkip::MergePathUnresolved,
        ),
        (FileAt::Absent, FileAt::Absent, ScoringSkip::HeadFileAbsent),
        (good(), FileAt::Absent, ScoringSkip::MergeFileAbsent),
        (FileAt::Oversized, FileAt::Binary, ScoringSkip::BinaryFile),
        (
            FileAt::ReadFailed,
            FileAt::Oversized,
            ScoringSkip::FileOversized,
        ),
        (good(), FileAt::ReadFailed, ScoringSkip::FileReadFailed),
    ] {
        assert_eq!(scored("x", &head, &merge), Err(expected));
    }
}

#[test]
fn the_source_text_needs_exactly_one_section_of_the_file() {
    let section = |path: &str, change: FileChange, added: &str| FileDiff {
        path: path.to_owned(),
        change,
        added: added.to_owned(),
    };
    let renamed = |from: &str| FileChange::Renamed {
        from: from.to_owned(),
    };
    let diff = CommitDiff {
        files: vec![
            section("a.py", FileChange::Added, "x"),
            section("b.py", FileChange::Added, " \n"),
            section("c.py", FileChange::Deleted, ""),
            section("c.py", FileChange::Added, "x"),
            section("d.py", renamed("old"), "x"),
            section("e.py", renamed("both"), "x"),
            section("f.py", renamed("both"), "x"),
        ],
        ..CommitDiff::default()
    };
    assert_eq!(source_text(&diff, "a.py"), Ok("x"));
    assert_eq!(
        source_text(&diff, "b.py"),
        Err(ScoringSkip::SourceTextEmpty)
    );
    for path in ["c.py", "old", "none"] {
        assert_eq!(
            source_text(&diff, path),
            Err(ScoringSkip::SourceFileDiffAbsent)
        );
    }
    let renames: [(&[u8], &[u8]); 3] = [(b"old", b"d.py"), (b"both", b"e.py"), (b"both", b"f.py")];
    assert_eq!(renamed_to(renames, "old"), Some(&b"d.py"[..]));
    assert_eq!(renamed_to(renames, "both"), None);
    assert_eq!(renamed_to(renames, "a.py"), None);
    let odd: [(&[u8], &[u8]); 1] = [(b"caf\xe9", b"g.py")];
    assert_eq!(renamed_to(odd, "caf\u{fffd}"), Some(&b"g.py"[..]));
}

/// Joined files of several pull requests.
fn several() -> FileScoring {
    let mut inputs = one_file(vec![merge(6, 10), merge(5, 11)]);
    inputs.attributions = vec![
        file(1, "b.py"),
        file(2, "a.py"),
        file(1, "a.py"),
        file(3, "a.py"),
    ];
    inputs.observed = (1..4).map(edge).collect();
    let reached = |_: &Lifetime, commit: &CommitSha| -> ReachedFrom<'_> {
        let place = if *commit == sha(1) { 10 } else { 11 };
        Box::new(move |tip| Some(*tip == sha(place)))
    };
    Candidates::new(inputs).join(&reached, &GO_ON).unwrap()
}

#[test]
fn rows_are_summed_up_in_a_fixed_order() {
    let mut joined = several();
    let files: Vec<_> = joined
        .files()
        .map(|(place, file)| {
            (
                place,
                file.merge.pr_number,
                file.attribution.file_path.clone(),
            )
        })
        .collect();
    let expected = [
        (0, 5, "a.py"),
        (1, 5, "a.py"),
        (2, 6, "a.py"),
        (3, 6, "b.py"),
    ];
    assert_eq!(
        files,
        expected.map(|(place, number, path)| (place, number, path.to_owned()))
    );
    let scores = |head: f64, merge: f64| {
        Ok(Scores {
            head_path: "h".to_owned(),
            head,
            merge_path: "m".to_owned(),
            merge,
        })
    };
    let diff = CommitDiff {
        malformed: 2,
        ..CommitDiff::default()
    };
    joined.count_sections(&lifetime(1), &sha(1), diff.malformed, diff.unsupported);
    joined.count_sections(&lifetime(1), &sha(1), diff.malformed, diff.unsupported);
    joined.add(3, scores(1.0, 1.0));
    joined.add(0, scores(0.5, 1.0));
    joined.add(0, scores(0.0, 0.0));
    joined.add(9, scores(0.0, 0.0));
    joined.add(2, Err(ScoringSkip::MirrorAbsent));
    let result = joined.finish();
    let rows: Vec<_> = result.rows.iter().map(|row| row.merge.pr_number).collect();
    assert_eq!(rows, [5, 6]);
    assert_eq!(result.rows[1].observation_ids, [id(101)]);
    let skipped = [
        (ScoringSkip::MirrorAbsent, 1),
        (ScoringSkip::MalformedDiffSection, 2),
        (ScoringSkip::FileReadFailed, 1),
    ];
    assert_eq!(result.skipped, Counts::from_iter(skipped));
    assert_eq!(
        (result.joined_pull_requests, result.scored_pull_requests),
        (2, 2)
    );
    let evidence = result.evidence();
    assert_eq!((evidence.candidates, evidence.joined.len()), (4, 4));
    let scored =
        |file: &lifecycle::LifecycleFile| file.scores.map(|scores| (scores.head, scores.merge));
    let scores: Vec<_> = evidence.joined.iter().map(scored).collect();
    assert_eq!(scores, [Some((0.5, 1.0)), None, None, Some((1.0, 1.0))]);
}

proptest! {
    #[test]
    fn every_candidate_is_joined_or_skipped_once_in_any_order_of_facts(
        files in prop::collection::btree_set((0_u32..6, 0_u32..3), 0..12),
        observed in prop::collection::vec(0_u32..6, 0..6),
        merges in prop::collection::btree_map(1_i64..6, 10_u32..14, 0..5),
        reached in prop::collection::vec((0_u32..6, 10_u32..14), 0..12),
        unknown in prop::collection::vec(10_u32..14, 0..2),
    ) {
        let mut inputs = Inputs {
            attributions: files.iter().map(|(commit, path)| file(*commit, &format!("{path}.py"))).collect(),
            observed: observed.iter().map(|commit| edge(*commit)).collect(),
            merges: merges.iter().map(|(number, head)| merge(*number, *head)).collect(),
            ..Inputs::default()
        };
        let result = join(inputs.clone(), &reached, &unknown);
        let skipped = result.membership.total();
        prop_assert_eq!(result.joined.len() as u64 + skipped, result.candidates);
        let counted = result.skipped.total();
        let unobserved = result.skipped.get(ScoringSkip::SessionCommitUnobserved);
        prop_assert_eq!(counted - unobserved, result.joined.len() as u64);
        inputs.attributions.reverse();
        inputs.observed.extend(inputs.observed.clone());
        inputs.merges.reverse();
        prop_assert_eq!(join(inputs, &reached, &unknown), result);
    }
}
