//! Answers the messages of the protocol.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig, Tool as Definition,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use svc_model::endpoint::GrantSessions;
use svc_model::identity::Authority;
use svc_model::json::{Json, NodeBudget};
use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use svc_model::problem::Advice;
use svc_model::query::{SessionCursor, SessionsRequest};
use svc_model::time::Instant;
use svc_model::version::SERVICE_VERSION;

use crate::REPLY_BYTES_MAX;
use crate::answer::{self, Answer, Step};
use crate::arguments::{self, Asked, ToolCaller};
use crate::refusal::ToolRefusal;
use crate::resource::{self, ResourceAddress};
use crate::tool::{INSTRUCTIONS, Question, Service, TOOLS, Tool};

/// The methods, of all revisions, that are answered. A request is read as one of these methods only
/// if its parameters fit.
const METHODS: [&str; 5] = [
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The member of `_meta` that lists values that the protocol cannot represent.
const INEXACT: &str = "svc/inexact";
/// The member of `_meta` that says how many more of these values exist than are listed.
const INEXACT_MORE: &str = "svc/inexact_more";
/// The member of `_meta` that says which arguments were ignored.
const IGNORED: &str = "svc/ignored";
/// The member of `_meta` with the cursor of the next page.
const NEXT_CURSOR: &str = "svc/next_cursor";

/// The tools and resources of a service, for one caller.
#[derive(Debug)]
pub struct McpServer<S>(Arc<S>);

impl<S> Clone for McpServer<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Service> McpServer<S> {
    /// Creates the tools of a service.
    pub fn new(service: Arc<S>) -> Self {
        Self(service)
    }

    /// Asks a tool's question and those that follow from it, and returns the answer.
    async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let answer = async {
            let authority = if tool.by_authority {
                self.0.authority().await?
            } else {
                Authority::Retrieval
            };
            let now = Instant::try_from(SystemTime::now()).unwrap_or(Instant::MAX);
            let asked = arguments::read(tool, arguments, &ToolCaller { authority, now })?;
            let ignored = asked.ignored.clone();
            let answer = self.answer(asked).await?;
            Ok(result(answer, ignored))
        };
        Ok(answer.await.unwrap_or_else(ToolRefusal::into_result))
    }

    async fn answer(&self, asked: Asked) -> Result<Answer, ToolRefusal> {
        let mut step = Step::Ask(Box::new(asked), None);
        loop {
            let (asked, otherwise) = match step {
                Step::Answer(answer) => return Ok(answer),
                Step::Ask(asked, otherwise) => (asked, otherwise),
            };
            let question = asked.question.clone();
            step = match (question.put(&*self.0).await, otherwise) {
                (Ok(reply), _) => asked.question.step(&asked.shown, parsed(&reply)?)?,
                (Err(_), Some(otherwise)) => *otherwise,
                (Err(refusal), None) => return Err(refusal),
            };
        }
    }

    async fn read(&self, uri: &str) -> Result<ReadResourceResult, ToolRefusal> {
        let place = ResourceAddress::parse(uri).ok_or_else(|| ToolRefusal {
            code: "not_found".to_owned(),
            status: Some(404),
            advice: Advice::NONE.agent(),
            ..ToolRefusal::invalid("there is no such resource")
        })?;
        let is_part = matches!(place, ResourceAddress::Part { .. });
        let operator = self.0.authority().await? == Authority::Operator;
        let question = arguments::exact(place, operator)?;
        let mut reply = parsed(&question.put(&*self.0).await?)?;
        if is_part {
            let items = reply
                .as_object_mut()
                .and_then(|body| body.remove("items"))
                .and_then(Json::into_array);
            reply = items
                .and_then(|mut items| items.pop())
                .ok_or_else(ToolRefusal::unreadable)?;
        }
        // As text it is exact, because nothing on the way parses it.
        let text = String::from_utf8_lossy(&reply.to_canonical()).into_owned();
        let contents = ResourceContents::text(text, uri).with_mime_type(resource::JSON);
        Ok(ReadResourceResult::new(vec![contents]))
    }

    /// Returns a page of the Sessions that the caller may read.
    async fn sessions(&self, cursor: Option<String>) -> Result<ListResourcesResult, ToolRefusal> {
        let request = SessionsRequest {
            cursor: cursor.map(SessionCursor::new),
            titles: true,
            ..SessionsRequest::default()
        };
        let question = Question::GrantSessions(request);
        let reply = parsed(&question.put(&*self.0).await?)?;
        let list = answer::typed::<GrantSessions>(reply)?;
        let resources = list.sessions.iter().map(resource::session).collect();
        let mut page = ListResourcesResult::with_all_items(resources);
        let next = list.next_cursor;
        page.next_cursor = next.map(|cursor| cursor.as_str().to_owned());
        Ok(page)
    }
}

/// Returns the result of a tool call.
fn result(mut answer: Answer, ignored: Option<String>) -> CallToolResult {
    let mut meta = MetaObject::new();
    if !answer.inexact.is_empty() || answer.inexact_more > 0 {
        answer.note(
            "Some values cannot be represented exactly and are replaced by the nearest text. For \
             the exact part, read its svc:// address as a resource.",
        );
        meta.0.insert(INEXACT.to_owned(), json!(answer.inexact));
    }
    if answer.inexact_more > 0 {
        let more = json!(answer.inexact_more);
        meta.0.insert(INEXACT_MORE.to_owned(), more);
    }
    if let Some(ignored) = ignored {
        answer.note(&format!("Note: {ignored}."));
        meta.0.insert(IGNORED.to_owned(), ignored.into());
    }
    if let Some(cursor) = answer.structured.get("next_cursor") {
        meta.0.insert(NEXT_CURSOR.to_owned(), cursor.clone());
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text())]);
    result.structured_content = Some(Value::Object(answer.structured));
    result.meta = (!meta.0.is_empty()).then_some(meta);
    result
}

/// Reads the body of a reply.
fn parsed(body: &Bytes) -> Result<Json, ToolRefusal> {
    if body.len() > REPLY_BYTES_MAX {
        return Err(ToolRefusal::oversize());
    }
    let memory = NodeBudget::new(REQUEST_MEMORY_BYTES_MAX);
    Json::parse_within(body, &memory).map_err(|_| ToolRefusal::unreadable())
}

/// Waits for an answer until the caller cancels.
async fn until_cancelled<T>(
    context: &RequestContext<RoleServer>,
    answer: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        answer = answer => answer,
        () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
    }
}

impl<S: Service> ServerHandler for McpServer<S> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let mut implementation = Implementation::new("svc", SERVICE_VERSION);
        implementation.title = Some("Evidence of agent work".to_owned());
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Definition> {
        Tool::named(name).map(Tool::definition)
    }

    /// Lists the tools for the caller.
    ///
    /// Lists all of them if the service cannot be asked for the caller's authority. Many clients
    /// ask once and keep the list, so a missing tool would stay missing, while one that is not for
    /// the caller refuses. Clients that know how long a list is valid ask again.
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let authority = async { Ok(self.0.authority().await) };
        let authority = until_cancelled(&context, authority).await?;
        let known = authority.is_ok();
        let authority = match authority {
            Ok(authority) => authority,
            // The service answers and refuses the caller, so no tool can do more than say so.
            Err(refusal) if matches!(refusal.status, Some(401 | 403)) => Authority::Retrieval,
            Err(_) => Authority::Operator,
        };
        let offered = TOOLS.iter().filter(|tool| tool.is_for(authority));
        let list = ListToolsResult::with_all_items(offered.map(Tool::definition).collect());
        Ok(if known {
            list
        } else {
            list.with_ttl_ms(0).with_cache_scope(CacheScope::Private)
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        until_cancelled(&context, self.call(request))
            .await
            .map(CallToolResponse::from)
    }

    /// Refuses a method that the protocol does not have, without repeating its name, and a method
    /// that it has but whose parameters do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(if METHODS.contains(&&*request.method) {
            ErrorData::invalid_params("the parameters do not fit this method", None)
        } else {
            let message = "there is no such method";
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
        })
    }

    /// Lists the Sessions that the caller may read. Whoever may read none has an empty list.
    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let answer = async {
            match self.sessions(cursor).await {
                Ok(list) => Ok(list),
                Err(refusal) if matches!(refusal.status, Some(401 | 403 | 404)) => {
                    Ok(ListResourcesResult::default())
                }
                Err(refusal) => Err(refusal.into_error(resource::SESSION)),
            }
        };
        let list = until_cancelled(&context, answer).await?;
        // It is the caller's own, and grows with each Session.
        Ok(list.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(
            resource::templates(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let answer = async {
            let read = self.read(&request.uri).await;
            read.map_err(|refused| refused.into_error(&request.uri))
        };
        until_cancelled(&context, answer)
            .await
            .map(ReadResourceResponse::from)
    }
}
