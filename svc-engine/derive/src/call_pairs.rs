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

/// Returns what becomes of the oldest open halves of a list, until the rest has this many bytes
/// fewer.
pub fn evict(halves: &[KeptHalf], excess: u64) -> Vec<Settled> {
    let mut oldest: Vec<usize> = (0..halves.len())
        .filter(|place| halves[*place].state == HalfState::Open)
        .collect();
    oldest.sort_by_key(|place| {
        let outline = &halves[*place].outline;
        (outline.captured_at, outline.moment())
    });
    let mut left = excess;
    let mut evicted = Vec::new();
    for place in oldest {
        if left == 0 {
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

struct Pairing<'h> {
    halves: &'h [KeptHalf],
    buckets: Vec<Bucket<'h>>,
    /// The places of the open requests, earliest first.
    requests: Vec<usize>,
    /// The places of the open responses, earliest first.
    responses: Vec<usize>,
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
        Self {
            halves,
            buckets: halves.iter().map(bucket).collect(),
            requests: open(HalfSide::Request),
            responses: open(HalfSide::Response),
            settled: Vec::new(),
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
        let is_again = |other: &&KeptHalf| {
            let outline = &other.outline;
            outline.side == HalfSide::Request
                && outline.messages == own.messages
                && outline.query_source == own.query_source
                && own.is_before(outline)
        };
        let witnesses = self.halves.iter();
        let witnesses = witnesses.filter(|half| half.state == HalfState::Witness);
        let paired = self.settled.iter().filter_map(|settled| match settled {
            Settled::Call { request, .. } => Some(&self.halves[*request]),
            Settled::Unpaired(_) | Settled::Attempt(_) => None,
        });
        paired
            .chain(witnesses)
            .filter(is_again)
            .min_by_key(|other| (other.state == HalfState::Open, other.due_at))
    }

    /// Pairs each response with the only request that is left for it, until nothing more follows.
    fn alone(&mut self, now: Instant, grace: Duration) {
        let waits = |response: &usize| later(self.outline(*response).captured_at, grace) > now;
        let waiting: HashSet<usize> = self.responses.iter().copied().filter(waits).collect();
        while let Some((input, response)) = self.next_alone(&waiting) {
            let mut left = self.left(response);
            left.retain(|request| self.outline(*request).input == input);
            let Some(request) = left.pop() else {
                return;
            };
            self.pair(request, response, left);
        }
    }

    /// Returns a response for which requests of only one input are left, unless they are the only
    /// ones for another response too.
    fn next_alone(&self, waiting: &HashSet<usize>) -> Option<(MessagesDigest, usize)> {
        let mut only: HashMap<(&Bucket<'_>, MessagesDigest), Vec<usize>> = HashMap::new();
        for response in &self.responses {
            let left = self.left(*response);
            let inputs: HashSet<MessagesDigest> = left
                .iter()
                .map(|request| self.outline(*request).input)
                .collect();
            if let (1, Some(input)) = (inputs.len(), inputs.into_iter().next()) {
                let key = (&self.buckets[*response], input);
                only.entry(key).or_default().push(*response);
            }
        }
        only.into_iter()
            .filter_map(|((_, input), responses)| match *responses {
                [response] if !waiting.contains(&response) => Some((input, response)),
                _ => None,
            })
            .min_by_key(|(_, response)| self.outline(*response).moment())
    }

    /// Returns the requests that a response may belong to, earliest first.
    fn left(&self, response: usize) -> Vec<usize> {
        let own = self.outline(response);
        let may_belong = |request: &usize| {
            self.buckets[*request] == self.buckets[response]
                && self.outline(*request).is_before(own)
                && self.sent_again(*request).is_none()
        };
        self.requests.iter().copied().filter(may_belong).collect()
    }

    fn pair(&mut self, request: usize, response: usize, attempts: Vec<usize>) {
        self.requests
            .retain(|place| *place != request && !attempts.contains(place));
        self.responses.retain(|place| *place != response);
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
