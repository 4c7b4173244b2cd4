use std::fmt;

use uuid::Uuid;

/// The id of a delivery in its outbox, assigned by [`Outbox::put`](super::Outbox::put).
///
/// It is also the id of the [`Capture`](svc_model::ingest::Capture) that is added to a model call
/// without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub(super) Uuid);

impl DeliveryId {
    /// Returns the UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a sender has no engine to take ids from"
    )]
    pub(super) fn fresh() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The name of a file, without its ending. It contains the place in the queue and the size of the
/// file, so that listing the folder is enough to know both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) sequence: u64,
    pub(super) bytes: u64,
    pub(super) id: DeliveryId,
}

impl Name {
    pub(super) fn parse(stem: &str) -> Option<Self> {
        let mut parts = stem.splitn(3, '-');
        let mut next = || parts.next();
        let name = Self {
            sequence: next()?.parse().ok()?,
            bytes: next()?.parse().ok()?,
            id: DeliveryId(Uuid::try_parse(next()?).ok()?),
        };
        // A name in another spelling is refused, because its file would not be found under this
        // one.
        (name.to_string() == stem).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{}-{}", self.sequence, self.bytes, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_parsed_back_and_sorts_by_sequence() {
        let name = |sequence| Name {
            sequence,
            bytes: 7,
            id: DeliveryId::fresh(),
        };
        for sequence in [0, 9, 10, u64::MAX] {
            let name = name(sequence);
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        assert!(name(9) < name(10));
        assert!(name(9).to_string() < name(10).to_string());
    }

    #[test]
    fn names_of_other_files_are_not_parsed() {
        let id = DeliveryId::fresh();
        for stem in [
            String::new(),
            "writers".to_owned(),
            format!("1-7-{id}"),
            format!("{:020}-+7-{id}", 1),
            format!("{:020}-7-{}", 1, id.uuid().simple()),
            format!("{:020}-7", 1),
        ] {
            assert_eq!(Name::parse(&stem), None, "{stem}");
        }
    }
}
