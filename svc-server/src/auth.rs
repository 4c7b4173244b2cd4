//! Identifies callers: bearer tokens and what they allow, and the forge's signature.
//!
//! A named token is looked up when the head is read (`confirmed`). A context route begins with the
//! grants that an earlier request read (`assumed`) and looks the token up only when it refuses: a
//! revoked token is 401 whatever else is wrong.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use svc_engine::engine::Engine;
use svc_engine::error::Error;
use svc_engine::read::TokenGrants;
use svc_model::endpoint::Access;
use svc_model::grant::TokenName;
use svc_model::identity::Authority;
use svc_model::problem::{Problem, RequiredAuthority};

use crate::body::BodyUse;
use crate::settings::Settings;
use crate::signature::{Check, WebhookKeys};

/// The sender of a request, as far as its head shows.
pub(crate) enum Sender {
    /// Anybody: the route is open.
    Anybody,
    /// The bearer of a token, or nobody if the token is unknown or revoked.
    Bearer(Option<Caller>),
    /// The bearer of a token that may be revoked, when the store does not answer.
    Unconfirmed(Problem),
    /// Whoever signed the body, or nobody if the signature has no valid form.
    Signer(Option<Check>),
}

impl Sender {
    pub(crate) fn of(
        access: Access,
        tokens: &Tokens,
        webhook_keys: &WebhookKeys,
        headers: &HeaderMap,
    ) -> Self {
        match access {
            Access::Open => Self::Anybody,
            Access::Signature => Self::Signer(webhook_keys.check(headers)),
            Access::Any
            | Access::Ingest
            | Access::Operator
            | Access::Context(_)
            | Access::Search => Self::Bearer(tokens.caller(headers).cloned()),
        }
    }

    /// Reads from the store what is granted to the bearer of a named token, and whether the token
    /// is revoked. For other senders there is nothing to read.
    pub(crate) async fn confirmed(self, engine: &Engine) -> Self {
        let Self::Bearer(Some(mut caller)) = self else {
            return self;
        };
        if let Rights::Named(token) = &caller.rights {
            caller.rights = match engine.token_grants(token.clone()).await {
                Ok(grants) => Rights::Granted(grants),
                Err(Error::TokenRevoked) => return Self::Bearer(None),
                Err(error) => return Self::Unconfirmed(error.into()),
            };
        }
        Self::Bearer(Some(caller))
    }

    /// As [`Sender::confirmed`], for routes that check the grants again for every answer, so the
    /// grants of the last check are enough to begin with. Returns the token that is not confirmed
    /// yet. It must be confirmed before anything is refused.
    pub(crate) async fn assumed(mut self, engine: &Engine) -> (Self, Option<TokenName>) {
        if let Self::Bearer(Some(caller)) = &mut self
            && let Rights::Named(token) = &caller.rights
            && let Some(grants) = engine.latest_grants(token)
        {
            let token = token.clone();
            caller.rights = Rights::Granted(grants);
            return (self, Some(token));
        }
        (self.confirmed(engine).await, None)
    }

    /// Returns the caller, if the head alone identifies one.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Bearer(caller) => caller.as_ref(),
            Self::Anybody | Self::Unconfirmed(_) | Self::Signer(_) => None,
        }
    }

    /// Returns what to do with the body. A stranger's body is only counted, so that a flood of them
    /// costs no memory. Bodies on open routes mean nothing, and are only counted too.
    pub(crate) fn body_use(&mut self) -> BodyUse<'_> {
        match self {
            Self::Bearer(Some(_)) => BodyUse::Bytes,
            Self::Anybody | Self::Bearer(None) | Self::Unconfirmed(_) | Self::Signer(None) => {
                BodyUse::Nothing
            }
            Self::Signer(Some(check)) => BodyUse::Unverified(check),
        }
    }

    /// Identifies the sender once the body is complete. Returns the caller if the route requires a
    /// token.
    pub(crate) fn identify(self) -> Result<Option<Caller>, Problem> {
        match self {
            Self::Anybody => Ok(None),
            Self::Bearer(Some(caller)) => Ok(Some(caller)),
            Self::Bearer(None) => Err(Problem::Unauthorized),
            Self::Unconfirmed(problem) => Err(problem),
            Self::Signer(check) => {
                let signed = check.is_some_and(Check::holds);
                signed.then_some(None).ok_or(Problem::InvalidSignature)
            }
        }
    }
}

/// A caller whose token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) authority: Authority,
    pub(crate) client_id: String,
    pub(crate) rights: Rights,
}

/// The Sessions that a caller may read through the context routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The Sessions in the settings.
    Configured,
    /// The Sessions that are granted to the token's name, which the store must be asked for.
    Named(TokenName),
    /// The Sessions that are granted to the token.
    Granted(Arc<TokenGrants>),
}

/// The configured tokens, as digests. The tokens themselves are not kept.
pub(crate) struct Tokens(Vec<([u8; 32], Caller)>);

impl Tokens {
    pub(crate) fn of(settings: &Settings) -> Self {
        let mut tokens = Vec::new();
        let mut add = |secret: &str, authority, client_id: &str, rights| {
            // In development mode, a secret may be empty. It then matches nothing.
            if !secret.is_empty() {
                let digest = Sha256::digest(secret.as_bytes()).into();
                tokens.push((
                    digest,
                    Caller {
                        authority,
                        client_id: client_id.to_owned(),
                        rights,
                    },
                ));
            }
        };
        add(
            settings.operator_token.expose_secret(),
            Authority::Operator,
            "operator",
            Rights::Configured,
        );
        let configured = Rights::Configured;
        if let Some(token) = &settings.retrieval_token {
            let token = token.expose_secret();
            add(token, Authority::Retrieval, "retrieval", configured.clone());
        }
        for (name, token) in &settings.retrieval_tokens {
            let rights = Rights::Named(name.clone());
            add(
                token.expose_secret(),
                Authority::Retrieval,
                name.as_str(),
                rights,
            );
        }
        for (client, token) in &settings.ingest_tokens {
            let token = token.expose_secret();
            add(token, Authority::Ingest, client, configured.clone());
        }
        Self(tokens)
    }

    /// Returns the caller of a request.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<&Caller> {
        let header = headers.get(header::AUTHORIZATION)?.as_bytes();
        let space = header.iter().position(|byte| *byte == b' ')?;
        let (scheme, token) = header.split_at(space);
        let token = token.trim_ascii();
        if !scheme.eq_ignore_ascii_case(b"bearer") || token.is_empty() {
            return None;
        }
        self.bearer(token)
    }

    /// Returns the bearer of a token. Every configured token is compared, even after a match.
    pub(crate) fn bearer(&self, token: &[u8]) -> Option<&Caller> {
        let presented: [u8; 32] = Sha256::digest(token).into();
        let mut caller = None;
        for (digest, known) in &self.0 {
            if bool::from(digest.ct_eq(&presented)) {
                caller = Some(known);
            }
        }
        caller
    }
}

/// Checks that a caller may use a route.
pub(crate) fn authorize(access: Access, caller: &Caller) -> Result<(), Problem> {
    let (allowed, required) = match (access, caller.authority) {
        (Access::Open | Access::Any | Access::Signature, _) | (_, Authority::Operator) => {
            return Ok(());
        }
        (Access::Ingest, authority) => (authority == Authority::Ingest, RequiredAuthority::Ingest),
        (Access::Operator, _) => (false, RequiredAuthority::Operator),
        (Access::Context(_) | Access::Search, authority) => (
            authority == Authority::Retrieval,
            RequiredAuthority::Retrieval,
        ),
    };
    if allowed {
        Ok(())
    } else {
        Err(Problem::Forbidden(required))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn tokens() -> Tokens {
        let caller = Caller {
            authority: Authority::Operator,
            client_id: "operator".to_owned(),
            rights: Rights::Configured,
        };
        Tokens(vec![(Sha256::digest(b"right").into(), caller)])
    }

    fn known(header: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(header));
        tokens().caller(&headers).is_some()
    }

    #[test]
    fn the_scheme_ignores_case_and_extra_blanks() {
        for header in ["Bearer right", "bearer right", "BEARER    right  "] {
            assert!(known(header), "{header}");
        }
        for header in [
            "Bearer wrong",
            "Bearer right x",
            "Basic right",
            "right",
            "Bearer ",
            "Bearer",
        ] {
            assert!(!known(header), "{header}");
        }
        assert!(tokens().caller(&HeaderMap::new()).is_none());
    }
}
