//! Seeded randomness: the same seed gives the same test, so a failure can be reproduced.

/// A small generator (SplitMix64). It is good enough to vary tests, but no use for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the generator for this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a length fits 64 bits");
        usize::try_from(self.bits() % bound).expect("it is below a length")
    }

    /// Returns one of the choices, which must not be empty.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Returns the text of a UUID (version 4).
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.bits(), self.bits());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_gives_the_same_sequence_and_well_formed_uuids() {
        let (mut first, mut second) = (Random::new(7), Random::new(7));
        assert_eq!(first.uuid(), second.uuid());
        assert_ne!(first.uuid(), first.uuid());
        let uuid = first.uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!((0..100).all(|_| first.below(3) < 3));
    }
}
