//! The progress through a mirror's notes. It is stored as text with the job, so any server can
//! continue where another one stopped. In a restored database it is as old as the facts.

use std::collections::BTreeMap;
use std::fmt;

use svc_engine_capture::notes::NotesRef;

use super::object_id::ObjectId;

/// The progress through the notes of one ref.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RefProgress {
    /// The state of the notes that has been completely observed.
    pub(super) observed: Option<ObjectId>,
    /// A later state that has been observed up to a commit.
    pub(super) going: Option<PartialProgress>,
}

/// A state of the notes that has been partly observed, in the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartialProgress {
    pub(super) target: ObjectId,
    pub(super) after: ObjectId,
}

/// The progress through the notes of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress(BTreeMap<NotesRef, RefProgress>);

impl Progress {
    /// Parses the text of an earlier refresh. Notes are observed again where it is unreadable,
    /// which changes nothing.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse_line).collect())
    }

    pub(super) fn of(&self, notes: NotesRef) -> RefProgress {
        self.0.get(&notes).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, notes: NotesRef, progress: RefProgress) {
        self.0.insert(notes, progress);
    }
}

fn parse_line(line: &str) -> Option<(NotesRef, RefProgress)> {
    let mut words = line.split(' ');
    let notes = NotesRef::from_name(words.next()?)?;
    let mut id = || ObjectId::parse(words.next()?.as_bytes());
    let (observed, target, after) = (id(), id(), id());
    let going = target
        .zip(after)
        .map(|(target, after)| PartialProgress { target, after });
    Some((notes, RefProgress { observed, going }))
}

/// Writes one line per ref: its name, the observed state, the target, and the commit reached, with
/// `-` for each that is absent.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |id: Option<ObjectId>| id.map_or("-".to_owned(), |id| id.to_string());
        for (notes, progress) in &self.0 {
            let target = progress.going.map(|going| going.target);
            let after = progress.going.map(|going| going.after);
            writeln!(
                f,
                "{} {} {} {}",
                notes.as_str(),
                word(progress.observed),
                word(target),
                word(after)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_progress_is_read_back() {
        let id = |digit: char| ObjectId::parse(digit.to_string().repeat(40).as_bytes());
        let mut progress = Progress::default();
        assert_eq!(Progress::parse(&progress.to_string()), progress);
        for (observed, target, after) in [
            (None, None, None),
            (id('a'), None, None),
            (None, id('b'), id('c')),
            (id('a'), id('b'), id('c')),
        ] {
            let going = target
                .zip(after)
                .map(|(target, after)| PartialProgress { target, after });
            progress.set(NotesRef::Svc, RefProgress { observed, going });
            progress.set(NotesRef::GitAi, RefProgress::default());
            assert_eq!(Progress::parse(&progress.to_string()), progress);
        }
        for odd in ["", "x", "refs/notes/other - - -", "\n\n", "refs/notes/svc"] {
            let read = Progress::parse(odd);
            assert_eq!(read.of(NotesRef::Svc), RefProgress::default(), "{odd:?}");
        }
    }
}
