use std::io::{self, BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use svc_client::{Client, ErrorKind, SecretString, environment};
use svc_model::identity::{Authority, IdentityProbe};
use svc_model::open::Open;

use super::service;
use crate::credentials::{Credentials, Role, normalised};
use crate::error::CommandError;
use crate::output::{Output, escape};

/// The maximum length in bytes of a line that is read as a token.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;
/// How many times the command prompts for a token.
const PROMPTS_MAX: u32 = 3;
/// How long the service may take to identify a token.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The URL of the service.
    url: String,

    /// Store an ingest token, for the commands that send evidence.
    #[arg(long)]
    capture: bool,

    /// Read the token from one line of standard input.
    #[arg(long)]
    with_token: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The service whose tokens are deleted; by default that of the last login.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// A login, for programs.
#[derive(Debug, Serialize)]
struct LoggedIn {
    server: String,
    tokens: Vec<StoredToken>,
}

#[derive(Debug, Serialize)]
struct StoredToken {
    authority: Open<Authority>,
    client_id: String,
    org_id: String,
}

#[derive(Debug, Serialize)]
struct LoggedOut {
    server: String,
}

/// A token that the service has identified.
struct ProvenToken {
    role: Role,
    token: SecretString,
    probe: IdentityProbe,
}

impl Login {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        if environment::token()?.is_some() {
            return Err(CommandError::refused(
                "token_in_environment",
                "the environment sets a token, which takes precedence over stored ones",
            )
            .hint("unset SVC_TOKEN and SVC_TOKEN_FILE, and log in again"));
        }
        // Without a token at first, to check the URL before asking for a secret.
        let url = service::spelled_out(&self.url);
        let client = Client::builder(url).connection_from_env()?.build()?;
        let url = client.url().to_owned();
        let url = normalised(&url).unwrap_or(url);
        let local = svc_server::as_local(&url);
        let is_local = local.is_some();
        let url = local.unwrap_or(url);
        let proven = self.prove(&url, is_local, output)?;
        let mut credentials = Credentials::load()?;
        for ProvenToken { role, token, probe } in &proven {
            credentials.remember(&url, *role, token, probe);
        }
        credentials.save()?;
        if let Some(proven) = proven.first() {
            service::warn_of_skew(&proven.probe.version, output);
        }
        let tokens = proven.into_iter().map(|proven| StoredToken {
            authority: proven.probe.authority,
            client_id: proven.probe.client_id,
            org_id: proven.probe.org_id.to_string(),
        });
        let logged_in = LoggedIn {
            server: url,
            tokens: tokens.collect(),
        };
        output.value(&logged_in, render)
    }

    fn role(&self) -> Role {
        if self.capture {
            Role::Capture
        } else {
            Role::Operator
        }
    }

    /// Returns tokens for the service, each with the identity that the service reports for it.
    fn prove(
        &self,
        url: &str,
        is_local: bool,
        output: &mut Output,
    ) -> Result<Vec<ProvenToken>, CommandError> {
        if self.with_token {
            return Ok(vec![probe(url, self.role(), read_line(io::stdin())?)?]);
        }
        if is_local && let Some(local) = self.local(url)? {
            return Ok(local);
        }
        if !io::stdin().is_terminal() {
            return Err(CommandError::refused(
                "no_token",
                "there is no terminal to prompt for the token",
            )
            .hint(format!(
                "pass it on standard input: {} --with-token",
                service::login(url, self.role())
            )));
        }
        let mut prompts = 0;
        loop {
            prompts += 1;
            let token = rpassword::prompt_password(format!("token for {}: ", escape(url)))?;
            match probe(url, self.role(), token.trim().into()) {
                Err(error) if error.code() == "unauthorized" && prompts < PROMPTS_MAX => {
                    output.warning("the service does not know this token");
                }
                outcome => return Ok(vec![outcome?]),
            }
        }
    }

    /// Returns the tokens that this machine's service generated, if it is the service at this URL
    /// and accepts them.
    fn local(&self, url: &str) -> Result<Option<Vec<ProvenToken>>, CommandError> {
        let Some(local) = svc_server::local_credentials() else {
            return Ok(None);
        };
        let capture = (Role::Capture, local.ingest_token);
        let operator = (Role::Operator, local.operator_token);
        let tokens = if self.capture {
            vec![capture]
        } else {
            vec![operator, capture]
        };
        let proven = tokens
            .into_iter()
            .map(|(role, token)| probe(url, role, token))
            .collect::<Result<Vec<_>, _>>();
        match proven {
            Err(error) if error.code() == "unauthorized" => Ok(None),
            outcome => outcome.map(Some),
        }
    }
}

/// Asks the service to identify a token. Refuses a token whose authority does not fit the role.
fn probe(url: &str, role: Role, token: SecretString) -> Result<ProvenToken, CommandError> {
    let client = service::connect(url.to_owned(), token.clone())?.with_timeout(PATIENCE);
    let probe = service::block_on(async {
        client.me().await.map_err(|error| {
            let unknown = *error.kind() == ErrorKind::Unauthorized;
            let refused = CommandError::from(error);
            if unknown {
                CommandError::refused("unauthorized", "the service does not know this token")
            } else {
                refused
            }
        })
    })?;
    if probe.authority == role.authority() {
        return Ok(ProvenToken { role, token, probe });
    }
    let wanted = role.authority();
    let refused = CommandError::refused(
        "wrong_authority",
        format!("the token has {} authority, not {wanted}", probe.authority),
    );
    Err(match (probe.authority.known(), role) {
        (Some(Authority::Ingest), Role::Operator) => {
            let login = service::login(url, Role::Capture);
            refused.hint(format!(
                "to store it for the commands that send evidence: {login}"
            ))
        }
        (Some(Authority::Operator), Role::Capture) => {
            refused.hint("use one of the service's SVC_INGEST_TOKENS")
        }
        _ => refused.hint("an agent's token is not stored; set it in SVC_TOKEN"),
    })
}

/// Reads a token from the first line of a stream.
fn read_line(stream: impl io::Read) -> Result<SecretString, CommandError> {
    let mut line = String::new();
    io::BufReader::new(stream.take(TOKEN_BYTES_MAX)).read_line(&mut line)?;
    let token = line.trim();
    if token.is_empty() {
        return Err(CommandError::refused(
            "no_token",
            "the first line of standard input is not a token",
        ));
    }
    Ok(token.into())
}

fn render(logged_in: &LoggedIn) -> String {
    let server = escape(&logged_in.server);
    let lines = logged_in.tokens.iter().map(|token| {
        let (client, organization) = (escape(&token.client_id), escape(&token.org_id));
        let authority = &token.authority;
        format!("logged in to {server}: {authority} authority, client {client}, organization {organization}\n")
    });
    lines.collect()
}

impl Logout {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let mut credentials = Credentials::load()?;
        let given = self.server.map(|server| service::spelled_out(&server));
        let server = given.or_else(|| credentials.current().map(str::to_owned));
        let local = server.as_deref().and_then(svc_server::as_local);
        let mut named = server.into_iter().chain(local);
        let forgotten = named.find(|server| credentials.forget(server));
        let Some(server) = forgotten else {
            let error =
                CommandError::refused("not_logged_in", "no token is stored for this service");
            let servers = credentials.servers();
            return Err(servers.iter().fold(error, |error, server| {
                error.hint(format!(
                    "a token is stored for another one: svc logout --server {}",
                    escape(server)
                ))
            }));
        };
        credentials.save()?;
        output.value(&LoggedOut { server }, |logged_out| {
            format!("logged out of {}\n", escape(&logged_out.server))
        })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_token_is_read_from_the_first_line() {
        let token = read_line(&b" abc \r\nmore\n"[..]).unwrap();
        assert_eq!(token.expose_secret(), "abc");
        for nothing in [&b""[..], b"\n", b"  \nabc\n"] {
            assert_eq!(read_line(nothing).unwrap_err().code(), "no_token");
        }
    }

    #[test]
    fn each_stored_token_is_listed_without_its_value() {
        let logged_in = LoggedIn {
            server: "https://svc.example".to_owned(),
            tokens: vec![StoredToken {
                authority: Authority::Ingest.into(),
                client_id: "ci\u{1b}".to_owned(),
                org_id: "acme".to_owned(),
            }],
        };
        assert_eq!(
            render(&logged_in),
            "logged in to https://svc.example: ingest authority, client ci\\u{1b}, organization acme\n"
        );
    }
}
