//! An agent: a client of the Model Context Protocol on either transport.

use harness::server::{Backend, Configuration, Server};
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, ProtocolVersion};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::Value;
use tokio::runtime::Runtime;

/// How an agent reaches the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Through `svc mcp`.
    Stdio,
    /// The server's own endpoint.
    Http,
}

pub(crate) const TRANSPORTS: [Transport; 2] = [Transport::Stdio, Transport::Http];

/// Returns a configuration that serves the protocol, with a grant of these Sessions.
pub(super) fn serving(sessions: &[&str]) -> Configuration {
    let mut configuration = Configuration::granting(sessions);
    enable(&mut configuration);
    configuration
}

pub(super) fn enable(configuration: &mut Configuration) {
    let variables = &mut configuration.variables;
    variables.insert("SVC_ENABLE_MCP".into(), "true".into());
}

/// Starts a server that serves the protocol, or returns `None` if the backend is skipped in this
/// run.
pub(super) fn start(backend: Backend, sessions: &[&str]) -> Option<Server> {
    Server::start(backend, &serving(sessions))
}

/// A connected agent. Its program, if it has one, ends with it.
pub(crate) struct Agent {
    running: RunningService<RoleClient, ()>,
    _program: Option<tokio::process::Child>,
    // Dropped last, because the others need it.
    runtime: Runtime,
}

impl Agent {
    /// Connects with the newest revision that both sides know.
    pub(crate) fn connect(server: &Server, transport: Transport, token: &str) -> Self {
        Self::speaking(server, transport, token, &ProtocolVersion::LATEST)
    }

    /// Connects with one revision of the protocol.
    pub(super) fn speaking(
        server: &Server,
        transport: Transport,
        token: &str,
        version: &ProtocolVersion,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let lifecycle = if version.has_initialize() {
            ClientLifecycleMode::Initialize
        } else {
            ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            }
        };
        let (running, program) = runtime.block_on(async {
            match transport {
                Transport::Http => {
                    let url = format!("{}/mcp", server.base_url());
                    let config = StreamableHttpClientTransportConfig::with_uri(url);
                    let config = config.auth_header(token);
                    let transport = StreamableHttpClientTransport::from_config(config);
                    let running = ().serve_with_lifecycle(transport, lifecycle).await;
                    (running.expect("a connection over HTTP"), None)
                }
                Transport::Stdio => {
                    let mut program = tokio::process::Command::from(server.shell());
                    program.env("SVC_TOKEN", token).arg("mcp");
                    program.stdin(std::process::Stdio::piped());
                    program.stdout(std::process::Stdio::piped());
                    program.kill_on_drop(true);
                    let mut program = program.spawn().expect("svc starts");
                    let transport = (
                        program.stdout.take().expect("its output"),
                        program.stdin.take().expect("its input"),
                    );
                    let running = ().serve_with_lifecycle(transport, lifecycle).await;
                    (running.expect("a connection to svc mcp"), Some(program))
                }
            }
        });
        Self {
            running,
            _program: program,
            runtime,
        }
    }

    /// Returns the protocol version that the service reported.
    pub(super) fn version(&self) -> ProtocolVersion {
        let info = self.running.peer_info().expect("what the service is");
        info.protocol_version.clone()
    }

    /// Returns the tools as listed.
    pub(super) fn tools(&self) -> Vec<Value> {
        let tools = self.runtime.block_on(self.running.list_all_tools());
        let tools = tools.expect("the tools").into_iter();
        tools
            .map(|tool| serde_json::to_value(tool).expect("JSON"))
            .collect()
    }

    /// Calls a tool.
    pub(super) fn call(&self, name: &str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        self.try_call(name, arguments)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(super) fn try_call(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, rmcp::ServiceError> {
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        self.runtime.block_on(self.running.call_tool(request))
    }

    /// Calls a tool that must not refuse, and returns its structured result.
    pub(crate) fn structured(&self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments);
        assert_ne!(result.is_error, Some(true), "{name}: {}", text(&result));
        result.structured_content.expect("a structured result")
    }

    /// Calls a tool that must not refuse, and returns what the model reads.
    pub(crate) fn answer(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments);
        assert_ne!(result.is_error, Some(true), "{name}: {}", text(&result));
        text(&result)
    }

    /// Calls a tool that must refuse, and returns the refusal in structured form.
    pub(super) fn refused(&self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments);
        assert_eq!(result.is_error, Some(true), "{name}: {}", text(&result));
        assert_eq!(result.structured_content, None);
        let meta = result.meta.clone().expect("a refusal in parts");
        let parts = meta.0.get("svc/refusal").cloned().expect("a refusal");
        let message = text(&result);
        for part in ["code", "hint"] {
            assert!(
                message.contains(parts[part].as_str().expect(part)),
                "{message}"
            );
        }
        parts
    }

    /// Reads a resource, and returns its text.
    pub(super) fn read(&self, uri: &str) -> Result<String, rmcp::ServiceError> {
        let request = rmcp::model::ReadResourceRequestParams::new(uri);
        let read = self.runtime.block_on(self.running.read_resource(request))?;
        let read = serde_json::to_value(read).expect("JSON");
        assert_eq!(read["contents"][0]["mimeType"], "application/json");
        let text = read["contents"][0]["text"].as_str().expect("a text");
        Ok(text.to_owned())
    }

    /// Returns the resources as listed.
    pub(super) fn resources(&self) -> Vec<Value> {
        let resources = self.runtime.block_on(self.running.list_all_resources());
        let resources = resources.expect("the resources").into_iter();
        resources
            .map(|resource| serde_json::to_value(resource).expect("JSON"))
            .collect()
    }

    /// Returns the templates of resource addresses.
    pub(super) fn templates(&self) -> Vec<String> {
        let templates = self
            .runtime
            .block_on(self.running.list_all_resource_templates());
        let templates = templates.expect("the templates").into_iter();
        templates.map(|template| template.uri_template).collect()
    }
}

/// Returns the text of a result.
pub(super) fn text(result: &CallToolResult) -> String {
    let content = serde_json::to_value(&result.content).expect("JSON");
    let blocks = content.as_array().expect("blocks").iter();
    blocks
        .filter_map(|block| block["text"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}
