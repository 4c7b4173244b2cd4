//! Converts a tool's arguments to its question.

mod opening;
mod overview;
mod report;
mod search;
mod taking;

use rmcp::model::JsonObject;
use serde_json::Value;
use svc_model::endpoint::{Endpoint, Parameter, Place};
use svc_model::evidence::Reference;
use svc_model::field::{FieldError, Step};
use svc_model::identity::Authority;
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::limit::{CONTEXT_REPLY_BYTES_HIGH, REQUEST_MEMORY_BYTES_MAX};
use svc_model::problem::{Detail, Problem, QueryFault};
use svc_model::request::{Incoming, Refusal as Unread, Request};
use svc_model::time::Instant;

pub(crate) use self::opening::{TEXT_BYTES_MAX, exact, opening, reading};
pub(crate) use self::overview::{SESSIONS_MAX, overview};
pub(crate) use self::report::{report, spend};
pub(crate) use self::search::{list, search};
use crate::answer::Listed;
use crate::page::Page;
use crate::refusal::ToolRefusal;
use crate::schema::VERSION;
use crate::tool::{Question, Tool};

/// Who calls a tool, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolCaller {
    pub(crate) authority: Authority,
    pub(crate) now: Instant,
}

impl ToolCaller {
    pub(crate) fn is_operator(&self) -> bool {
        self.authority == Authority::Operator
    }
}

/// What an answer shows of a reply.
#[derive(Clone, Debug)]
pub(crate) enum View {
    /// All of it.
    Whole,
    /// One page of its list.
    Page(Page),
    /// Its parts, and of a single one these bytes.
    Parts(Slice),
    /// A part of a call with so many messages before and after it, which are read next.
    Around(Focus, usize),
    /// A part among its neighbours.
    Near(Focus),
    /// The beginnings of the entries of a list.
    Beginnings(Listed),
}

/// A question, and what is shown of its reply.
pub(crate) type ViewedQuestion = (Question, View);

/// A part among others, and the byte of its text at which what is shown of it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Focus {
    pub(crate) reference: Reference,
    pub(crate) offset: usize,
}

/// The bytes of a text that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// What the writer of an answer knows besides the reply.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The tool that was called, and its arguments.
    pub(crate) tool: &'static str,
    pub(crate) arguments: JsonObject,
    /// Whether the caller is an operator, whose questions go to other routes.
    pub(crate) operator: bool,
    pub(crate) view: View,
}

impl Shown {
    /// Writes the same call of the tool with another value of an argument.
    pub(crate) fn again(&self, name: &str, value: impl Into<Value>) -> String {
        let mut arguments = self.arguments.clone();
        arguments.insert(name.to_owned(), value.into());
        crate::answer::call(self.tool, arguments)
    }
}

/// What a call of a tool asks.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) shown: Shown,
    /// What was ignored, as a sentence.
    pub(crate) ignored: Option<String>,
}

/// Reads a tool's arguments. An argument that the tool does not have is ignored, because some clients
/// add one of their own to every tool, and the answer says so. Evidence is opened through the routes
/// that the caller's authority allows.
///
/// # Errors
///
/// If the arguments are not valid for the tool.
pub(crate) fn read(
    tool: &'static Tool,
    mut arguments: JsonObject,
    caller: &ToolCaller,
) -> Result<Asked, ToolRefusal> {
    // Some clients send null for every argument that they leave out.
    arguments.retain(|_, value| !value.is_null());
    let ignored = ignored(tool, &mut arguments);
    match (tool.ask)(arguments.clone(), caller) {
        Ok((question, view)) => Ok(Asked {
            question,
            shown: Shown {
                tool: tool.name,
                arguments,
                operator: caller.is_operator(),
                view,
            },
            ignored,
        }),
        Err(refusal) => Err(match ignored {
            Some(ignored) => ToolRefusal {
                message: format!("{}; {ignored}", refusal.message),
                ..refusal
            },
            None => refusal,
        }),
    }
}

/// Reads a question that is sent as a body, with as much room for the reply as there can be: what is
/// shown of it is shortened here.
///
/// # Errors
///
/// If the arguments are not valid for the route.
pub(crate) fn of_body<R: Request>(
    mut arguments: JsonObject,
    question: fn(R) -> Question,
) -> Result<ViewedQuestion, ToolRefusal> {
    let room = arguments.entry("max_bytes");
    room.or_insert_with(|| CONTEXT_REPLY_BYTES_HIGH.into());
    Ok((question(body(arguments)?), View::Whole))
}

/// Reads a question that is sent as the parameters of a route.
///
/// # Errors
///
/// If the arguments are not valid for the route.
pub(crate) fn of_route<E: Endpoint>(
    arguments: JsonObject,
    question: fn(E::Request) -> Question,
) -> Result<ViewedQuestion, ToolRefusal> {
    Ok((question(parameters::<E>(arguments)?), View::Whole))
}

/// Reads a request that is sent as a body.
fn body<R: Request>(mut arguments: JsonObject) -> Result<R, ToolRefusal> {
    arguments.insert(VERSION.to_owned(), 1.into());
    let body = Value::Object(arguments).to_string();
    request(&Object::new(), &Object::new(), body.as_bytes())
}

/// Reads a request that is sent as query parameters.
fn queried<R: Request>(arguments: JsonObject) -> Result<R, ToolRefusal> {
    let mut query = Object::new();
    for (name, value) in arguments {
        query.insert(name.clone(), text(&name, value)?);
    }
    request(&Object::new(), &query, b"")
}

/// Reads a request that is sent as the parameters of a route.
fn parameters<E: Endpoint>(arguments: JsonObject) -> Result<E::Request, ToolRefusal> {
    let (mut path, mut query) = (Object::new(), Object::new());
    for (name, value) in arguments {
        let in_path =
            |parameter: &Parameter| parameter.name == name && parameter.place == Place::Path;
        let place = if E::PARAMETERS.iter().any(in_path) {
            &mut path
        } else {
            &mut query
        };
        place.insert(name.clone(), text(&name, value)?);
    }
    for parameter in E::PARAMETERS {
        let given = path.contains_key(parameter.name) || query.contains_key(parameter.name);
        if parameter.required && !given {
            return Err(ToolRefusal::invalid(format!(
                "{} is missing",
                parameter.name
            )));
        }
    }
    request(&path, &query, b"")
}

fn request<R: Request>(path: &Object, query: &Object, body: &[u8]) -> Result<R, ToolRefusal> {
    let memory = NodeBudget::new(REQUEST_MEMORY_BYTES_MAX);
    let headers = Object::new();
    let incoming = Incoming {
        path,
        query,
        headers: &headers,
        body,
        memory: &memory,
    };
    R::read(&incoming).map_err(refusal)
}

/// Returns a parameter as text, as it stands in a URL. Agents write numbers and booleans as JSON
/// values.
fn text(name: &str, value: Value) -> Result<Json, ToolRefusal> {
    match value {
        Value::String(text) => Ok(text.into()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(ToolRefusal::invalid(format!("{name} must be a string")))
        }
    }
}

/// Removes the arguments that the tool's schema does not declare, and says which. An argument is
/// repeated only if it is a plain name.
fn ignored(tool: &Tool, arguments: &mut JsonObject) -> Option<String> {
    let schema = tool.definition().input_schema;
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut unknown = Vec::new();
    arguments.retain(|name, _| {
        let is_known = properties.is_some_and(|known| known.contains_key(name));
        if !is_known {
            unknown.push(name.clone());
        }
        is_known
    });
    if unknown.is_empty() {
        return None;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = |name: &&String| name.len() <= 64 && name.bytes().all(plain);
    let named: Vec<&str> = unknown
        .iter()
        .filter(is_plain)
        .take(8)
        .map(|n| &**n)
        .collect();
    let named = match (named.len(), unknown.len() - named.len()) {
        (0, _) => "others".to_owned(),
        (_, 0) => named.join(", "),
        _ => format!("{} and others", named.join(", ")),
    };
    let names = properties.into_iter().flat_map(JsonObject::keys);
    let names: Vec<&str> = names.map(String::as_str).collect();
    let names = names.join(", ");
    Some(format!("ignored arguments: {named}; the tool has {names}"))
}

fn refusal(unread: Unread) -> ToolRefusal {
    let code = match &unread {
        Unread::Query(fault) => QueryFault::as_str(*fault),
        Unread::OverBudget => "too_large",
        Unread::Malformed { .. }
        | Unread::Form
        | Unread::NotAnObject
        | Unread::LogsNotAnObject
        | Unread::Invalid(_) => "invalid",
    };
    let problem = Problem::from(unread);
    let advice = problem.advice().agent();
    let message = match problem.body().detail {
        Detail::Text(text) => text.into_owned(),
        Detail::Fields(fields) => {
            let fields: Vec<String> = fields.iter().map(field).collect();
            fields.join("; ")
        }
        Detail::Declined(_) | Detail::Code(_) => String::new(),
    };
    ToolRefusal {
        code: code.to_owned(),
        advice,
        ..ToolRefusal::invalid(message)
    }
}

/// Describes what is wrong with an argument, without the part of the request that it belongs to.
fn field(error: &FieldError) -> String {
    let steps = error.loc.iter().skip(1).map(|step| match step {
        Step::Index(index) => index.to_string(),
        Step::Name(name) => name.escape_debug().to_string(),
    });
    let place: Vec<String> = steps.collect();
    format!("{} {}", place.join("."), error.msg)
        .trim_start()
        .to_owned()
}

#[cfg(test)]
mod tests;
