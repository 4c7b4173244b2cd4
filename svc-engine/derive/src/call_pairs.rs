//! Which response of a client's log belongs to which request.
//!
//! A client logs the bodies of requests and responses, but nothing that ties the two together.
//! Subagents of one name run at once, and records arrive in any order, so neither the position in
//! time nor that of arrival tells. Two rules do:
//!
//! - By content, at once: a later request repeats the answer, with the ids of its tool calls, after
//!   the messages that it answered.
//! - Alone, after a grace in which the records may still arrive: only one request is left that the
//!   response can belong to, and no other response can belong to that request alone.
//!
//! What is left when a Session has been silent for long becomes a call without input, or an attempt
//! without response.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use svc_engine_fact::clock::later;
use svc_engine_fact::{HalfOutline, HalfSide, HalfState, KeptHalf, MessagesDigest};
use svc_model::time::Instant;

use crate::usage::common_model;

/// How long halves wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairingWaits {
    /// How long a response waits for records that may show its request, before the only request
    /// that is left is taken.
    pub grace: Duration,
    /// How long a Session is silent before what is left of it is settled.
    pub silence: Duration,
}

impl Default for PairingWaits {
    fn default() -> Self {
        Self {
            grace: Duration::from_mins(1),
            silence: Duration::from_hours(1),
        }
    }
}

/// What becomes of halves. The numbers are their places in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// A response and its request are one call. The attempts are requests of the same input without
    /// a response.
    Call {
        /// The request.
        request: usize,
        /// The response.
        response: usize,
        /// The attempts.
        attempts: Vec<usize>,
    },
    /// A response never found its request.
    Unpaired(usize),
    /// A request never got a response.
    Attempt(usize),
}

/// Returns what becomes of a Session's halves now. `last_arrival` is when its last half arrived.
pub fn settle(
    halves: &[KeptHalf],
    last_arrival: Instant,
    now: Instant,
    waits: PairingWaits,
) -> Vec<Settled> {
    let mut pairing = Pairing::of(halves);
    pairing.by_content();
    pairing.drop_repeated(now);
    pairing.alone(now, waits.grace);
    if later(last_arrival, waits.silence) <= now {
        pairing.give_up();
    }
    pairing.settled
}

/// Returns what becomes of the oldest open halves of a list, until there are at least this many bytes
/// and halves fewer.
pub fn evict(halves: &[KeptHalf], excess_bytes: u64, excess_halves: usize) -> Vec<Settled> {
    let mut oldest: Vec<usize> = (0..halves.len())
        .filter(|place| halves[*place].state == HalfState::Open)
        .collect();
    oldest.sort_by_key(|place| {
        let outline = &halves[*place].outline;
        (outline.captured_at, outline.moment())
    });
    let mut left = excess_bytes;
    let mut evicted = Vec::new();
    for place in oldest {
        if left == 0 && evicted.len() >= excess_halves {
            break;
        }
        left = left.saturating_sub(halves[place].byte_count);
        evicted.push(given_up(&halves[place], place));
    }
    evicted
}

fn given_up(half: &KeptHalf, place: usize) -> Settled {
    match half.outline.side {
        HalfSide::Request => Settled::Attempt(place),
        HalfSide::Response => Settled::Unpaired(place),
    }
}

/// The halves of a bucket may belong together: its query source, model and prompt.
type Bucket<'h> = (&'h str, Option<String>, Option<&'h str>);

/// The open halves of a bucket, earliest first.
#[derive(Default)]
struct LeftHalves {
    requests: Vec<usize>,
    responses: Vec<usize>,
}

struct Pairing<'h> {
    halves: &'h [KeptHalf],
    buckets: Vec<Bucket<'h>>,
    /// The places of the open requests, earliest first.
    requests: Vec<usize>,
    /// The places of the open responses, earliest first.
    responses: Vec<usize>,
    /// The requests that have their responses, by query source and messages.
    answered: HashMap<(&'h str, MessagesDigest), Vec<usize>>,
    settled: Vec<Settled>,
}

impl<'h> Pairing<'h> {
    fn of(halves: &'h [KeptHalf]) -> Self {
        let bucket = |half: &'h KeptHalf| {
            let outline = &half.outline;
            let model = outline.model.as_deref().map(common_model);
            (&*outline.query_source, model, outline.prompt_id.as_deref())
        };
        let open = |side| {
            let is_open = |place: &usize| {
                let half = &halves[*place];
                half.state == HalfState::Open && half.outline.side == side
            };
            let mut open: Vec<usize> = (0..halves.len()).filter(is_open).collect();
            open.sort_by_key(|place| halves[*place].outline.moment());
            open
        };
        let mut pairing = Self {
            halves,
            buckets: halves.iter().map(bucket).collect(),
            requests: open(HalfSide::Request),
            responses: open(HalfSide::Response),
            answered: HashMap::new(),
            settled: Vec::new(),
        };
        for (place, half) in halves.iter().enumerate() {
            if half.state == HalfState::Witness {
                pairing.add_answered(place);
            }
        }
        pairing
    }

    fn add_answered(&mut self, request: usize) {
        let outline = self.outline(request);
        if outline.side == HalfSide::Request {
            let key = (&*outline.query_source, outline.messages);
            self.answered.entry(key).or_default().push(request);
        }
    }

    fn outline(&self, place: usize) -> &'h HalfOutline {
        &self.halves[place].outline
    }

    /// Pairs the responses whose tool calls a later request repeats.
    fn by_content(&mut self) {
        let answered = self.answered();
        for response in self.responses.clone() {
            let Some(befores) = answered.get(&response) else {
                continue;
            };
            let own = self.outline(response);
            let belongs = |request: &&usize| {
                let outline = self.outline(**request);
                befores.contains(&outline.messages)
                    && outline.query_source == own.query_source
                    && outline.is_before(own)
            };
            if let Some(request) = self.requests.iter().rfind(belongs).copied() {
                self.pair(request, response, Vec::new());
            }
        }
    }

    /// Returns the digests of the messages that each open response answers, as later requests tell.
    fn answered(&self) -> HashMap<usize, HashSet<MessagesDigest>> {
        let mut callers: HashMap<&str, Vec<usize>> = HashMap::new();
        for response in &self.responses {
            let called = &self.outline(*response).called_tools;
            for id in called.iter().flat_map(|called| &called.ids) {
                callers.entry(id).or_default().push(*response);
            }
        }
        let mut answered: HashMap<usize, HashSet<MessagesDigest>> = HashMap::new();
        let requests = self.halves.iter().map(|half| &half.outline);
        for request in requests.filter(|outline| outline.side == HalfSide::Request) {
            // The first message with a tool call of a response is the response.
            let mut seen = HashSet::new();
            for called in &request.called_tools {
                let ids = called.ids.iter();
                let of_ids = ids.filter_map(|id| callers.get(id.as_str())).flatten();
                let new: BTreeSet<usize> = of_ids
                    .filter(|response| self.outline(**response).is_before(request))
                    .filter(|response| !seen.contains(*response))
                    .copied()
                    .collect();
                for response in new {
                    seen.insert(response);
                    answered.entry(response).or_default().insert(called.before);
                }
            }
        }
        answered
    }

    /// Gives up the open requests that were sent again, once no response of theirs can be on its
    /// way.
    ///
    /// A request is sent again after a failure. But agents that are started alike send equal
    /// requests too, and each gets a response.
    fn drop_repeated(&mut self, now: Instant) {
        let is_over = |place: &usize| {
            let sent_again = self.sent_again(*place);
            sent_again.is_some_and(|again| again.state == HalfState::Witness && again.due_at <= now)
        };
        let over: Vec<usize> = self.requests.iter().copied().filter(is_over).collect();
        self.requests.retain(|request| !over.contains(request));
        self.settled.extend(over.into_iter().map(Settled::Attempt));
    }

    /// Returns a later request of the same messages that has its response.
    fn sent_again(&self, place: usize) -> Option<&'h KeptHalf> {
        let own = self.outline(place);
        let key = (&*own.query_source, own.messages);
        let answered = self.answered.get(&key)?.iter();
        answered
            .map(|request| &self.halves[*request])
            .filter(|other| own.is_before(&other.outline))
            .min_by_key(|other| (other.state == HalfState::Open, other.due_at))
    }

    /// Pairs each response with the only request that is left for it, until nothing more follows.
    fn alone(&mut self, now: Instant, grace: Duration) {
        let mut buckets: HashMap<Bucket<'h>, LeftHalves> = HashMap::new();
        for request in &self.requests {
            let bucket = self.buckets[*request].clone();
            buckets.entry(bucket).or_default().requests.push(*request);
        }
        for response in &self.responses {
            let bucket = self.buckets[*response].clone();
            buckets.entry(bucket).or_default().responses.push(*response);
        }
        // What is paired in one bucket tells of requests in others, which were sent again.
        loop {
            let before = self.settled.len();
            for left in buckets.values_mut() {
                while self.alone_in(left, now, grace) {}
            }
            if self.settled.len() == before {
                return;
            }
        }
    }

    /// Pairs the response of a bucket that only requests of one input are left for, unless they are
    /// the only ones for another response too. Returns whether there was one.
    fn alone_in(&mut self, left: &mut LeftHalves, now: Instant, grace: Duration) -> bool {
        left.requests
            .retain(|request| self.sent_again(*request).is_none());
        let Some(first) = left.requests.first().map(|first| self.outline(*first)) else {
            return false;
        };
        let mut requests = left.requests.iter();
        let other = requests.find(|request| self.outline(**request).input != first.input);
        let other = other.map(|request| self.outline(*request));
        let is_before = |response: &usize| !first.is_before(self.outline(*response));
        let from = left.responses.partition_point(is_before);
        let until = left.responses.partition_point(|response| {
            other.is_none_or(|other| !other.is_before(self.outline(*response)))
        });
        let &[response] = left.responses.get(from..until).unwrap_or_default() else {
            return false;
        };
        let own = self.outline(response);
        if later(own.captured_at, grace) > now {
            return false;
        }
        let belongs = |request: &usize| {
            let outline = self.outline(*request);
            outline.input == first.input && outline.is_before(own)
        };
        let mut attempts: Vec<usize> = left.requests.iter().copied().filter(belongs).collect();
        let Some(request) = attempts.pop() else {
            return false;
        };
        left.requests.retain(|other| !belongs(other));
        left.responses.remove(from);
        self.pair(request, response, attempts);
        true
    }

    fn pair(&mut self, request: usize, response: usize, attempts: Vec<usize>) {
        self.requests
            .retain(|place| *place != request && !attempts.contains(place));
        self.responses.retain(|place| *place != response);
        self.add_answered(request);
        self.settled.push(Settled::Call {
            request,
            response,
            attempts,
        });
    }

    /// Settles what is left.
    fn give_up(&mut self) {
        let (requests, responses) = (&mut self.requests, &mut self.responses);
        let left = requests.drain(..).chain(responses.drain(..));
        let left = left.map(|place| given_up(&self.halves[place], place));
        self.settled.extend(left);
    }
}

#[cfg(test)]
mod tests;
