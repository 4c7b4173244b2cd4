//! The service that a command asks.

use std::net::IpAddr;

use secrecy::ExposeSecret as _;
use svc_client::{Client, Denial, ErrorKind, SecretString, environment};
use svc_model::field::Violations;
use svc_model::ingest::GatewayProvider;
use svc_model::problem::{Advice, Problem, ReportBound};
use svc_model::version::SERVICE_VERSION;

use crate::credentials::{Credentials, Role};
use crate::error::{CommandError, chain};
use crate::options::ServiceOptions;
use crate::output::{Output, escape, quote};

/// Runs a command's future to its end.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(future)
}

/// Returns a client for the service that the options, the environment or the last login name, or
/// else for the service of this machine.
///
/// Its token comes from the environment, or else from `svc login`, or else from the secrets that
/// this machine's service generated. A generated token is sent only to that service.
pub(crate) fn client(options: &ServiceOptions) -> Result<Client, CommandError> {
    client_for(options, Role::Operator)
}

/// Returns a client, as [`client`] does, with a token for this role.
pub(crate) fn client_for(options: &ServiceOptions, role: Role) -> Result<Client, CommandError> {
    let url = url(options)?;
    if let Some(token) = environment::token()? {
        return Ok(connect(url, token)?);
    }
    stored(&url, &Credentials::load()?, role)
}

/// Returns a client for the service at this URL, with its stored token.
pub(crate) fn stored_client(url: &str, role: Role) -> Result<Client, CommandError> {
    stored(url, &Credentials::load()?, role)
}

/// Returns the token for the service at this URL: the environment's, if the service is the one that
/// is meant, or else the stored one.
pub(crate) fn token(
    url: &str,
    is_meant: bool,
    role: Role,
) -> Result<Option<SecretString>, CommandError> {
    if is_meant && let Some(token) = environment::token()? {
        return Ok(Some(token));
    }
    let stored = stored_token(url, &Credentials::load()?, role);
    Ok(stored.map(|(_, token)| token))
}

/// Returns the stored or generated token for a service, with the URL that it is for.
fn stored_token(
    url: &str,
    credentials: &Credentials,
    role: Role,
) -> Option<(String, SecretString)> {
    if let Some(token) = credentials.token(url, role) {
        return Some((url.to_owned(), token));
    }
    let url = svc_server::as_local(url)?;
    let generated = || {
        svc_server::local_credentials().map(|local| match role {
            Role::Operator => local.operator_token,
            Role::Capture => local.ingest_token,
        })
    };
    let token = credentials.token(&url, role).or_else(generated)?;
    Some((url, token))
}

fn stored(url: &str, credentials: &Credentials, role: Role) -> Result<Client, CommandError> {
    if let Some((url, token)) = stored_token(url, credentials, role) {
        return Ok(connect(url, token)?);
    }
    let local = svc_server::local_credentials();
    // An invalid URL is reported first, because no login would accept it.
    Client::builder(url).connection_from_env()?.build()?;
    let error = CommandError::refused("no_token", "no token for the service")
        .hint("set SVC_TOKEN, or SVC_TOKEN_FILE to a file that contains it")
        .hint(format!("or store one: {}", login(url, role)));
    Err(match local {
        Some(local) => error.hint(format!(
            "the tokens of the service on this machine are in {}",
            escape(&local.file.display().to_string())
        )),
        // Another server on the same store has other secrets.
        None if svc_server::running_here().is_some() => error,
        None => error
            .hint("to start a service on this machine, which generates its own tokens: svc serve"),
    })
}

/// Returns whether the environment's token is the one that was generated for agents. A server
/// accepts it only once Sessions are granted to it.
pub(crate) fn is_unused_token() -> bool {
    let given = environment::token().ok().flatten();
    given
        .zip(svc_server::local_credentials())
        .is_some_and(|(given, local)| {
            given.expose_secret() == local.retrieval_token.expose_secret()
        })
}

/// Returns a URL without what precedes an @, which may be a password.
pub(crate) fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://(hidden)@{rest}"),
        (None, Some((_, rest))) => format!("(hidden)@{rest}"),
        (_, None) => url.to_owned(),
    }
}

/// Returns the command that stores a token for the service at this URL.
pub(crate) fn login(url: &str, role: Role) -> String {
    let option = match role {
        Role::Operator => "",
        Role::Capture => " --capture",
    };
    // What precedes an @ may be a password.
    let url = if url.contains('@') {
        "URL".into()
    } else {
        quote(url)
    };
    format!("svc login {url}{option}")
}

/// Returns a client without a token for the selected service, whose URL is valid.
pub(crate) fn anonymous(options: &ServiceOptions) -> Result<Client, CommandError> {
    let builder = Client::builder(url(options)?).connection_from_env()?;
    Ok(builder.build()?)
}

/// Returns the URL of the selected service, see [`url_with`]. Credentials are not loaded if a URL
/// is given, because a machine that only sends may have no home folder.
fn url(options: &ServiceOptions) -> Result<String, CommandError> {
    match given(options)? {
        Some(url) => Ok(url),
        None => url_with(options, &Credentials::load()?),
    }
}

/// Returns the URL of the selected service: the given one, or else that of the last login, or else
/// that of the service on this machine.
pub(crate) fn url_with(
    options: &ServiceOptions,
    credentials: &Credentials,
) -> Result<String, CommandError> {
    Ok(named(options, credentials)?.unwrap_or_else(svc_server::local_url))
}

/// Returns the given URL, or else that of the last login.
pub(crate) fn named(
    options: &ServiceOptions,
    credentials: &Credentials,
) -> Result<Option<String>, CommandError> {
    Ok(given(options)?.or_else(|| credentials.current().map(str::to_owned)))
}

/// Returns a client for the service at this URL.
pub(crate) fn connect(url: String, token: SecretString) -> Result<Client, svc_client::BuildError> {
    Client::builder(url)
        .connection_from_env()?
        .token(token)
        .user_agent_suffix(format!("svc-cli/{SERVICE_VERSION}"))
        .build()
}

/// Warns if the service's version differs from this program's.
pub(crate) fn warn_of_skew(version: &str, output: &mut Output) {
    if version != SERVICE_VERSION {
        output.warning(&format!(
            "the service is version {version}, this program is {SERVICE_VERSION}"
        ));
    }
}

/// Returns the URL from the command line or the environment. An empty one counts as unset. One that
/// cannot be read is an error, because the token is not meant for any other service.
pub(crate) fn given(options: &ServiceOptions) -> Result<Option<String>, CommandError> {
    let url = options.url.as_deref().unwrap_or_default().trim();
    if !url.is_empty() {
        return Ok(Some(spelled_out(url)));
    }
    Ok(environment::url()?.map(|url| spelled_out(&url)))
}

/// Completes a URL: a bare loopback address, such as `localhost:8301`, becomes a plain HTTP URL.
pub(crate) fn spelled_out(text: &str) -> String {
    let text = text.trim();
    let host = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    if host == "localhost" || is_loopback {
        format!("http://{text}")
    } else {
        text.to_owned()
    }
}

impl From<svc_client::Error> for CommandError {
    fn from(error: svc_client::Error) -> Self {
        let message = match error.kind() {
            // Only for these kinds do the causes add anything.
            ErrorKind::Unwritable
            | ErrorKind::Connect
            | ErrorKind::Transport
            | ErrorKind::Unreadable => chain(&error),
            _ => error.to_string(),
        };
        let refused = Self::refused(error.kind().code(), message)
            .of_request(error.request_id())
            .advised(advice(error.kind()));
        if *error.kind() == ErrorKind::Unauthorized && is_unused_token() {
            return refused.hint(
                "this token was generated for agents, and is valid once Sessions are granted to it: \
                 SVC_RETRIEVAL_SESSION_IDS='[\"SESSION\"]' svc serve",
            );
        }
        refused
    }
}

/// Returns what to do about an error from a service.
pub(crate) fn advice(kind: &ErrorKind) -> Advice {
    let problem = match kind {
        ErrorKind::Malformed => Problem::MalformedRequest,
        ErrorKind::BodyIncomplete => Problem::BodyIncomplete,
        // The advice is the same for every gateway.
        ErrorKind::UnsupportedProvider => Problem::UnsupportedProvider(GatewayProvider::Unknown),
        ErrorKind::Unauthorized => Problem::Unauthorized,
        ErrorKind::Forbidden(Denial::Authority(authority)) => Problem::Forbidden(*authority),
        ErrorKind::Forbidden(Denial::OutsideGrant) => Problem::OutsideGrant,
        ErrorKind::NotFound => Problem::NotFound,
        ErrorKind::RetrievalDisabled => Problem::RetrievalDisabled,
        ErrorKind::Conflict(code) => Problem::Conflict(*code),
        ErrorKind::Declined(decline) => Problem::Declined(decline.clone()),
        ErrorKind::SessionBound(bound) => Problem::SessionBound(*bound),
        ErrorKind::ReportEvidence => Problem::ReportBound(ReportBound::Evidence),
        ErrorKind::Oversize => Problem::ReplyTooLarge,
        ErrorKind::TooLarge => Problem::BodyTooLarge,
        ErrorKind::Invalid(_) => Problem::Invalid(Violations::default()),
        ErrorKind::Query(fault) => Problem::Query(*fault),
        ErrorKind::Busy => Problem::CapacityExceeded,
        ErrorKind::Deadline => Problem::DeadlineExceeded,
        ErrorKind::StoreUnavailable => Problem::StoreUnavailable,
        // The rest are not answers of the service.
        ErrorKind::Connect => {
            return Advice::LATER
                .in_shell("Is the service running? To start one on this machine: `svc serve`.");
        }
        ErrorKind::TimedOut | ErrorKind::Transport | ErrorKind::Unavailable { .. } => {
            return Advice::LATER;
        }
        ErrorKind::Forbidden(_) => return Advice::DENIED,
        _ => return Advice::NONE,
    };
    problem.advice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_a_url_is_not_shown() {
        for (url, shown) in [
            (
                "https://u:p@ss@svc.example/a",
                "https://(hidden)@svc.example/a",
            ),
            ("u:p@svc.example", "(hidden)@svc.example"),
            ("https://svc.example", "https://svc.example"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn a_bare_local_address_is_completed() {
        for (text, expected) in [
            ("localhost", "http://localhost"),
            (" localhost:8301 ", "http://localhost:8301"),
            ("127.0.0.1:8301", "http://127.0.0.1:8301"),
            ("[::1]:8301", "http://[::1]:8301"),
            ("http://localhost:8301", "http://localhost:8301"),
            ("localhost.example:8301", "localhost.example:8301"),
            ("svc.example", "svc.example"),
        ] {
            assert_eq!(spelled_out(text), expected);
        }
    }
}
