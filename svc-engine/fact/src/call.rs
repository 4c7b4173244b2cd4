use svc_model::evidence::{LeftOut, Message};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;
use svc_model::usage::{CallSource, CallUsage};

use super::{CallKey, CallKeyKind, RawPayload};

/// One model call with what was said: from a gateway, or from what a client logs or keeps of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InferenceCall {
    /// The id of the fact: derived from the capture id, or fresh.
    pub inference_call_id: FactId,
    /// The id of the fact if another call is stored under its id. From a gateway: another call
    /// started at another time under the model's id; derived from both, and `None` if the sender
    /// named the delivery itself. From another source: another call has the key that the id is
    /// derived from; derived from what was said too.
    pub further_id: Option<FactId>,
    /// The kind of gateway.
    pub gateway_provider: GatewayProvider,
    /// The Session.
    pub session_id: SessionId,
    /// The user; stored, never returned by an evidence or context route.
    pub user_id: Option<UserId>,
    /// The gateway's or the model's own id of the call. Unique together with the gateway, the
    /// Session and the start.
    pub model_call_id: Option<String>,
    /// When the call started, if the gateway says so.
    pub started_at: Option<Instant>,
    /// The provider of the model.
    pub model_provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// Where the call was captured.
    pub capture_source: CallSource,
    /// The agent or program that made it, if its source says so.
    pub agent: Option<String>,
    /// Where the agent worked.
    pub workplace: Workplace,
    /// Its cost and the kinds of its tokens.
    pub usage: CallUsage,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// What identifies the call among all sources. The first is what its source identifies it by.
    pub keys: Vec<CallKey>,
    /// Whether its input was never received, so that it says nothing of what was asked.
    pub is_input_unpaired: bool,
    /// When the call was observed: the sender's time, or else the time of receipt.
    pub observed_at: Instant,
    /// The messages sent to the model.
    pub input_messages: Vec<Message>,
    /// The model's answer.
    pub output_messages: Vec<Message>,
    /// What capture left out of them.
    pub left_out: LeftOut,
    /// The ids by which decisions may name the call: those of its output's tool calls and its own,
    /// distinct and sorted.
    pub call_aliases: Vec<String>,
    /// The gateway's whole description, with credentials redacted. Never returned.
    pub raw: RawPayload,
}

/// Where an agent worked when it called a model. It is content: an erasure deletes it, and nothing is
/// derived from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The working directory.
    pub cwd: Option<String>,
    /// The branch that was checked out there.
    pub git_branch: Option<String>,
    /// The agent's id of the subagent that made the call.
    pub subagent: Option<String>,
}

/// The call that the input of another call continues, as a sender names it: that call's whole input,
/// then its whole output, come before the messages that were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuedInput {
    /// The id of its response, or the agent's own id of it.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// The Session of the call, and those that it continues as far as the sender says so, in which
    /// the agent's own id of the earlier call is looked for.
    pub session_ids: Vec<SessionId>,
}

impl ContinuedInput {
    /// Returns the keys that the call has if the agent's own id names it, in each of the Sessions. They
    /// go before [`ContinuedInput::response_key`]: an agent numbers its calls as it likes, so its ids may
    /// be those of responses elsewhere.
    pub fn own_keys(&self) -> impl Iterator<Item = CallKey> {
        let own = self.session_ids.iter();
        own.map(|session_id| CallKey::client(&self.agent, session_id, &self.id))
    }

    /// Returns the key that the call has if the id of its response names it.
    pub fn response_key(&self) -> CallKey {
        let kind = if self.id.starts_with("req_") {
            CallKeyKind::Request
        } else {
            CallKeyKind::Response
        };
        CallKey::new(kind, self.id.as_str())
    }
}

/// A Session that another one continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionContinuation {
    /// The Session that continues.
    pub session_id: SessionId,
    /// The Session that it continues.
    pub continues_session_id: SessionId,
    /// The last call that both have.
    pub last: Option<CallKey>,
    /// When the last call of the Session that was sent with this was observed.
    pub observed_at: Instant,
    /// When it was received.
    pub received_at: Instant,
}
