//! Tells a writer whether the database is still the one that it last wrote to.
//!
//! A database may be set back under a running service: a lagging standby takes over, or a backup is
//! restored. Then the writer's memory of the later state (which content is stored under which id,
//! which claims are known) is wrong. So each writer has a row of its own. The row has the writer's
//! epoch, a number that no other writer has, and the number of transactions that the writer has
//! committed under the epoch. Every transaction reads this row together with the organization's
//! row, and counts itself. If the row is not as the writer left it, the writer forgets everything
//! and continues under a new epoch.
//!
//! Content may also be erased under a running writer. Every organization's row says how often that
//! happened. If a transaction finds another number than at the beginning of its epoch, the writer
//! does the same and writes the transaction again.
//!
//! Content ids and Session numbers begin with the epoch, so none is ever given out twice, whatever
//! happens to the database. Whatever is remembered under an id is either right or absent, never
//! something else.

use svc_engine_fact::clock::Ids;

use crate::sql::connection::Connection;
use crate::sql::error::StoreError;

/// Bits of the number of a content or a Session within its epoch.
const NUMBER_BITS: u32 = 21;
/// A new epoch begins after this many numbers. The rest are more than one transaction needs.
const NUMBERS_MAX: i64 = 1 << (NUMBER_BITS - 1);
/// The number of epochs. With this bound every id is positive.
const EPOCHS_MAX: i64 = 1 << (63 - NUMBER_BITS);
/// The maximum step from the latest epoch to a new one. The step is random, so that an epoch of a
/// lost state is not used again.
const STEP_BITS: u32 = 24;

const LATEST: &str = "SELECT COALESCE(MAX(epoch), 0),
    (SELECT COALESCE(MAX(erasures), 0) FROM organizations) FROM writers";
const COMMITTED: &str = "INSERT INTO writers (epoch, commits) VALUES ($1, 1)
    ON CONFLICT (epoch) DO UPDATE SET commits = writers.commits + 1";

/// Returns the epoch of the writer that gave out an id.
pub(crate) const fn epoch_of(content_id: i64) -> i64 {
    content_id >> NUMBER_BITS
}

/// The epoch of a writer, and how often it has committed under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) epoch: i64,
    /// `None` before the first commit of the epoch.
    pub(crate) commits: Option<i64>,
    /// How often content had been erased when the epoch began.
    pub(crate) erasures: i64,
}

impl Witness {
    /// Counts the transaction in progress.
    pub(crate) fn write(self, connection: &mut Connection) -> Result<(), StoreError> {
        connection
            .execute(COMMITTED, &[self.epoch.into()])
            .map(drop)
    }

    /// Returns the witness after one more commit.
    pub(crate) const fn committed(self) -> Self {
        Self {
            commits: Some(match self.commits {
                Some(commits) => commits + 1,
                None => 1,
            }),
            ..self
        }
    }
}

/// The epoch of a writer and the ids that the writer gives out.
#[derive(Debug)]
pub(crate) struct Epoch {
    witness: Witness,
    /// How many ids were given out. A failed transaction does not return its ids.
    given: i64,
    /// Whether the next transaction must begin a new epoch.
    is_over: bool,
}

impl Epoch {
    /// Begins an epoch that is later than any that the database or this writer has seen. So later
    /// ids are larger, and ids that are given out together are close to each other.
    pub(crate) fn begin(
        connection: &mut Connection,
        previous: Option<&Self>,
    ) -> Result<Self, StoreError> {
        let stored = connection.first(LATEST, &[], |row| Ok((row.integer(0)?, row.integer(1)?)))?;
        let (stored, erasures) = stored.unwrap_or_default();
        let latest = previous.map_or(stored, |epoch| stored.max(epoch.witness.epoch));
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

    /// Ends the epoch. The next transaction begins a new one.
    pub(crate) const fn end(&mut self) {
        self.is_over = true;
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) const fn witness(&self) -> Witness {
        self.witness
    }

    /// Returns whether the next transaction needs a new epoch.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.given >= NUMBERS_MAX
    }

    /// Counts a committed transaction.
    pub(crate) const fn committed(&mut self) {
        self.witness = self.witness.committed();
    }

    /// Gives out the id of a new content, or the number of a new Session.
    pub(crate) fn next_id(&mut self) -> Result<i64, StoreError> {
        if self.given >= 1 << NUMBER_BITS {
            return Err(StoreError::NotStored);
        }
        let id = self.witness.epoch << NUMBER_BITS | self.given;
        self.given += 1;
        Ok(id)
    }
}

/// Returns an epoch that is a random step after the latest one, or any epoch once they are used up.
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
    fn ids_are_positive_and_stay_within_their_epoch() {
        let mut last = epoch(EPOCHS_MAX - 1, (1 << NUMBER_BITS) - 1);
        assert_eq!(last.next_id().unwrap(), i64::MAX);
        assert!(
            last.next_id().is_err(),
            "the next id would be in another epoch"
        );
        let mut before = epoch(EPOCHS_MAX - 2, 0);
        assert!(before.next_id().unwrap() < i64::MAX >> 1 << 1);
        assert_eq!(epoch(3, 5).next_id().unwrap() >> NUMBER_BITS, 3);
        assert!(epoch(3, NUMBERS_MAX).is_used_up());
        assert!(!epoch(3, NUMBERS_MAX - 1).is_used_up());
    }

    #[test]
    fn a_new_epoch_is_later_than_the_latest_until_all_are_used() {
        for random in [0, 1, u128::MAX, 1 << STEP_BITS] {
            let next = after(7, random);
            assert!((8..8 + (1 << STEP_BITS)).contains(&next), "{next}");
            let last = after(EPOCHS_MAX - 1, random);
            assert!((1..EPOCHS_MAX).contains(&last), "{last}");
        }
        assert_ne!(after(7, 0), after(7, 1));
    }
}
