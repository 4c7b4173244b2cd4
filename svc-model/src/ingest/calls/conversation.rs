//! A Session whose calls a program sends one after another.

use super::{
    AgentName, CallOrigin, CallOriginKind, CallsReceipt, CallsRequest, RejectedCall, SentCall,
};
use crate::evidence::Message;
use crate::id::{ForeignId, SessionId, UserId};
use crate::open::Open;

/// A Session whose calls a program sends one after another. Each call is given with its whole input,
/// as the model got it; it is sent with only what the call before it had not.
///
/// A conversation remembers the last call that the service has, or that an outbox keeps. If the
/// input of the next one does not begin with that call, it is sent whole: so a program may shorten
/// or change its history as it likes.
#[derive(Clone, Debug)]
pub struct Conversation {
    source: CallOrigin,
    session_id: SessionId,
    user_id: Option<UserId>,
    last: Option<LastCall>,
}

/// The last call.
#[derive(Clone, Debug)]
struct LastCall {
    id: ForeignId,
    /// What the next call begins with: the input and the answer, without finish reasons.
    messages: Vec<Message>,
}

impl Conversation {
    /// Returns a conversation without calls.
    pub fn new(session_id: SessionId, agent: AgentName) -> Self {
        let source = CallOrigin {
            kind: CallOriginKind::Sdk,
            agent,
            agent_version: None,
        };
        Self {
            source,
            session_id,
            user_id: None,
            last: None,
        }
    }

    /// Sets the user who makes the calls.
    #[must_use]
    pub fn user(mut self, user_id: UserId) -> Self {
        self.user_id = Some(user_id);
        self
    }

    /// Returns the request that sends a call with what is new in its input.
    pub fn next(&self, call: &SentCall) -> CallsRequest {
        let mut call = call.clone();
        if let Some(last) = &self.last
            && call.input.after.is_none()
            && call.input.messages.starts_with(&last.messages)
        {
            call.input.after = Some(last.id.clone());
            call.input.messages.drain(..last.messages.len());
        }
        self.request(call)
    }

    /// Returns the request that sends a call with its whole input.
    pub fn whole(&self, call: &SentCall) -> CallsRequest {
        self.request(call.clone())
    }

    /// Remembers a call that the service has acknowledged, or that was put into an outbox.
    pub fn remember(&mut self, call: SentCall) {
        let id = call.id().cloned();
        // What an earlier call had is not known here.
        let id = id.filter(|_| call.input.after.is_none());
        self.last = id.map(|id| {
            let mut messages = call.input.messages;
            messages.extend(call.output);
            for message in &mut messages {
                message.finish_reason = None;
            }
            LastCall { id, messages }
        });
    }

    fn request(&self, call: SentCall) -> CallsRequest {
        CallsRequest {
            source: self.source.clone(),
            session_id: self.session_id.clone(),
            user_id: self.user_id.clone(),
            continues: None,
            reader: None,
            calls: vec![call],
        }
    }
}

impl CallsReceipt {
    /// Returns whether a call was rejected because the service does not have the call that it
    /// continues. It can be sent again with its whole input.
    pub fn lacks_earlier_calls(&self) -> bool {
        let unknown = Open::from(RejectedCall::AfterUnknown);
        self.rejected.get(&unknown).is_some_and(|count| *count > 0)
    }

    /// Returns whether every call is stored: now, before, or under another Session.
    pub fn has_every_call(&self) -> bool {
        self.rejected.values().all(|count| *count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    fn call(id: &str, texts: &[&str], answer: &str) -> SentCall {
        let roles = ["user", "assistant"].iter().cycle();
        let call = texts
            .iter()
            .zip(roles)
            .fold(SentCall::builder(), |call, (text, role)| {
                call.text_message(role, text)
            });
        let ended = Instant::parse("2026-01-02T03:04:07Z").unwrap();
        call.id(id)
            .ended(ended)
            .answered_text(answer)
            .build()
            .unwrap()
    }

    /// Returns what a request says of its call: after which one, and how many messages.
    fn sent(request: &CallsRequest) -> (Option<&str>, usize) {
        let [call] = &request.calls[..] else {
            panic!("one call");
        };
        let after = call.input.after.as_ref().map(ForeignId::as_str);
        (after, call.input.messages.len())
    }

    #[test]
    fn only_what_is_new_is_sent() {
        let session = SessionId::new("s").unwrap();
        let mut conversation = Conversation::new(session, AgentName::new("bot").unwrap());
        let first = call("1", &["a"], "b");
        assert_eq!(sent(&conversation.next(&first)), (None, 1));
        conversation.remember(first);
        let second = call("2", &["a", "b", "c"], "d");
        assert_eq!(sent(&conversation.next(&second)), (Some("1"), 1));
        assert_eq!(sent(&conversation.whole(&second)), (None, 3));
        // Another call was not acknowledged, so the next one still continues the first.
        let third = call("3", &["a", "b", "c", "d", "e"], "f");
        assert_eq!(sent(&conversation.next(&third)), (Some("1"), 3));
        conversation.remember(second);
        assert_eq!(sent(&conversation.next(&third)), (Some("2"), 1));
        let changed = call("4", &["a", "other", "c"], "d");
        assert_eq!(sent(&conversation.next(&changed)), (None, 3));
    }

    #[test]
    fn a_call_that_names_an_earlier_one_is_sent_as_it_is() {
        let session = SessionId::new("s").unwrap();
        let mut conversation = Conversation::new(session, AgentName::new("bot").unwrap());
        conversation.remember(call("1", &["a"], "b"));
        let mut own = call("2", &["c"], "d");
        own.input.after = ForeignId::new("x").ok();
        assert_eq!(sent(&conversation.next(&own)), (Some("x"), 1));
        conversation.remember(own);
        let next = call("3", &["c", "d"], "e");
        assert_eq!(sent(&conversation.next(&next)), (None, 2));
    }
}
