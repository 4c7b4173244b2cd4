//! What became of an edit: how much of its text was in its file at the end of the Session.
//!
//! The file was observed once and the first record stands, so a Fate never changes.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use memchr::memmem;
use svc_engine_fact::{EditObservation, EditTexts};
use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, SessionId};
use svc_model::json::Text;
use svc_model::reports::{Counts, Fate, FateSkip};
use svc_model::time::Instant;

use super::statistics::real;

/// At most this share of a deleted text is left.
pub const DELETED_MAX: f64 = 0.1;

/// At least this share of an unmodified text is left.
pub const UNMODIFIED_MIN: f64 = 0.9;

/// Length, in characters, of the runs that are compared.
pub const GRAM_CHARACTERS: usize = 4;

/// Returns the Fate of an edit with this share of its text left, from 0 to 1.
pub fn classify(share: f64) -> Fate {
    if share <= DELETED_MAX {
        Fate::Deleted
    } else if share >= UNMODIFIED_MIN {
        Fate::Unmodified
    } else {
        Fate::PartiallyModified
    }
}

/// Counts the edits that have no Fate because they were erased.
pub fn skipped(erased_edits: u64) -> Counts<FateSkip> {
    Counts::from_iter([(FateSkip::ContentErased, erased_edits)])
}

/// Returns the share of a text, from 0 to 1, that another text contains: the fraction of the runs
/// of four characters in `applied` that also occur in `observed`, each as often as it occurs there.
/// A shorter text is contained or not; an empty one always is.
pub fn containment(applied: &str, observed: &str) -> f64 {
    if memmem::find(observed.as_bytes(), applied.as_bytes()).is_some() {
        1.0
    } else {
        shared(applied.as_bytes(), observed.as_bytes())
    }
}

/// Returns the same for captured texts, which may contain lone surrogates.
fn containment_of_texts(applied: &Text, observed: &Text) -> f64 {
    if let (Some(applied), Some(observed)) = (applied.as_str(), observed.as_str()) {
        return containment(applied, observed);
    }
    let (applied, observed) = (applied.as_bytes(), observed.as_bytes());
    let short = characters(applied).count() < GRAM_CHARACTERS;
    if applied.is_empty() || short && memmem::find(observed, applied).is_some() {
        1.0
    } else {
        shared(applied, observed)
    }
}

/// Returns the share of runs found in the second text, which does not contain the whole first one.
fn shared(applied: &[u8], observed: &[u8]) -> f64 {
    if applied.is_ascii() {
        // No byte of a non-ASCII character is ASCII, so the other text's bytes can stand for its
        // characters.
        let gram = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        share(
            applied.windows(GRAM_CHARACTERS).map(gram),
            observed.windows(GRAM_CHARACTERS).map(gram),
        )
    } else {
        share(grams(applied), grams(observed))
    }
}

/// Returns the characters of a text, each as the number formed by its bytes.
fn characters(text: &[u8]) -> impl Iterator<Item = u32> + Clone {
    text.chunk_by(|_, next| next & 0b1100_0000 == 0b1000_0000)
        .map(|bytes| {
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte))
        })
}

/// Returns the runs of four characters of a text.
fn grams(text: &[u8]) -> impl Iterator<Item = u128> + Clone {
    characters(text)
        .scan(0, |run: &mut u128, character| {
            *run = *run << 32 | u128::from(character);
            Some(*run)
        })
        .skip(GRAM_CHARACTERS - 1)
}

/// A run of characters, as a number.
trait Gram: Copy + Default + Eq {
    /// Returns bits that look random without the seed, the leading bits most of all.
    fn mixed(self, seed: u64) -> u64;
}

impl Gram for u32 {
    fn mixed(self, seed: u64) -> u64 {
        u64::from(self).wrapping_mul(seed | 1)
    }
}

impl Gram for u128 {
    #[expect(clippy::cast_possible_truncation, reason = "each half is taken")]
    fn mixed(self, seed: u64) -> u64 {
        let high = ((self >> 64) as u64).wrapping_mul(seed.rotate_left(32) | 1);
        (high ^ high >> 32 ^ self as u64).wrapping_mul(seed | 1)
    }
}

/// How often runs of characters occur. At least half of the slots are free, so a run is at the slot
/// that its bits name, or near it. No text can be crafted to defeat this, since nobody knows the
/// seed.
struct Runs<G> {
    /// A run, and its count plus one; 0 in a free slot.
    slots: Vec<(G, u32)>,
    shift: u32,
    seed: u64,
}

impl<G: Gram> Runs<G> {
    fn new(count: usize) -> Self {
        let slots = (2 * count).next_power_of_two().max(2);
        Self {
            slots: vec![(G::default(), 0); slots],
            shift: u64::BITS - slots.trailing_zeros(),
            seed: RandomState::default().hash_one(slots),
        }
    }

    /// Returns the slot of a run: its own, or a free one.
    fn slot(&mut self, gram: G) -> &mut (G, u32) {
        let last = self.slots.len() - 1;
        let mut at = usize::try_from(gram.mixed(self.seed) >> self.shift).unwrap_or(0);
        while self.slots[at].1 != 0 && self.slots[at].0 != gram {
            at = (at + 1) & last;
        }
        &mut self.slots[at]
    }

    fn add(&mut self, gram: G) {
        let slot = self.slot(gram);
        *slot = (gram, slot.1.max(1) + 1);
    }

    /// Takes one occurrence, and returns whether there was one.
    fn take(&mut self, gram: G) -> bool {
        let (_, left) = self.slot(gram);
        let is_there = *left > 1;
        *left -= u32::from(is_there);
        is_there
    }
}

fn share<G: Gram>(
    applied: impl Iterator<Item = G> + Clone,
    observed: impl Iterator<Item = G>,
) -> f64 {
    let count = applied.clone().count();
    if count == 0 {
        return 0.0;
    }
    let mut left = Runs::new(count);
    applied.for_each(|gram| left.add(gram));
    let found = observed.filter(|gram| left.take(*gram)).count();
    real(found as u64) / real(count as u64)
}

/// What became of an edit, without its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct EditFate {
    /// The observation.
    pub observation_id: FactId,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The Session.
    pub session_id: SessionId,
    /// The agent's id of the tool call.
    pub call_id: Arc<str>,
    /// The file, as the agent wrote its path.
    pub file_path: Arc<str>,
    /// When it was observed, by the sender's clock.
    pub occurred_at: Instant,
    /// The share of the applied text that the file contained, from 0 to 1.
    pub share: f64,
    /// The Fate that corresponds to the share.
    pub fate: Fate,
    /// Lines added by something other than the agent; `None` if not measured.
    pub external_lines_added: Option<i64>,
    /// Lines removed by something other than the agent; `None` if not measured.
    pub external_lines_removed: Option<i64>,
}

/// Returns the share of an edit's text, from 0 to 1, that its file contained at the end of the
/// Session. Takes time proportional to both texts.
pub fn share_left(texts: &EditTexts) -> f64 {
    containment_of_texts(&texts.applied, &texts.observed_file)
}

impl EditFate {
    /// Returns what became of an edit.
    pub fn of(observation: &EditObservation) -> Self {
        let share = share_left(&observation.texts);
        Self {
            observation_id: observation.observation_id,
            agent_harness: observation.agent_harness,
            session_id: observation.session_id.clone(),
            call_id: observation.call_id.as_str().into(),
            file_path: observation.file_path.as_str().into(),
            occurred_at: observation.occurred_at,
            share,
            fate: classify(share),
            external_lines_added: observation.external_lines_added,
            external_lines_removed: observation.external_lines_removed,
        }
    }

    /// Returns the lines that something other than the agent changed, if both counts are known.
    pub fn external(&self) -> Option<ExternalLines> {
        Some(ExternalLines {
            added: self.external_lines_added?,
            removed: self.external_lines_removed?,
        })
    }
}

/// Lines changed by something other than the agent. They do not tell who did it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExternalLines {
    /// Lines added.
    pub added: i64,
    /// Lines removed.
    pub removed: i64,
}

impl ExternalLines {
    /// Returns whether any line was changed.
    pub const fn any(self) -> bool {
        self.added > 0 || self.removed > 0
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            added: self.added.saturating_add(other.added),
            removed: self.removed.saturating_add(other.removed),
        }
    }
}

/// Returns edits in the order of replies, each once.
pub fn ordered(edits: &[EditFate]) -> Vec<&EditFate> {
    fn key(edit: &EditFate) -> (&str, &SessionId, &str, FactId) {
        (
            edit.agent_harness.as_str(),
            &edit.session_id,
            &edit.call_id,
            edit.observation_id,
        )
    }
    let mut edits: Vec<&EditFate> = edits.iter().collect();
    edits.sort_unstable_by(|first, second| key(first).cmp(&key(second)));
    edits.dedup_by_key(|edit| edit.observation_id);
    edits
}

/// Returns, for each edit, the lines changed in its file from that edit to the end of the Session;
/// `None` if any edit in between has no counts.
pub fn external_totals(edits: &[&EditFate]) -> Vec<Option<ExternalLines>> {
    let mut files: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, edit) in edits.iter().enumerate() {
        files
            .entry((edit.agent_harness, &edit.session_id, &edit.file_path))
            .or_default()
            .push(place);
    }
    let mut totals = vec![None; edits.len()];
    for mut places in files.into_values() {
        places.sort_by_key(|place| {
            let edit = edits[*place];
            (edit.occurred_at, &edit.call_id, edit.observation_id)
        });
        let mut total = Some(ExternalLines::default());
        for place in places.into_iter().rev() {
            total = total.zip(edits[place].external()).map(|(a, b)| a.plus(b));
            totals[place] = total;
        }
    }
    totals
}

#[cfg(test)]
mod tests;
