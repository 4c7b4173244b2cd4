use super::{EditText, EventTime, FilePath};
use crate::closed_set;
use crate::facts::AgentHarness;
use crate::id::{ForeignId, SessionId, UserId};

/// One event, as a sender next to an agent observed it.
///
/// The service recognises a repeated event by its content, so sending it again is harmless. The
/// identity of a decision includes its time: a sender that repeats one must keep the time of the
/// first attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The agent that the event is about.
    pub agent: AgentHarness,
    /// The id of the Session.
    pub session_id: SessionId,
    /// The user of the agent, if known.
    pub user_id: Option<UserId>,
    /// When it happened, by the sender's clock.
    pub occurred_at: EventTime,
    /// What happened.
    pub kind: EventKind,
}

/// The content of an [`Event`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum EventKind {
    /// See [`ToolDecision`].
    ToolDecision(ToolDecision),
    /// See [`EditObservation`].
    EditObservation(EditObservation),
    /// See [`RejectedEdit`].
    RejectedEdit(RejectedEdit),
    /// See [`RetryLinkage`].
    RetryLinkage(RetryLinkage),
}

/// What a person, or a rule of theirs, decided about a tool call that edits a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDecision {
    /// The agent's id of the tool call.
    pub call_id: ForeignId,
    /// The file, if known.
    pub file_path: Option<FilePath>,
    /// Whether the call was accepted.
    pub accepted: bool,
    /// Whether a person decided, rather than a rule.
    pub explicit: bool,
    /// The agent's name of the tool, if known.
    pub tool_name: Option<String>,
}

/// The text that an edit inserted into a file, and the whole file when the Session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditObservation {
    /// The agent's id of the tool call.
    pub call_id: ForeignId,
    /// The path of the file, as the agent wrote it.
    pub file_path: FilePath,
    /// The text that the edit inserted.
    pub applied_text: EditText,
    /// The whole file at the end of the Session. Empty if the file was gone.
    pub observed_file_text: EditText,
    /// The number of lines that something other than the agent added between this edit and the next
    /// check of the file. `None` if not measured; 0 if there were none.
    pub external_lines_added: Option<u32>,
    /// The number of lines that something other than the agent removed, likewise.
    pub external_lines_removed: Option<u32>,
    /// The agent's name of the tool, if known.
    pub tool_name: Option<String>,
}

/// The text of an edit that a person refused. A tool failure is not a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedEdit {
    /// The agent's id of the tool call.
    pub call_id: ForeignId,
    /// The path of the file, as the agent wrote it.
    pub file_path: FilePath,
    /// The text that was proposed.
    pub proposed: EditText,
    /// The agent's name of the tool, if known.
    pub tool_name: Option<String>,
}

closed_set! {
    /// A tool whose refused calls can be linked to a later call.
    pub enum RetriedTool {
        /// The tool that changes a part of a file.
        Edit = "Edit",
        /// The tool that writes a whole file.
        Write = "Write",
    }
}

/// A refused edit and the accepted edit that followed a person's correction. Both are of the same
/// tool and on the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryLinkage {
    tool_name: RetriedTool,
    file_path: FilePath,
    rejected_call_id: ForeignId,
    accepted_call_id: ForeignId,
}

/// The error for a linkage of a call to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the refused and the accepted call must be different")]
pub struct SameCall;

impl RetryLinkage {
    /// Returns the linkage of two calls. White space around the path is trimmed, as the service
    /// does it.
    ///
    /// # Errors
    ///
    /// If both are the same call.
    pub fn new(
        tool_name: RetriedTool,
        file_path: &FilePath,
        rejected_call_id: ForeignId,
        accepted_call_id: ForeignId,
    ) -> Result<Self, SameCall> {
        if rejected_call_id == accepted_call_id {
            return Err(SameCall);
        }
        Ok(Self {
            tool_name,
            file_path: file_path.trimmed(),
            rejected_call_id,
            accepted_call_id,
        })
    }

    /// Returns the tool.
    pub const fn tool_name(&self) -> RetriedTool {
        self.tool_name
    }

    /// Returns the file.
    pub const fn file_path(&self) -> &FilePath {
        &self.file_path
    }

    /// Returns the agent's id of the refused call.
    pub const fn rejected_call_id(&self) -> &ForeignId {
        &self.rejected_call_id
    }

    /// Returns the agent's id of the accepted call.
    pub const fn accepted_call_id(&self) -> &ForeignId {
        &self.accepted_call_id
    }
}

macro_rules! kinds {
    ($($kind:ident),*) => {$(
        impl From<$kind> for EventKind {
            fn from(kind: $kind) -> Self {
                Self::$kind(kind)
            }
        }
    )*};
}

kinds!(ToolDecision, EditObservation, RejectedEdit, RetryLinkage);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linkage_joins_two_calls_on_a_trimmed_path() {
        let call = |id| ForeignId::new(id).unwrap();
        let path = FilePath::new(" a.py ").unwrap();
        let linkage = RetryLinkage::new(RetriedTool::Edit, &path, call("r"), call("a")).unwrap();
        assert_eq!(linkage.file_path().as_str(), "a.py");
        let same = RetryLinkage::new(RetriedTool::Edit, &path, call(" r"), call("r "));
        assert_eq!(same, Err(SameCall));
    }
}
