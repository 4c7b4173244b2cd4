//! The order of parts, and packing whole items into a byte budget.

use std::cmp::{Ordering, Reverse};

use svc_model::evidence::Side;
use svc_model::limit::CONTEXT_ITEMS_MAX;
use svc_model::time::Instant;

/// The rank of a part among others. The better one compares as smaller.
///
/// By score, then newest first, then by call id, input before output, and by indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank<'a> {
    /// How many distinct tokens of the query the part contains.
    pub score: u64,
    /// When its call was observed.
    pub observed_at: Instant,
    /// Its call.
    pub inference_call_id: &'a str,
    /// Its side.
    pub side: Side,
    /// Its message.
    pub message_index: u64,
    /// Its index in the message.
    pub part_index: u64,
}

impl Rank<'_> {
    fn key(&self) -> impl Ord + '_ {
        (
            Reverse(self.score),
            Reverse(self.observed_at),
            self.inference_call_id,
            self.side,
            self.message_index,
            self.part_index,
        )
    }
}

impl Ord for Rank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Rank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What happens to an item offered to a [`Packer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// It is chosen.
    Chosen,
    /// Eight items have already been chosen.
    ItemLimit,
    /// It does not fit. A smaller one later may.
    Budget,
}

/// Chooses whole items in rank order, at most eight.
#[derive(Clone, Copy, Debug)]
pub struct Packer {
    left: u64,
    chosen: usize,
}

impl Packer {
    /// Starts with a budget of `bytes` for the items.
    pub const fn new(bytes: u64) -> Self {
        Self {
            left: bytes,
            chosen: 0,
        }
    }

    /// Returns whether no item is chosen any more.
    pub const fn is_full(&self) -> bool {
        self.chosen == CONTEXT_ITEMS_MAX
    }

    /// Offers an item of `bytes` encoded bytes.
    pub fn offer(&mut self, bytes: u64) -> Packing {
        if self.is_full() {
            return Packing::ItemLimit;
        }
        let comma = u64::from(self.chosen > 0);
        match self.left.checked_sub(bytes + comma) {
            Some(left) => {
                self.left = left;
                self.chosen += 1;
                Packing::Chosen
            }
            None => Packing::Budget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_better_rank_sorts_first() {
        let at = |microseconds| Instant::from_microseconds(microseconds).unwrap();
        let rank = Rank {
            score: 1,
            observed_at: at(1),
            inference_call_id: "b",
            side: Side::Output,
            message_index: 1,
            part_index: 1,
        };
        for better in [
            Rank {
                score: 2,
                observed_at: at(0),
                ..rank
            },
            Rank {
                observed_at: at(2),
                inference_call_id: "c",
                ..rank
            },
            Rank {
                inference_call_id: "a",
                ..rank
            },
            Rank {
                side: Side::Input,
                message_index: 9,
                ..rank
            },
            Rank {
                message_index: 0,
                part_index: 9,
                ..rank
            },
            Rank {
                part_index: 0,
                ..rank
            },
        ] {
            assert!(better < rank, "{better:?}");
        }
    }

    #[test]
    fn at_most_eight_items_are_packed_and_only_if_they_fit_entirely() {
        let mut packer = Packer::new(20);
        assert_eq!(packer.offer(15), Packing::Chosen);
        assert_eq!(packer.offer(5), Packing::Budget, "the comma does not fit");
        assert_eq!(packer.offer(4), Packing::Chosen);
        assert_eq!(packer.offer(0), Packing::Budget);
        let mut packer = Packer::new(100);
        for _ in 0..8 {
            assert_eq!(packer.offer(1), Packing::Chosen);
        }
        assert_eq!(packer.offer(1_000), Packing::ItemLimit);
    }
}
