//! What the named retrieval tokens may read: grants, and the append-only log of their changes.

mod reply;
mod request;
#[cfg(test)]
mod tests;

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::field::{FieldKind, FromField, Violation};
use crate::json::Json;
use crate::limit::TOKEN_NAME_CHARACTERS_MAX;
use crate::parameter::ParameterValue;

pub use self::reply::{
    GrantEntry, GrantExplanation, GrantList, GrantReach, GrantReceipt, GrantScope, GrantVerdict,
};
pub use self::request::{
    GrantExplanationRequest, GrantRemovalRequest, GrantRequest, GrantsRequest, TokenChangeRequest,
};

closed_set! {
    /// What a row of the grant log records.
    pub enum GrantAction {
        /// A grant was added to the token.
        Add = "add",
        /// An earlier grant was removed from the token.
        Remove = "remove",
        /// The token was revoked: every server answers it with 401.
        Revoke = "revoke",
        /// The token was restored, with its grants.
        Restore = "restore",
    }
}

closed_set! {
    /// Why a grant does not reach a Session.
    pub enum GrantObstacle {
        /// The grant is for another Session.
        OtherSession = "other_session",
        /// No visible fact names the Session.
        NothingVisible = "nothing_visible",
        /// No visible fact of the Session names the user of the rule.
        UserNotNamed = "user_not_named",
        /// A visible fact of the Session names another user.
        OtherUser = "other_user",
        /// No visible fact of the Session is from the agent of the rule.
        HarnessNotNamed = "harness_not_named",
        /// A visible fact of the Session is from another agent.
        OtherHarness = "other_harness",
        /// No visible note links the Session to a commit of the repository of the rule.
        RepositoryNotNamed = "repository_not_named",
        /// A visible note links the Session to a commit of another repository, or of one that
        /// cannot be determined.
        OtherRepository = "other_repository",
        /// The first fact of the Session was captured before the start time of the rule.
        BeforeSince = "before_since",
    }
}

/// The client names that are reserved, because no grants are stored for the tokens that have them.
const RESERVED: [&str; 3] = ["operator", "legacy", "retrieval"];

/// The name of a retrieval token: 1 to 64 letters, digits, `.`, `_` and `-`, beginning with a
/// letter or a digit. `operator`, `legacy` and `retrieval` are reserved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    schemars(extend(
        "pattern" = "^[A-Za-z0-9][A-Za-z0-9._-]*$",
        "maxLength" = TOKEN_NAME_CHARACTERS_MAX,
        "examples" = ["review-agent"],
    ))
)]
pub struct TokenName(String);

impl TokenName {
    /// Returns the name, or a message that says what is expected.
    ///
    /// # Errors
    ///
    /// If the text is not a valid name, or is reserved.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let is_name = text.len() <= TOKEN_NAME_CHARACTERS_MAX
            && text.bytes().next().is_some_and(plain)
            && text
                .bytes()
                .all(|byte| plain(byte) || matches!(byte, b'.' | b'_' | b'-'));
        if !is_name {
            Err(
                "must be 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
            )
        } else if RESERVED.contains(&text) {
            Err("must not be operator, legacy or retrieval: no grant is stored for those tokens")
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TokenName {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::new(&text)
    }
}

impl From<TokenName> for String {
    fn from(name: TokenName) -> Self {
        name.0
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ParameterValue for TokenName {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}

impl FromField for TokenName {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        Self::new(value.as_str().ok_or(expected)?).map_err(Violation::rule)
    }
}
