//! The service that a command asks.

use svc_client::{Client, ClientBuilder, SecretString, environment};
use svc_model::version::SERVICE_VERSION;

use crate::cli::ServiceOptions;
use crate::error::CommandError;
use crate::output::escape;

/// Runs a future of a command to its end.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(future)
}

/// Returns a client of the service that the options and the environment name.
///
/// Without a URL it is the service of this machine. Without a token it is the operator token that
/// the service of this machine generated; it goes to that service only.
pub(crate) fn client(options: &ServiceOptions) -> Result<Client, CommandError> {
    let url = given(options).unwrap_or_else(|| ClientBuilder::DEFAULT_URL.to_owned());
    if let Some(token) = environment::token()? {
        return Ok(connect(url, token)?);
    }
    let local = svc_server::local_credentials();
    if let Some(local) = &local
        && url.trim_end_matches('/') == ClientBuilder::DEFAULT_URL
    {
        return Ok(connect(url, local.operator_token.clone())?);
    }
    let error = CommandError::refused("no_token", "there is no token for the service")
        .hint("set SVC_TOKEN, or SVC_TOKEN_FILE to a file that holds it");
    Err(match local {
        Some(local) => error.hint(format!(
            "the tokens of the service of this machine are in {}",
            escape(&local.file.display().to_string())
        )),
        None => error.hint("a service on this machine makes its own: svc serve"),
    })
}

/// Returns a client of the service at this URL.
pub(crate) fn connect(url: String, token: SecretString) -> Result<Client, svc_client::BuildError> {
    Client::builder(url)
        .token(token)
        .user_agent_suffix(format!("svc-cli/{SERVICE_VERSION}"))
        .build()
}

/// Returns the URL that a person gave; an empty one counts as none.
pub(crate) fn given(options: &ServiceOptions) -> Option<String> {
    let url = options.url.as_deref().unwrap_or_default().trim();
    (!url.is_empty()).then(|| url.to_owned())
}
