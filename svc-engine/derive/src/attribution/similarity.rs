//! Finds the token set most similar to a given one: a set similarity join with a floor.
//!
//! Tokens are numbered by how many calls contain them, rarest first. A token in no call only adds
//! to the size of its file, and a token in no file only to the size of its call. Two sets that are
//! similar enough share a token among the first few of each, so only those are indexed and looked
//! up. Identical sets in a pool are stored once. Candidates that the sizes, the position of the
//! first common token and a 256-bit sketch cannot rule out are compared token by token, in
//! integers.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;
use svc_engine_fact::deadline::Passed;
use svc_engine_fact::threads::both;

/// Pools with more groups than this are indexed.
const SCANNED_MAX: usize = 32;

/// How many tokens are compared in the time of one look at a call.
const TOKENS_OF_LOOK: u64 = 8;

/// For each of 256 bits, the parity of the number of tokens that hash to it. At least as many
/// tokens occur in only one of two sets as there are bits in which their sketches differ, however
/// large the sets.
type Sketch = [u64; 4];

/// The similarity of two sets: how many tokens both have, over how many at least one has.
#[derive(Clone, Copy, Debug)]
pub struct Similarity {
    /// Tokens in both.
    pub common: u32,
    /// Tokens in at least one; not zero.
    pub either: u32,
}

impl Similarity {
    /// Returns the quotient, from 0 to 1.
    pub fn value(self) -> f64 {
        f64::from(self.common) / f64::from(self.either)
    }

    const fn of(common: u32, sizes: u32) -> Self {
        Self {
            common,
            either: sizes - common,
        }
    }

    /// Returns how many tokens two sets must share to be this similar, given the sum of their
    /// sizes.
    fn common_of(self, sizes: u32) -> u32 {
        let (common, either) = (u64::from(self.common), u64::from(self.either));
        let shared = (common * u64::from(sizes)).div_ceil(common + either);
        u32::try_from(shared).unwrap_or(u32::MAX)
    }

    /// Returns the smallest and largest size that a set this similar to one of `size` can have.
    fn sizes(self, size: u32) -> (u32, u32) {
        let (common, either) = (u64::from(self.common), u64::from(self.either));
        let (low, high) = (
            (common * u64::from(size)).div_ceil(either),
            u64::from(size) * either / common,
        );
        let narrow = |size| u32::try_from(size).unwrap_or(u32::MAX);
        (narrow(low), narrow(high))
    }
}

impl PartialEq for Similarity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Similarity {}

impl PartialOrd for Similarity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Similarity {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (
            u64::from(self.common) * u64::from(other.either),
            u64::from(other.common) * u64::from(self.either),
        );
        left.cmp(&right)
    }
}

/// One set in [`Sets`].
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    /// Number of tokens, including those that the other side does not have.
    size: u32,
    start: usize,
    length: u32,
    sketch: Sketch,
}

/// Sets of numbered tokens, stored one after another in one list.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    tokens: Vec<u32>,
    sets: Vec<Set>,
}

impl Sets {
    /// Returns `count` empty sets.
    pub(super) fn new(count: usize) -> Self {
        Self {
            tokens: Vec::new(),
            sets: vec![Set::default(); count],
        }
    }

    /// Fills the set at `place`. `size` counts all its tokens; `tokens` are the numbers of those
    /// that the other side may have.
    pub(super) fn fill(&mut self, place: usize, size: usize, tokens: impl Iterator<Item = u32>) {
        let start = self.tokens.len();
        self.tokens.extend(tokens);
        let narrow = |count| u32::try_from(count).unwrap_or(u32::MAX);
        self.sets[place] = Set {
            size: narrow(size),
            start,
            length: narrow(self.tokens.len() - start),
            sketch: Sketch::default(),
        };
    }

    /// Appends a set. See [`Sets::fill`].
    pub(super) fn push(&mut self, size: usize, tokens: impl Iterator<Item = u32>) {
        self.sets.push(Set::default());
        self.fill(self.sets.len() - 1, size, tokens);
    }

    /// Returns how many token numbers are stored.
    pub(super) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    fn of(&self, set: Set) -> &[u32] {
        &self.tokens[set.start..set.start + set.length as usize]
    }

    /// Replaces every token by its rank, and drops tokens without one.
    fn rank(&mut self, ranks: &[Option<u32>]) {
        let mut order: Vec<&mut Set> = self.sets.iter_mut().collect();
        order.sort_by_key(|set| set.start);
        let mut kept = 0;
        for set in order {
            let start = kept;
            for at in set.start..set.start + set.length as usize {
                if let Some(rank) = ranks[self.tokens[at] as usize] {
                    self.tokens[kept] = rank;
                    kept += 1;
                }
            }
            self.tokens[start..kept].sort_unstable();
            *set = Set {
                start,
                length: u32::try_from(kept - start).unwrap_or(u32::MAX),
                sketch: sketch(&self.tokens[start..kept]),
                ..*set
            };
        }
        self.tokens.truncate(kept);
    }
}

fn sketch(tokens: &[u32]) -> Sketch {
    let mut sketch = Sketch::default();
    for token in tokens {
        // The upper bits of the product separate neighbouring ranks.
        let bit = token.wrapping_mul(0x9e37_79b9) >> 24;
        sketch[bit as usize / 64] ^= 1 << (bit % 64);
    }
    sketch
}

/// Returns a lower bound on how many tokens occur in only one of two sets.
fn apart(left: &Sketch, right: &Sketch) -> u32 {
    let bits = |(left, right): (&u64, &u64)| (left ^ right).count_ones();
    left.iter().zip(right).map(bits).sum()
}

/// Renumbers the tokens of calls and files, those in the fewest calls first.
pub(super) fn rank(calls: &mut Sets, files: &mut Sets, vocabulary: usize) {
    let mut counts = vec![0_u32; vocabulary];
    for token in &calls.tokens {
        counts[*token as usize] += 1;
    }
    let mut order: Vec<u32> = (0..).take(vocabulary).collect();
    order.retain(|token| counts[*token as usize] > 0);
    order.sort_unstable_by_key(|token| (counts[*token as usize], *token));
    let mut ranks = vec![None; vocabulary];
    for (rank, token) in (0_u32..).zip(order) {
        ranks[token as usize] = Some(rank);
    }
    both(|| calls.rank(&ranks), || files.rank(&ranks));
}

/// A similar call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimilarCall {
    pub(super) similarity: Similarity,
    /// The index of the call among all calls.
    pub(super) call: u32,
}

impl SimilarCall {
    /// Returns whether this match wins: the more similar one does, and on a tie the earlier call.
    fn is_better(self, than: Option<Self>) -> bool {
        than.is_none_or(|than| {
            (self.similarity, std::cmp::Reverse(self.call))
                > (than.similarity, std::cmp::Reverse(than.call))
        })
    }
}

/// Calls of a pool with the same size and the same tokens.
#[derive(Clone, Debug)]
struct Group {
    set: Set,
    /// The range of its calls in the pool's `members`, earliest first.
    members: Range<usize>,
    /// The first group of a larger size.
    larger: u32,
}

/// Calls to search for the most similar one. On a tie the call with the lower index wins.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    floor: Similarity,
    /// By size, then by the earliest call.
    groups: Vec<Group>,
    members: Vec<u32>,
    /// For each indexed token in turn, the groups that have it among their first. `tokens` says
    /// where each token's groups are. Empty if there are few groups.
    postings: Vec<u32>,
    tokens: HashMap<u32, Range<u32>, FixedState>,
    /// The part of each group that is looked at first.
    heads: Vec<Head>,
    searches: u32,
    /// The cost of the searches so far, in looks at a call.
    looks: u64,
}

/// The part of a group that is looked at first.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The number of the last search that saw the group.
    seen: u32,
    /// How many of its tokens occur in files.
    length: u32,
    sketch: Sketch,
}

impl Pool {
    /// Collects the calls at `places`, which are ascending. Calls that can never be as similar as
    /// `floor` are left out.
    ///
    /// # Errors
    ///
    /// When the work has to end.
    pub(super) fn new(
        calls: &Sets,
        places: impl Iterator<Item = u32>,
        floor: Similarity,
        check: &dyn Fn() -> Result<(), Passed>,
    ) -> Result<Self, Passed> {
        check()?;
        let mut places: Vec<u32> = places
            .filter(|place| {
                let set = calls.sets[*place as usize];
                set.length > 0 && set.length >= floor.common_of(set.size + set.length)
            })
            .collect();
        let key = |place: &u32| {
            let set = calls.sets[*place as usize];
            (set.size, set.sketch, set.length)
        };
        places.sort_by(|left, right| {
            let texts = |place: &u32| calls.of(calls.sets[*place as usize]);
            key(left)
                .cmp(&key(right))
                .then_with(|| texts(left).cmp(texts(right)))
        });
        check()?;
        let head = |group: &Group| Head {
            seen: 0,
            length: group.set.length,
            sketch: group.set.sketch,
        };
        let mut groups: Vec<Group> = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let set = calls.sets[*place as usize];
            match groups.last_mut() {
                Some(group)
                    if group.set.size == set.size && calls.of(group.set) == calls.of(set) =>
                {
                    group.members.end = at + 1;
                }
                _ => groups.push(Group {
                    set,
                    members: at..at + 1,
                    larger: 0,
                }),
            }
        }
        groups.sort_by_key(|group| (group.set.size, places[group.members.start]));
        let mut larger = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        for run in groups
            .chunk_by_mut(|left, right| left.set.size == right.set.size)
            .rev()
        {
            for group in &mut *run {
                group.larger = larger;
            }
            larger -= u32::try_from(run.len()).unwrap_or(0);
        }
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        if groups.len() > SCANNED_MAX {
            for (number, group) in (0_u32..).zip(&groups) {
                let needed = floor.sizes(group.set.size).0.max(1);
                let indexed = (group.set.length + 1).saturating_sub(needed) as usize;
                let first = &calls.of(group.set)[..indexed];
                pairs.extend(first.iter().map(|token| (*token, number)));
            }
            check()?;
            pairs.sort_unstable();
        }
        let distinct = pairs.chunk_by(|left, right| left.0 == right.0).count();
        let mut tokens: HashMap<u32, Range<u32>, FixedState> =
            HashMap::with_capacity_and_hasher(distinct, FixedState::default());
        for (at, (token, _)) in (0_u32..).zip(&pairs) {
            tokens.entry(*token).or_insert(at..at).end = at + 1;
        }
        Ok(Self {
            floor,
            heads: groups.iter().map(head).collect(),
            groups,
            members: places,
            postings: pairs.into_iter().map(|(_, group)| group).collect(),
            tokens,
            searches: 0,
            looks: 0,
        })
    }

    /// Returns the call in `places` that is most similar to a file, if it reaches the floor and
    /// beats `before`, the match found earlier; otherwise `before`.
    pub(super) fn best(
        &mut self,
        calls: &Sets,
        files: &Sets,
        file: usize,
        places: &Range<u32>,
        before: Option<SimilarCall>,
    ) -> Option<SimilarCall> {
        let file = files.sets[file];
        let mut search = Search {
            calls,
            tokens: files.of(file),
            file,
            places,
            floor: self.floor,
            best: None,
            looks: 0,
        };
        if let Some(before) = before {
            search.found(before);
        }
        if self.postings.is_empty() {
            let (low, high) = self.between(search.floor.sizes(file.size));
            for (group, head) in self.groups[low..high].iter().zip(&self.heads[low..high]) {
                let bound = search.bound(group.set.size, file.length);
                search.look(group, head, &self.members, &bound);
            }
            self.looks += search.looks;
            return search.best;
        }
        self.next_search();
        for (left, token) in (1..=file.length).rev().zip(search.tokens) {
            // A set that shares no earlier token shares at most the tokens that are left.
            let (smallest, largest) = search.floor.sizes(file.size);
            if left < smallest {
                break;
            }
            let Some(postings) = self.tokens.get(token) else {
                continue;
            };
            let postings = &self.postings[postings.start as usize..postings.end as usize];
            let of = |number: u32| &self.groups[number as usize];
            let from = |size: u32| postings.partition_point(|posting| of(*posting).set.size < size);
            let mut at = from(smallest);
            // Groups of one size are adjacent, ordered by their first calls.
            let mut larger = 0;
            let mut bound = search.bound(0, left);
            while let Some(number) = postings.get(at).copied() {
                let group = of(number);
                if number >= larger || bound.floor != search.floor {
                    if group.set.size > largest {
                        break;
                    }
                    bound = search.bound(group.set.size, left);
                    larger = group.larger;
                    if !search.is_open(&bound, self.members[group.members.start]) {
                        at += postings[at..].partition_point(|posting| *posting < larger);
                        continue;
                    }
                }
                at += 1;
                search.looks += 1;
                let head = &mut self.heads[number as usize];
                if head.seen != self.searches {
                    head.seen = self.searches;
                    search.look(group, head, &self.members, &bound);
                }
            }
        }
        self.looks += search.looks;
        search.best
    }

    /// Returns the cost of the searches so far, in looks at a call.
    pub(super) const fn looks(&self) -> u64 {
        self.looks
    }

    /// Forgets which groups the last search saw.
    fn next_search(&mut self) {
        self.searches = self.searches.wrapping_add(1);
        if self.searches == 0 {
            self.heads.iter_mut().for_each(|head| head.seen = 0);
            self.searches = 1;
        }
    }

    /// Returns the range of groups whose sizes lie between the two, both included.
    fn between(&self, sizes: (u32, u32)) -> (usize, usize) {
        let before = |size: u32| self.groups.partition_point(|group| group.set.size < size);
        let high = self
            .groups
            .partition_point(|group| group.set.size <= sizes.1);
        (before(sizes.0), high)
    }
}

/// The search for one file.
struct Search<'s> {
    calls: &'s Sets,
    file: Set,
    tokens: &'s [u32],
    places: &'s Range<u32>,
    /// A match less similar than this cannot win.
    floor: Similarity,
    best: Option<SimilarCall>,
    looks: u64,
}

impl Search<'_> {
    fn found(&mut self, found: SimilarCall) {
        if found.similarity >= self.floor && found.is_better(self.best) {
            self.floor = found.similarity;
            self.best = Some(found);
        }
    }

    /// Returns how many tokens a set of this size must share, and how many it can.
    fn bound(&self, size: u32, left: u32) -> TokenBound {
        let sizes = self.file.size + size;
        TokenBound {
            sizes,
            floor: self.floor,
            needed: self.floor.common_of(sizes).max(1),
            most: left.min(size),
        }
    }

    /// Returns whether a group whose first call is `first` could win.
    fn is_open(&self, bound: &TokenBound, first: u32) -> bool {
        bound.needed <= bound.most
            && SimilarCall {
                similarity: Similarity::of(bound.most, bound.sizes),
                // The first call may lie before the wanted places, and a later one in them.
                call: first,
            }
            .is_better(self.best)
    }

    fn look(&mut self, group: &Group, head: &Head, members: &[u32], bound: &TokenBound) {
        self.looks += 1;
        let most = (self.file.length + head.length - apart(&self.file.sketch, &head.sketch)) / 2;
        let most = most.min(bound.most);
        if most < bound.needed {
            return;
        }
        let members = &members[group.members.clone()];
        let first = members.partition_point(|place| *place < self.places.start);
        let Some(call) = members.get(first).filter(|place| **place < self.places.end) else {
            return;
        };
        let match_of = |common| SimilarCall {
            similarity: Similarity::of(common, bound.sizes),
            call: *call,
        };
        if !match_of(most).is_better(self.best) {
            return;
        }
        self.looks += u64::from(self.file.length) / TOKENS_OF_LOOK;
        if let Some(common) = common(self.tokens, self.calls.of(group.set), bound.needed) {
            self.found(match_of(common));
        }
    }
}

/// How many tokens a set must share with a file to win, and how many it can share.
struct TokenBound {
    /// The sum of both sizes.
    sizes: u32,
    /// The floor for which this holds.
    floor: Similarity,
    needed: u32,
    most: u32,
}

/// Returns how many numbers two ascending lists share; `None` if fewer than needed.
fn common(left: &[u32], right: &[u32], needed: u32) -> Option<u32> {
    let mut left_spare = left.len().checked_sub(needed as usize)?;
    let mut right_spare = right.len().checked_sub(needed as usize)?;
    let (mut at, mut with, mut common) = (0, 0, 0);
    while at < left.len() && with < right.len() {
        match left[at].cmp(&right[with]) {
            Ordering::Equal => {
                common += 1;
                at += 1;
                with += 1;
            }
            Ordering::Less => {
                left_spare = left_spare.checked_sub(1)?;
                at += 1;
            }
            Ordering::Greater => {
                right_spare = right_spare.checked_sub(1)?;
                with += 1;
            }
        }
    }
    (common >= needed).then_some(common)
}

/// The numbers of the tokens of files.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary(HashMap<u64, u32, FixedState>);

impl Vocabulary {
    /// Returns the number of a token. A new token gets the next one.
    pub(super) fn number(&mut self, fingerprint: u64) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(fingerprint).or_insert(next)
    }

    /// Returns the number of a token, if it has one.
    pub(super) fn known(&self, fingerprint: u64) -> Option<u32> {
        self.0.get(&fingerprint).copied()
    }

    /// Returns how many tokens have numbers.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
