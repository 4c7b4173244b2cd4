use std::fmt;
use std::ops::AddAssign;

/// How many credentials were replaced, by what gave them away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedactionCounts {
    /// Values under the name of a credential, and repetitions of them.
    pub structured_credential: u64,
    /// Tokens of an `Authorization` header.
    pub authorization_header: u64,
    /// Values assigned to an API key.
    pub api_key_assignment: u64,
    /// Bearer tokens.
    pub bearer_token: u64,
    /// Keys that begin with a provider's prefix.
    pub provider_key: u64,
    /// JSON web tokens.
    pub web_token: u64,
    /// Values assigned to a secret, token, key or password that look like one.
    pub secret_assignment: u64,
    /// Private keys in PEM form.
    pub private_key: u64,
    /// Passwords beside a user name in URLs and commands, and URLs that are secret.
    pub login: u64,
    /// Secrets of the service itself.
    pub configured_secret: u64,
}

/// What gave a credential away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    StructuredCredential,
    AuthorizationHeader,
    ApiKeyAssignment,
    BearerToken,
    ProviderKey,
    WebToken,
    SecretAssignment,
    PrivateKey,
    Login,
    ConfiguredSecret,
}

impl RedactionCounts {
    /// Returns whether nothing was replaced.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, reason: Reason, replaced: usize) {
        *match reason {
            Reason::StructuredCredential => &mut self.structured_credential,
            Reason::AuthorizationHeader => &mut self.authorization_header,
            Reason::ApiKeyAssignment => &mut self.api_key_assignment,
            Reason::BearerToken => &mut self.bearer_token,
            Reason::ProviderKey => &mut self.provider_key,
            Reason::WebToken => &mut self.web_token,
            Reason::SecretAssignment => &mut self.secret_assignment,
            Reason::PrivateKey => &mut self.private_key,
            Reason::Login => &mut self.login,
            Reason::ConfiguredSecret => &mut self.configured_secret,
        } += replaced as u64;
    }
}

/// Lists the counts that are not zero: `api_key_assignment=1 bearer_token=2`.
impl fmt::Display for RedactionCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("structured_credential", self.structured_credential),
            ("authorization_header", self.authorization_header),
            ("api_key_assignment", self.api_key_assignment),
            ("bearer_token", self.bearer_token),
            ("provider_key", self.provider_key),
            ("web_token", self.web_token),
            ("secret_assignment", self.secret_assignment),
            ("private_key", self.private_key),
            ("login", self.login),
            ("configured_secret", self.configured_secret),
        ];
        let mut separator = "";
        for (name, count) in all.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "{separator}{name}={count}")?;
            separator = " ";
        }
        Ok(())
    }
}

impl AddAssign for RedactionCounts {
    fn add_assign(&mut self, other: Self) {
        self.structured_credential += other.structured_credential;
        self.authorization_header += other.authorization_header;
        self.api_key_assignment += other.api_key_assignment;
        self.bearer_token += other.bearer_token;
        self.provider_key += other.provider_key;
        self.web_token += other.web_token;
        self.secret_assignment += other.secret_assignment;
        self.private_key += other.private_key;
        self.login += other.login;
        self.configured_secret += other.configured_secret;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_listed_by_reason() {
        let counts = RedactionCounts {
            bearer_token: 2,
            login: 1,
            ..RedactionCounts::default()
        };
        assert_eq!(counts.to_string(), "bearer_token=2 login=1");
        assert_eq!(RedactionCounts::default().to_string(), "");
    }
}
