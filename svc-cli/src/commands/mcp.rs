mod stdio;

use std::io::{self, BufReader};
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use svc_client::{Client, Error};
use svc_mcp::{Ask, McpServer, Service, ToolRefusal};
use svc_model::endpoint::Endpoint;
use svc_model::identity::Authority;
use svc_model::problem::Advice;
use tokio::sync::OnceCell;

use self::stdio::Stdio;
use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    service: ServiceOptions,
}

impl Mcp {
    /// Serves until the input ends. Standard output belongs to the protocol.
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let asker = Asker {
            client: service::client(&self.service)?,
            authority: OnceCell::new(),
        };
        let (stdio, writing) = Stdio::new(BufReader::new(io::stdin()), io::stdout());
        let served = service::block_on(async {
            let server = McpServer::new(Arc::new(asker));
            let running = match server.serve(stdio).await {
                Ok(running) => running,
                // An agent that only checks whether the program starts, and sends nothing.
                Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
                Err(error) => return Err(broken(&error)),
            };
            let ended = running.waiting().await;
            ended.map(drop).map_err(|error| broken(&error))
        });
        // An agent that no longer reads is gone, which is not a failure.
        let _ignored = writing.end();
        served
    }
}

fn broken(error: &dyn std::error::Error) -> CommandError {
    CommandError::refused(
        "protocol",
        format!(
            "the agent does not speak the Model Context Protocol: {}",
            crate::error::chain(error)
        ),
    )
    .hint("agents start this command themselves; to set one up: svc install mcp-claude-code")
}

/// Asks a service over HTTP.
struct Asker {
    client: Client,
    /// The token's authority, once the service has reported it.
    authority: OnceCell<Authority>,
}

impl<E> Ask<E> for Asker
where
    E: Endpoint,
    E::Request: Send + Sync,
{
    async fn ask(&self, request: E::Request) -> Result<Bytes, ToolRefusal> {
        let reply = self.client.call_raw::<E>(&request).await;
        reply
            .map(|reply| reply.bytes)
            .map_err(|error| refusal(&error))
    }
}

impl Service for Asker {
    async fn authority(&self) -> Result<Authority, ToolRefusal> {
        let authority = self.authority.get_or_try_init(|| async {
            let identity = self.client.me().await.map_err(|error| refusal(&error))?;
            identity
                .authority
                .known()
                .copied()
                .ok_or_else(|| ToolRefusal {
                    code: "unknown_word".to_owned(),
                    status: None,
                    message: "the service is newer: update svc".to_owned(),
                    advice: Advice::NONE.agent(),
                    retry_after: None,
                })
        });
        authority.await.copied()
    }
}

/// Turns an error into a refusal for the agent.
fn refusal(error: &Error) -> ToolRefusal {
    ToolRefusal {
        code: error.kind().code().to_owned(),
        status: error.status(),
        message: error.to_string(),
        advice: service::advice(error.kind()).agent(),
        retry_after: error.retry_after(),
    }
}
