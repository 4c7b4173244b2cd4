//! Request bodies for the calls of one session. Each sends everything that was said before it.

use crate::conversation::{Conversation, Plan, scale_for};
use crate::http::{Request, head};
use crate::payload::{ModelMap, envelope};
use crate::template::Template;

/// The calls of a growing session: one copy of the messages, of which each call sends a longer
/// prefix.
#[derive(Clone, Debug)]
pub(crate) struct SessionCalls {
    messages: Template,
    calls: Vec<CallTemplate>,
}

#[derive(Clone, Debug)]
struct CallTemplate {
    before: Template,
    /// Where the call's input ends in `messages`.
    messages_end: usize,
    after: Template,
    body_length: usize,
}

impl SessionCalls {
    /// Builds the calls of the last `calls` turns of a conversation.
    pub(crate) fn new(
        conversation: &Conversation,
        calls: usize,
        map: ModelMap,
        bearer: &str,
    ) -> Self {
        Self::with_tools(conversation, calls, map, "", bearer)
    }

    /// Builds the calls of the last `calls` turns of a conversation in which every call has the
    /// same tools: a JSON array, or none.
    pub(crate) fn with_tools(
        conversation: &Conversation,
        calls: usize,
        map: ModelMap,
        tools: &str,
        bearer: &str,
    ) -> Self {
        let mut messages = String::new();
        let mut built = Vec::with_capacity(calls);
        for message in &conversation.opening {
            join(&mut messages, &message.wire());
        }
        for (index, turn) in conversation.turns.iter().enumerate() {
            let reply = turn.reply.wire();
            if index + calls >= conversation.turns.len() {
                const HERE: &str = "@here@";
                let body = envelope(HERE, &reply, map, tools);
                let (before, after) = body
                    .split_once(HERE)
                    .expect("the frame has a place for messages");
                let body_length = before.len() + messages.len() + after.len();
                built.push(CallTemplate {
                    before: Template::new(head("/ingest/gateway", bearer, body_length) + before),
                    messages_end: messages.len(),
                    after: Template::new(after.to_owned()),
                    body_length,
                });
            }
            join(&mut messages, &reply);
            for message in &turn.additions {
                join(&mut messages, &message.wire());
            }
        }
        Self {
            messages: Template::new(messages),
            calls: built,
        }
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Returns the bytes of all bodies.
    pub(crate) fn body_bytes(&self) -> usize {
        self.calls.iter().map(|call| call.body_length).sum()
    }

    /// Makes every message belong to another session.
    pub(crate) fn begin_session(&mut self, session: u64) {
        self.messages.patch_session(session);
        for call in &mut self.calls {
            call.before.patch_session(session);
            call.after.patch_session(session);
        }
    }

    /// Returns the request of one of the calls.
    pub(crate) fn request(&mut self, index: usize, call: u64) -> Request<'_> {
        let this = &mut self.calls[index];
        this.before.patch_call(call);
        this.after.patch_call(call);
        Request {
            pieces: [
                this.before.bytes(),
                &self.messages.bytes()[..this.messages_end],
                this.after.bytes(),
            ],
            body_length: this.body_length,
        }
    }
}

/// Returns the plan of a session whose bodies have a wanted mean size.
pub(crate) fn plan_of_mean_body(turns: usize, mean_body: usize) -> Plan {
    let plan = |scale| Plan {
        seed: 1,
        first_word: 0,
        turns,
        scale,
        silent: Vec::new(),
        user_every: 8,
    };
    let scale = scale_for(mean_body as f64, |scale| {
        let calls = SessionCalls::new(&Conversation::new(&plan(scale)), turns, ModelMap::Full, "");
        calls.body_bytes() as f64 / turns as f64
    });
    plan(scale)
}

fn join(messages: &mut String, message: &str) {
    if !messages.is_empty() {
        messages.push_str(", ");
    }
    messages.push_str(message);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;
    use crate::payload::tests::{body, message_texts};

    #[test]
    fn each_call_of_a_session_contains_the_turn_before() {
        let plan = plan_of_mean_body(40, 57 * 1_024);
        let conversation = Conversation::new(&plan);
        let mut calls = SessionCalls::new(&conversation, 40, ModelMap::Full, "t");
        let mean = calls.body_bytes() / 40;
        assert!(mean.abs_diff(57 * 1_024) < 600, "mean body {mean}");
        let mut before: Option<Value> = None;
        for turn in 0..40 {
            if turn == 0 {
                calls.begin_session(11);
            }
            let value = body(calls.request(turn, turn as u64));
            let messages = value["payload"]["messages"].as_array().expect("messages");
            assert_eq!(messages.len(), conversation.input(turn).count());
            if let Some(before) = before {
                let earlier = before["payload"]["messages"].as_array().expect("messages");
                assert_eq!(&messages[..earlier.len()], earlier.as_slice());
                assert_eq!(
                    messages[earlier.len()],
                    before["payload"]["response"]["choices"][0]["message"]
                );
            }
            before = Some(value);
        }
        let seen: HashSet<String> = message_texts(&before.expect("forty turns"))
            .into_iter()
            .collect();
        calls.begin_session(12);
        assert!(
            message_texts(&body(calls.request(39, 99)))
                .iter()
                .all(|text| !seen.contains(text))
        );
        assert!(calls.messages.session_slot_count() > 150);
    }
}
