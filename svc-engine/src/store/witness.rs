//! What tells a writer that the database is still the one that it wrote to last.
//!
//! A database may be set back under a running service: a standby that lags takes over, a backup is
//! restored. What the writer remembers of the later state (which content is stored under which id,
//! which claims are known) is then wrong. So each writer has a row of its own: under its epoch, a
//! number that nobody else has, stand the transactions that it has committed. Every transaction reads
//! the row with the organization's and counts itself. When the row is not as the writer left it, the
//! writer forgets everything and goes on under a new epoch.
//!
//! Content may also be erased under it. The rows of all organizations say how often that was; a
//! transaction that finds another number than its epoch began with is written anew in the same way.
//!
//! The ids of content begin with the epoch, so an id that was given is never given again, whatever
//! becomes of the database: what anybody remembers under an id is right or absent, never another.

use super::StoreError;
use super::connection::Connection;
use crate::clock::Ids;

/// Bits of the number of a content within an epoch.
const NUMBER_BITS: u32 = 21;
/// Contents after which a new epoch is begun. What is left is more than one transaction stores.
const NUMBERS_MAX: i64 = 1 << (NUMBER_BITS - 1);
/// Epochs, so that every id is positive.
const EPOCHS_MAX: i64 = 1 << (63 - NUMBER_BITS);
/// By how much an epoch is later than the latest one, at most: at random, so that what a lost state
/// has seen is not met again.
const STEP_BITS: u32 = 24;

const LATEST: &str = "SELECT COALESCE(MAX(epoch), 0),
    (SELECT COALESCE(MAX(erasures), 0) FROM organizations) FROM writers";
const COMMITTED: &str = "INSERT INTO writers (epoch, commits) VALUES ($1, 1)
    ON CONFLICT (epoch) DO UPDATE SET commits = writers.commits + 1";

/// Returns the epoch of the writer that gave an id.
pub(super) const fn epoch_of(content_id: i64) -> i64 {
    content_id >> NUMBER_BITS
}

/// The epoch of a writer, and how often it has committed under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Witness {
    pub(super) epoch: i64,
    /// Nothing before the first commit.
    pub(super) commits: Option<i64>,
    /// How often content was erased before the epoch began.
    pub(super) erasures: i64,
}

impl Witness {
    /// Counts the transaction that is being written.
    pub(super) fn write(self, connection: &mut Connection) -> Result<(), StoreError> {
        connection
            .execute(COMMITTED, &[self.epoch.into()])
            .map(drop)
    }

    /// Returns the witness after one more commit.
    const fn committed(self) -> Self {
        Self {
            commits: Some(match self.commits {
                Some(commits) => commits + 1,
                None => 1,
            }),
            ..self
        }
    }
}

/// The epoch of a writer and the ids that it gives.
#[derive(Debug)]
pub(super) struct Epoch {
    witness: Witness,
    /// How many ids were given. A transaction that fails gives none back.
    given: i64,
    /// Whether another one is to be begun.
    is_over: bool,
}

impl Epoch {
    /// Begins an epoch that is later than every one that the database or this writer has seen: ids
    /// that were given later are larger, and lie together.
    pub(super) fn begin(
        connection: &mut Connection,
        previous: Option<&Self>,
    ) -> Result<Self, StoreError> {
        let stored = connection.first(LATEST, &[], |row| Ok((row.integer(0)?, row.integer(1)?)))?;
        let (stored, erasures) = stored.unwrap_or_default();
        let latest = previous.map_or(stored, |it| stored.max(it.witness.epoch));
        Ok(Self {
            witness: Witness {
                epoch: after(latest, Ids::random().fresh().as_u128()),
                commits: None,
                erasures,
            },
            given: 0,
            is_over: false,
        })
    }

    /// Ends it: the next transaction begins another one.
    pub(super) const fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) const fn witness(&self) -> Witness {
        self.witness
    }

    /// Returns whether the next transaction needs a new epoch.
    pub(super) const fn is_used_up(&self) -> bool {
        self.given >= NUMBERS_MAX
    }

    /// Counts a transaction that was committed.
    pub(super) const fn committed(&mut self) {
        self.witness = self.witness.committed();
    }

    /// Gives the id of a new content.
    pub(super) fn next_id(&mut self) -> Result<i64, StoreError> {
        if self.given >= 1 << NUMBER_BITS {
            return Err(StoreError::NotStored);
        }
        let id = self.witness.epoch << NUMBER_BITS | self.given;
        self.given += 1;
        Ok(id)
    }
}

/// Returns an epoch after the latest one: by a random step, and anywhere once they are used up.
fn after(latest: i64, random: u128) -> i64 {
    let within =
        |max: i64| i64::try_from(random % u128::from(max.unsigned_abs())).unwrap_or_default();
    let next = latest + 1 + within(1 << STEP_BITS);
    if next < EPOCHS_MAX {
        next
    } else {
        1 + within(EPOCHS_MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(epoch: i64, given: i64) -> Epoch {
        let witness = Witness {
            epoch,
            commits: None,
            erasures: 0,
        };
        Epoch {
            witness,
            given,
            is_over: false,
        }
    }

    #[test]
    fn ids_are_positive_and_never_those_of_another_epoch() {
        let mut last = epoch(EPOCHS_MAX - 1, (1 << NUMBER_BITS) - 1);
        assert_eq!(last.next_id().unwrap(), i64::MAX);
        assert!(
            last.next_id().is_err(),
            "the next would be of another epoch"
        );
        let mut before = epoch(EPOCHS_MAX - 2, 0);
        assert!(before.next_id().unwrap() < i64::MAX >> 1 << 1);
        assert_eq!(epoch(3, 5).next_id().unwrap() >> NUMBER_BITS, 3);
        assert!(epoch(3, NUMBERS_MAX).is_used_up());
        assert!(!epoch(3, NUMBERS_MAX - 1).is_used_up());
    }

    #[test]
    fn an_epoch_is_later_than_the_latest_while_there_are_any() {
        for random in [0, 1, u128::MAX, 1 << STEP_BITS] {
            let next = after(7, random);
            assert!((8..8 + (1 << STEP_BITS)).contains(&next), "{next}");
            let last = after(EPOCHS_MAX - 1, random);
            assert!((1..EPOCHS_MAX).contains(&last), "{last}");
        }
        assert_ne!(after(7, 0), after(7, 1));
    }
}
