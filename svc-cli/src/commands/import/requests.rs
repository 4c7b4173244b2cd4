//! The requests that send calls of a transcript.

use std::collections::BTreeSet;

use svc_model::id::UserId;
use svc_model::ingest::{
    AgentName, CallOrigin, CallOriginKind, CallsRequest, ReaderReport, SentCall,
};
use svc_model::json;
use svc_model::limit::{SENT_CALL_MESSAGES_MAX, SENT_CALLS_MAX, SENT_PARTS_MAX};
use svc_transcripts::Agent;

use super::reading::SizedCall;

/// The maximum size of the calls of a request in bytes, if it has more than one.
const CALLS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum size of a call in bytes. With its envelope it is below the cap of the route.
const CALL_BYTES_MAX: usize = 24 * 1024 * 1024;

/// Requests, and the calls that no request can have.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) all: Vec<CallsRequest>,
    pub(crate) too_large: u64,
    room: Room,
}

/// What the last request has.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    bytes: usize,
    parts: usize,
}

impl Requests {
    /// Puts calls into requests, in order. Consecutive calls of one Session are in one request, as
    /// far as its limits allow. The first request has the report.
    pub(crate) fn new(
        agent: Agent,
        user_id: Option<&UserId>,
        calls: Vec<SizedCall>,
        report: ReaderReport,
    ) -> Self {
        let mut requests = Self::default();
        let Ok(name) = AgentName::new(agent.as_str()) else {
            return requests;
        };
        for mut call in calls {
            if call.bytes > CALL_BYTES_MAX {
                call.leave_out_what_is_too_large();
            }
            if call.fits() {
                requests.add(&name, user_id, call);
            } else {
                requests.too_large += 1;
            }
        }
        if let Some(first) = requests.all.first_mut() {
            first.reader = Some(report);
        }
        requests
    }

    fn add(&mut self, agent: &AgentName, user_id: Option<&UserId>, sized: SizedCall) {
        let SizedCall { call, bytes } = sized;
        let parts = parts(&call.call);
        let room = self.room;
        let last = self.all.last_mut().filter(|last| {
            last.session_id == call.session_id
                && last.continues == call.continues
                && last.source.agent_version == call.agent_version
                && last.calls.len() < SENT_CALLS_MAX
                && room.bytes + bytes <= CALLS_BYTES_MAX
                && room.parts + parts <= SENT_PARTS_MAX
        });
        if let Some(last) = last {
            last.calls.push(call.call);
            self.room.bytes += bytes;
            self.room.parts += parts;
            return;
        }
        self.room = Room { bytes, parts };
        self.all.push(CallsRequest {
            source: CallOrigin {
                kind: CallOriginKind::Transcript,
                agent: agent.clone(),
                agent_version: call.agent_version,
            },
            session_id: call.session_id,
            user_id: user_id.cloned(),
            continues: call.continues,
            reader: None,
            calls: vec![call.call],
        });
    }
}

impl SizedCall {
    fn fits(&self) -> bool {
        let call = &self.call.call;
        let messages = call.input.messages.len() + call.output.len();
        self.bytes <= CALL_BYTES_MAX
            && messages <= SENT_CALL_MESSAGES_MAX
            && parts(call) <= SENT_PARTS_MAX
    }

    /// Leaves out the largest parts until a request has room for the call, and counts them. So later
    /// calls still have one to continue.
    fn leave_out_what_is_too_large(&mut self) {
        let call = &mut self.call.call;
        let messages = || call.input.messages.iter().chain(&call.output);
        let parts = messages().flat_map(|message| &message.parts);
        let size = |part| json::to_vec(part, usize::MAX).map_or(0, |part| part.len());
        let mut sizes: Vec<(usize, usize)> = parts.map(size).zip(0..).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        let mut left_out = BTreeSet::new();
        for (size, place) in sizes {
            if self.bytes <= CALL_BYTES_MAX {
                break;
            }
            self.bytes = self.bytes.saturating_sub(size);
            left_out.insert(place);
        }
        let mut places = 0..;
        let messages = call.input.messages.iter_mut().chain(&mut call.output);
        for message in messages {
            message
                .parts
                .retain(|_| places.next().is_none_or(|place| !left_out.contains(&place)));
        }
        let counts = call.left_out.get_or_insert_default();
        counts.truncated += left_out.len() as u64;
    }
}

fn parts(call: &SentCall) -> usize {
    let messages = call.input.messages.iter().chain(&call.output);
    messages.map(|message| message.parts.len()).sum()
}

#[cfg(test)]
mod tests {
    use svc_model::evidence::{Message, Part};
    use svc_model::id::{ForeignId, SessionId};
    use svc_model::time::Instant;
    use svc_transcripts::TranscriptCall;

    use super::*;

    fn call(session: &str, version: &str, bytes: usize) -> SizedCall {
        let ended_at = Instant::parse("2026-01-02T03:04:07Z").unwrap();
        let call = SentCall {
            call_id: ForeignId::new("c").ok(),
            ..SentCall::new(ended_at)
        };
        SizedCall {
            call: TranscriptCall {
                session_id: SessionId::new(session).unwrap(),
                continues: None,
                agent_version: Some(version.to_owned()),
                call,
            },
            bytes,
        }
    }

    fn lengths(calls: Vec<SizedCall>) -> (Vec<usize>, u64) {
        let report = ReaderReport::default();
        let requests = Requests::new(Agent::Pi, None, calls, report);
        let lengths = requests.all.iter().map(|request| request.calls.len());
        (lengths.collect(), requests.too_large)
    }

    #[test]
    fn a_request_has_calls_of_one_session_and_version() {
        let calls = [("s", "1"), ("s", "1"), ("s", "2"), ("t", "2"), ("s", "2")];
        let calls = calls.map(|(session, version)| call(session, version, 1));
        assert_eq!(lengths(calls.into()), (vec![2, 1, 1, 1], 0));
    }

    #[test]
    fn what_makes_a_call_too_large_is_left_out_and_counted() {
        let text = |bytes: usize| Part::Text {
            content: "x".repeat(bytes).into(),
        };
        let message = |parts| Message {
            role: "user".into(),
            parts,
            finish_reason: None,
        };
        let mut large = call("s", "1", 0);
        let sent = &mut large.call.call;
        sent.input.messages = vec![message(vec![text(10), text(CALL_BYTES_MAX), text(20)])];
        sent.output = vec![message(vec![text(30)])];
        large.bytes = json::to_vec(&large.call.call, usize::MAX).unwrap().len();
        let requests = Requests::new(Agent::Pi, None, vec![large], ReaderReport::default());
        let sent = &requests.all[0].calls[0];
        assert_eq!(sent.input.messages[0].parts, [text(10), text(20)]);
        assert_eq!(sent.output[0].parts, [text(30)]);
        assert_eq!(sent.left_out.unwrap().truncated, 1);
        assert_eq!(requests.too_large, 0);
    }

    #[test]
    fn a_request_keeps_the_limits_of_its_route() {
        let many = (0..=SENT_CALLS_MAX).map(|_| call("s", "1", 1));
        assert_eq!(lengths(many.collect()), (vec![SENT_CALLS_MAX, 1], 0));
        let half = CALLS_BYTES_MAX / 2;
        let large = [half, half, 1, CALL_BYTES_MAX, CALL_BYTES_MAX + 1];
        let large = large.map(|bytes| call("s", "1", bytes));
        assert_eq!(lengths(large.into()), (vec![2, 1, 1], 1));
    }
}
