//! Developer decisions: one of its kind per Session and moment.

use sha2::{Digest as _, Sha256};
use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, UserId};
use svc_model::repository::CommitSha;

use super::sessions::Touch;
use super::table::{Fact, Table, table};
use super::value::Value;
use crate::fact::DeveloperDecision;

impl Fact for DeveloperDecision {
    const TABLE: Table = table!("developer_decisions":
        decision_id, org_id, session_id, user_id, agent_harness, file_path, accepted, explicit,
        interaction_mode, commit_sha, call_id, edit_retention_score, observation_delay_ms,
        occurred_at_us, captured_at_us, identity, raw,
    );

    fn id(&self) -> FactId {
        self.decision_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([
            self.decision_id.into(),
            org_id.into(),
            self.session_id.as_str().into(),
            self.user_id.as_ref().map(UserId::as_str).into(),
            self.agent_harness.as_str().into(),
            self.file_path.as_str().into(),
            self.accepted.into(),
            self.explicit.into(),
            self.interaction_mode.as_str().into(),
            self.commit_sha.as_ref().map(CommitSha::as_str).into(),
            self.call_id.as_deref().into(),
            self.edit_retention_score.into(),
            self.observation_delay_ms.into(),
            self.occurred_at.into(),
            self.captured_at.into(),
            Value::OwnBlob(identity(self)),
            (&self.raw).into(),
        ]);
    }

    fn touch(&self) -> Option<Touch<'_>> {
        Some(Touch {
            session_id: &self.session_id,
            user_id: self.user_id.as_ref(),
            observed_at: self.captured_at,
        })
    }
}

/// What tells two decisions of one Session and moment apart, as sixteen bytes of a hash: a path may
/// be longer than what an index takes.
fn identity(decision: &DeveloperDecision) -> Vec<u8> {
    let call_id = decision.call_id.as_deref();
    // Claude Code names each call once, and learns of the path later or never.
    let by_call = decision.agent_harness == AgentHarness::ClaudeCode && call_id.is_some();
    let (file_path, delay) = if by_call {
        ("", None)
    } else {
        (decision.file_path.as_str(), decision.observation_delay_ms)
    };
    let mut hash = Sha256::new();
    for text in [
        decision.agent_harness.as_str(),
        decision.interaction_mode.as_str(),
        call_id.unwrap_or_default(),
        file_path,
    ] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.update([u8::from(decision.accepted), u8::from(decision.explicit)]);
    hash.update(delay.unwrap_or(-1).to_be_bytes());
    hash.finalize()[..16].to_vec()
}
