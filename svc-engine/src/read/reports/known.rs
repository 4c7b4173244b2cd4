//! Which commits were already looked at among the same calls.
//!
//! What a commit is tied to follows from the calls near the push that brought it and from those of the
//! Sessions that its notes name. The calls of a report are some of all. Where a push and the notes of
//! its commits reach no call that is not the report's, the report has looked at the commit already.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use svc_model::id::{FactId, SessionId};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::{just_after, minutes_later};
use crate::derive::attribution::{
    AssessedCommit, Call, GUESS_MINUTES_BEFORE, MINUTES_AFTER, NOTE_MINUTES_BEFORE, Note, Push,
};
use crate::fact::Lifetime;

/// The moments of calls, of all and of each Session, ascending.
struct Moments<'c> {
    all: Vec<Instant>,
    of_session: HashMap<&'c SessionId, Vec<Instant>>,
}

impl<'c> Moments<'c> {
    fn new(calls: impl Iterator<Item = &'c Call>) -> Self {
        let mut calls: Vec<&Call> = calls.collect();
        calls.sort_unstable_by_key(|call| (call.observed_at, call.inference_call_id));
        calls.dedup_by_key(|call| call.inference_call_id);
        let mut of_session: HashMap<&SessionId, Vec<Instant>> = HashMap::new();
        for call in &calls {
            let moments = of_session.entry(&call.session_id).or_default();
            moments.push(call.observed_at);
        }
        Self {
            all: calls.iter().map(|call| call.observed_at).collect(),
            of_session,
        }
    }

    /// Returns how many calls were observed near a push.
    fn near(&self, pushed_at: Instant) -> usize {
        around(&self.all, pushed_at, GUESS_MINUTES_BEFORE)
    }

    /// Returns how many calls of a Session were observed in the week of a push.
    fn in_week(&self, session: &SessionId, pushed_at: Instant) -> usize {
        let moments = self.of_session.get(session);
        moments.map_or(0, |it| around(it, pushed_at, NOTE_MINUTES_BEFORE))
    }
}

fn around(moments: &[Instant], pushed_at: Instant, minutes_before: i64) -> usize {
    let start = minutes_later(pushed_at, -minutes_before);
    let end = just_after(minutes_later(pushed_at, MINUTES_AFTER));
    let before = |end: Instant| moments.partition_point(|moment| *moment < end);
    before(end) - before(start)
}

/// What pushes brought, as far as it has to be looked at, and what is known of the rest.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// Commits that are known.
    pub(super) known: Vec<AssessedCommit>,
    /// The others, of each push that brought any.
    pub(super) open: HashMap<FactId, Vec<CommitSha>>,
}

/// Divides what pushes brought. `assessed` is what a report has looked at among `of_report`, which are
/// some of `calls`; the notes are those that name Sessions of `calls`. Each commit is of the first push
/// that brought it.
pub(super) fn divide<'d>(
    pushes: &'d [Push],
    range: impl Fn(FactId) -> Option<Vec<CommitSha>>,
    notes: &'d [Note],
    calls: impl Iterator<Item = &'d Call>,
    of_report: impl Iterator<Item = &'d Call>,
    assessed: &'d [AssessedCommit],
) -> Divided {
    let (all, some) = (Moments::new(calls), Moments::new(of_report));
    let mut noted: HashMap<(&Lifetime, &CommitSha), Vec<&SessionId>> = HashMap::new();
    for note in notes {
        let sessions = noted
            .entry((&note.repository, &note.commit_sha))
            .or_default();
        sessions.push(&note.session_id);
    }
    let known: HashMap<(&Lifetime, &CommitSha), &AssessedCommit> = assessed
        .iter()
        .map(|commit| ((&commit.repository, &commit.commit_sha), commit))
        .collect();
    let mut ordered: Vec<&Push> = pushes.iter().collect();
    ordered.sort_unstable_by_key(|push| (push.captured_at, push.push_id));
    ordered.dedup_by_key(|push| push.push_id);
    let mut divided = Divided::default();
    let mut seen: BTreeMap<&Lifetime, Seen> = BTreeMap::new();
    for push in ordered {
        let Ok(repository) = &push.repository else {
            continue;
        };
        let at = push.captured_at;
        let near = all.near(at);
        // Without a call near it a push may not be looked at at all.
        let is_alike = near > 0 && near == some.near(at);
        let seen = seen.entry(repository).or_default();
        let mut open = Vec::new();
        for commit in range(push.push_id).into_iter().flatten() {
            if seen.known.contains(&commit) {
                continue;
            }
            let sessions = noted.get(&(repository, &commit));
            let is_same =
                |session: &&SessionId| all.in_week(session, at) == some.in_week(session, at);
            let known = known.get(&(repository, &commit)).filter(|known| {
                is_alike
                    && known.push_id == push.push_id
                    && !seen.open.contains(&commit)
                    && sessions.is_none_or(|sessions| sessions.iter().all(is_same))
            });
            if let Some(known) = known {
                divided.known.push((*known).clone());
                seen.known.insert(commit);
            } else {
                seen.open.insert(commit.clone());
                open.push(commit);
            }
        }
        if !open.is_empty() {
            divided.open.insert(push.push_id, open);
        }
    }
    divided
}

/// Commits of a repository that pushes brought.
#[derive(Debug, Default)]
struct Seen {
    known: BTreeSet<CommitSha>,
    /// They are of whichever push is looked at first.
    open: BTreeSet<CommitSha>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::builders::{at, commit, id};

    fn call(number: u128, session: &str, seconds: i64) -> Call {
        Call {
            inference_call_id: id(number),
            session_id: SessionId::new(session).unwrap(),
            observed_at: at(seconds),
        }
    }

    fn push(number: u128, seconds: i64) -> Push {
        Push {
            push_id: id(number),
            captured_at: at(seconds),
            repository: Ok(Lifetime::parse("own/name").unwrap()),
        }
    }

    fn assessed(digit: char, push: u128) -> AssessedCommit {
        AssessedCommit {
            repository: Lifetime::parse("own/name").unwrap(),
            commit_sha: commit(digit),
            push_id: id(push),
            pushed_at: at(0),
            is_plausible: true,
            source: None,
        }
    }

    fn divided(
        calls: &[Call],
        of_report: &[Call],
        assessed: &[AssessedCommit],
    ) -> (String, String) {
        let pushes = [push(11, 1_000), push(12, 50_000)];
        let notes = [Note {
            repository: Lifetime::parse("own/name").unwrap(),
            commit_sha: commit('b'),
            session_id: SessionId::new("noted").unwrap(),
        }];
        // The second push brings a commit of the first again.
        let range = |push_id| {
            let digits = if push_id == id(11) {
                ['a', 'b']
            } else {
                ['b', 'c']
            };
            Some(digits.map(commit).to_vec())
        };
        let divided = divide(
            &pushes,
            range,
            &notes,
            calls.iter(),
            of_report.iter(),
            assessed,
        );
        let first = |commit: &CommitSha| commit.as_str()[..1].to_owned();
        let known = divided.known.iter().map(|it| first(&it.commit_sha));
        let open: BTreeMap<FactId, Vec<CommitSha>> = divided.open.into_iter().collect();
        let open = open
            .values()
            .map(|it| it.iter().map(first).collect::<String>());
        (known.collect(), open.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_commit_is_known_where_no_call_is_within_reach_but_the_report_s() {
        let of_report = [call(1, "s", 900), call(2, "s", 49_000)];
        let known = [assessed('a', 11), assessed('b', 11), assessed('c', 12)];
        let told = |more: &[Call]| {
            let all = [&of_report[..], more].concat();
            divided(&all, &of_report, &known)
        };
        let nothing = String::new();
        assert_eq!(told(&[]), ("abc".to_owned(), nothing.clone()));
        // The same call again, and calls that nothing reaches.
        let elsewhere = [
            call(1, "s", 900),
            call(3, "t", 20_000),
            call(4, "noted", 800_000),
        ];
        assert_eq!(told(&elsewhere), ("abc".to_owned(), nothing));
        // Near the second push alone.
        let near = told(&[call(3, "t", 49_500)]);
        assert_eq!(near, ("ab".to_owned(), "c".to_owned()));
        // Near the first: then its commits are of whichever push is looked at first.
        let near = told(&[call(3, "t", 950)]);
        assert_eq!(near, ("c".to_owned(), "ab b".to_owned()));
        // Of a Session that a note names, in the week before.
        let noted = told(&[call(3, "noted", -90_000)]);
        assert_eq!(noted, ("ac".to_owned(), "b b".to_owned()));
    }

    #[test]
    fn what_the_report_has_of_another_push_or_not_at_all_is_open() {
        let calls = [call(1, "s", 900), call(2, "s", 49_000)];
        let known = [assessed('a', 11), assessed('b', 12)];
        let told = divided(&calls, &calls, &known);
        assert_eq!(told, ("a".to_owned(), "b bc".to_owned()));
        let none = divided(&[], &[], &[]);
        assert_eq!(none, (String::new(), "ab bc".to_owned()));
    }
}
