//! Items of spend: each call of a model once, whichever sources report it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_fact::CallKey;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::time::Instant;
use svc_model::usage::{JoinBasis, TokenCounts};

use crate::usage::{Usage, join_by_counts};

/// Costs of one call that are further apart, in micro-USD, contradict each other.
pub(crate) const COST_TOLERANCE: u64 = 1;

/// Keys of calls of models.
pub type CallKeys = HashSet<CallKey, RandomState>;

/// A model of a provider, as captured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Model {
    /// The provider, if it is known.
    pub provider: Option<Arc<str>>,
    /// The model.
    pub name: Arc<str>,
}

/// What one source says of one call of a model: an inference call, or a usage receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The fact.
    pub fact_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent: Option<Arc<str>>,
    /// The model.
    pub model: Option<Model>,
    /// When it was observed or reported.
    pub at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
    /// Its tokens.
    pub tokens: TokenCounts,
    /// All its input, if it was stored before the parts of the input were read.
    pub unsplit_input: Option<i64>,
    /// The service tier, unless it is the usual one.
    pub tier: Option<Arc<str>>,
    /// The cost in micro-USD, as the source reported it.
    pub cost_usd_micros: Option<i64>,
    /// What identifies the call of the model.
    pub keys: Vec<CallKey>,
    /// Whether it is a call in quarantine, which takes its receipts with it.
    pub is_hidden: bool,
}

impl Sighting {
    /// Returns the counts to compare; `None` if the input or the output is unknown.
    fn counts(&self) -> Option<[i64; 4]> {
        match self.unsplit_input {
            Some(input) => self
                .tokens
                .output_tokens
                .map(|output| [input, 0, 0, output]),
            None => Usage::counts(&self.tokens),
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            at: Some(self.at),
            model: self.model.as_ref().map(|model| (*model.name).to_owned()),
            counts: self.counts(),
            keys: self.keys.clone(),
        }
    }
}

/// How many receipts an item has, and what tied them to its call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiptCounts {
    /// By an id.
    pub ids: u32,
    /// By equal counts.
    pub counts: u32,
    /// To no call.
    pub unjoined: u32,
}

/// One call of a model, with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The inference call, if one was captured.
    pub call: Option<FactId>,
    /// The Session.
    pub session_id: SessionId,
    /// The user.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent: Option<Arc<str>>,
    /// The model.
    pub model: Option<Model>,
    /// When the call was observed, or its earliest receipt written.
    pub at: Instant,
    /// Its tokens.
    pub tokens: TokenCounts,
    /// Whether all its input is known but not its parts.
    pub has_unsplit_input: bool,
    /// Whether its input and its output are known.
    pub has_counts: bool,
    /// The service tier, unless it is the usual one.
    pub tier: Option<Arc<str>>,
    /// The cost in micro-USD that a source reported.
    pub cost_usd_micros: Option<i64>,
    /// Whether a receipt contradicts the cost of the call.
    pub is_disputed: bool,
    /// Its receipts.
    pub receipts: ReceiptCounts,
}

impl Item {
    fn new(sighting: &Sighting) -> Self {
        Self {
            call: None,
            session_id: sighting.session_id.clone(),
            user_id: sighting.user_id.clone(),
            agent: sighting.agent.clone(),
            model: sighting.model.clone(),
            at: sighting.at,
            tokens: sighting.tokens,
            has_unsplit_input: sighting.unsplit_input.is_some(),
            has_counts: sighting.counts().is_some(),
            tier: sighting.tier.clone(),
            cost_usd_micros: sighting.cost_usd_micros,
            is_disputed: false,
            receipts: ReceiptCounts::default(),
        }
    }

    fn of_call(call: &Sighting) -> Self {
        Self {
            call: Some(call.fact_id),
            ..Self::new(call)
        }
    }

    /// Adds a receipt of the call. What is known already stands.
    fn attach(&mut self, receipt: &Sighting, basis: JoinBasis, call_cost: Option<i64>) {
        self.add(receipt);
        let costs = call_cost.zip(receipt.cost_usd_micros);
        self.is_disputed |= costs.is_some_and(|(one, other)| one.abs_diff(other) > COST_TOLERANCE);
        match basis {
            JoinBasis::Ids => self.receipts.ids += 1,
            JoinBasis::Counts => self.receipts.counts += 1,
        }
    }

    /// Adds another receipt of a call that was not captured.
    fn gather(&mut self, receipt: &Sighting) {
        self.add(receipt);
        self.at = self.at.min(receipt.at);
        self.receipts.unjoined += 1;
    }

    fn add(&mut self, receipt: &Sighting) {
        self.user_id = self.user_id.take().or_else(|| receipt.user_id.clone());
        self.agent = self.agent.take().or_else(|| receipt.agent.clone());
        self.model = self.model.take().or_else(|| receipt.model.clone());
        self.tier = self.tier.take().or_else(|| receipt.tier.clone());
        self.cost_usd_micros = self.cost_usd_micros.or(receipt.cost_usd_micros);
        self.has_counts |= receipt.counts().is_some();
        if !is_priceable(&self.tokens) && is_priceable(&receipt.tokens) {
            self.tokens = receipt.tokens;
            self.has_unsplit_input = false;
        }
    }
}

/// Returns whether a cost can be derived from these counts.
fn is_priceable(tokens: &TokenCounts) -> bool {
    tokens.input_tokens_uncached.is_some() && tokens.output_tokens.is_some()
}

/// Where a receipt belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// To the call with this number.
    Call(usize, JoinBasis),
    /// To no call.
    Alone,
    /// To a call that is not among these.
    Beyond,
}

/// Returns the items of calls and receipts: first those of the calls, in their order, then the groups
/// of receipts without a call. A hidden call forms no item, and neither does a receipt that joins one,
/// or that has a key of a call `beyond` these, visible or in quarantine.
pub fn items(calls: &[Sighting], mut receipts: Vec<Sighting>, beyond: &CallKeys) -> Vec<Item> {
    // The receipt that was captured first says what a call cost.
    receipts.sort_by_key(|receipt| (receipt.captured_at, receipt.fact_id));
    let places = places(calls, &receipts, beyond);
    let mut items: Vec<Item> = calls.iter().map(Item::of_call).collect();
    let mut alone = Vec::new();
    for (receipt, place) in receipts.iter().zip(places) {
        match place {
            Place::Call(call, basis) => {
                items[call].attach(receipt, basis, calls[call].cost_usd_micros);
            }
            Place::Alone => alone.push(receipt),
            Place::Beyond => {}
        }
    }
    let mut hidden = calls.iter().map(|call| call.is_hidden);
    items.retain(|_| !hidden.next().unwrap_or(false));
    items.extend(groups(&alone));
    items
}

fn places(calls: &[Sighting], receipts: &[Sighting], beyond: &CallKeys) -> Vec<Place> {
    let mut by_key = HashMap::new();
    for (number, call) in calls.iter().enumerate() {
        for key in &call.keys {
            by_key.entry(key).or_insert(number);
        }
    }
    let place = |receipt: &Sighting| {
        let call = receipt.keys.iter().find_map(|key| by_key.get(key));
        match call {
            Some(call) => Place::Call(*call, JoinBasis::Ids),
            None if receipt.keys.iter().any(|key| beyond.contains(key)) => Place::Beyond,
            None => Place::Alone,
        }
    };
    let mut places: Vec<Place> = receipts.iter().map(place).collect();
    place_by_counts(calls, receipts, &mut places);
    places
}

/// The calls and the receipts of a Session that nothing is joined with yet.
#[derive(Default)]
struct Unjoined {
    calls: Vec<usize>,
    receipts: Vec<usize>,
}

/// Joins by counts, in each Session, what no key joins.
fn place_by_counts(calls: &[Sighting], receipts: &[Sighting], places: &mut [Place]) {
    let mut is_taken = vec![false; calls.len()];
    let mut of_sessions: HashMap<&SessionId, Unjoined> = HashMap::new();
    for (number, (receipt, place)) in receipts.iter().zip(&*places).enumerate() {
        match place {
            Place::Call(call, _) => is_taken[*call] = true,
            Place::Alone => {
                let session = of_sessions.entry(&receipt.session_id).or_default();
                session.receipts.push(number);
            }
            Place::Beyond => {}
        }
    }
    for (number, call) in calls
        .iter()
        .enumerate()
        .filter(|(call, _)| !is_taken[*call])
    {
        if let Some(session) = of_sessions.get_mut(&call.session_id) {
            session.calls.push(number);
        }
    }
    let both = of_sessions
        .values()
        .filter(|session| !session.calls.is_empty());
    for Unjoined {
        calls: own,
        receipts: alone,
    } in both
    {
        let usages = |all: &[Sighting], numbers: &[usize]| -> Vec<Usage> {
            numbers.iter().map(|number| all[*number].usage()).collect()
        };
        let joined = join_by_counts(&usages(calls, own), &usages(receipts, alone));
        for (receipt, call) in alone.iter().zip(joined) {
            if let Some(call) = call {
                places[*receipt] = Place::Call(own[call], JoinBasis::Counts);
            }
        }
    }
}

/// Returns an item for each call that only receipts report. Receipts with a common key are about one
/// call, also if a third one ties them.
fn groups(receipts: &[&Sighting]) -> Vec<Item> {
    let mut group_of: Vec<usize> = (0..receipts.len()).collect();
    let mut by_key: HashMap<&CallKey, usize> = HashMap::new();
    for (number, receipt) in receipts.iter().enumerate() {
        for key in &receipt.keys {
            let first = *by_key.entry(key).or_insert(number);
            let (one, other) = (root(&mut group_of, first), root(&mut group_of, number));
            group_of[one.max(other)] = one.min(other);
        }
    }
    let mut items: Vec<Item> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (number, receipt) in receipts.iter().enumerate() {
        let place = *places
            .entry(root(&mut group_of, number))
            .or_insert_with(|| {
                items.push(Item::new(receipt));
                items.len() - 1
            });
        items[place].gather(receipt);
    }
    items
}

/// Returns the first receipt of the group of a receipt.
fn root(group_of: &mut [usize], mut number: usize) -> usize {
    while group_of[number] != number {
        // Later walks are shorter.
        group_of[number] = group_of[group_of[number]];
        number = group_of[number];
    }
    number
}

#[cfg(test)]
mod tests;
