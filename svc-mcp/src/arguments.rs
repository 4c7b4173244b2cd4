//! Converts a tool's arguments to its question.

use std::num::NonZeroUsize;

use rmcp::model::JsonObject;
use serde_json::Value;
use svc_model::endpoint::{Endpoint, Parameter, Place};
use svc_model::field::{FieldError, Step};
use svc_model::identity::Authority;
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use svc_model::problem::{Detail, Problem, QueryFault};
use svc_model::request::{Incoming, Refusal as Unread, Request};

use crate::page::{CALLS, MESSAGES, Page, PagedList};
use crate::refusal::ToolRefusal;
use crate::schema::VERSION;
use crate::tool::{Question, Tool};

/// A question, and the requested page of its reply.
#[derive(Debug)]
pub(crate) struct PagedQuestion {
    pub(crate) question: Question,
    pub(crate) page: Option<(Page, PagedList)>,
    /// What was ignored, as a sentence.
    pub(crate) ignored: Option<String>,
}

impl From<Question> for PagedQuestion {
    fn from(question: Question) -> Self {
        Self {
            question,
            page: None,
            ignored: None,
        }
    }
}

/// Reads a tool's arguments. An argument that the tool does not have is ignored, because some clients
/// add one of their own to every tool, and the answer says so. Evidence is opened through the routes that the caller's authority
/// allows.
///
/// # Errors
///
/// If the arguments are not valid for the tool.
pub(crate) fn read(
    tool: &Tool,
    mut arguments: JsonObject,
    authority: Authority,
) -> Result<PagedQuestion, ToolRefusal> {
    // Some clients send null for every argument that they leave out.
    arguments.retain(|_, value| !value.is_null());
    let ignored = ignored(tool, &mut arguments);
    match (tool.ask)(arguments, authority) {
        Ok(asked) => Ok(PagedQuestion { ignored, ..asked }),
        Err(refusal) => Err(match ignored {
            Some(ignored) => ToolRefusal {
                message: format!("{}; {ignored}", refusal.message),
                ..refusal
            },
            None => refusal,
        }),
    }
}

/// Reads a question that is sent as a body.
///
/// # Errors
///
/// If the arguments are not valid for the route.
pub(crate) fn of_body<R: Request>(
    arguments: JsonObject,
    question: fn(R) -> Question,
) -> Result<PagedQuestion, ToolRefusal> {
    body(arguments).map(question).map(PagedQuestion::from)
}

/// Reads a question that is sent as the parameters of a route.
///
/// # Errors
///
/// If the arguments are not valid for the route.
pub(crate) fn of_route<E: Endpoint>(
    arguments: JsonObject,
    question: fn(E::Request) -> Question,
) -> Result<PagedQuestion, ToolRefusal> {
    parameters::<E>(arguments)
        .map(question)
        .map(PagedQuestion::from)
}

/// Reads what is to be opened.
///
/// # Errors
///
/// If the arguments are not valid, or do not go together.
pub(crate) fn opening(
    mut arguments: JsonObject,
    authority: Authority,
) -> Result<PagedQuestion, ToolRefusal> {
    let operator = authority == Authority::Operator;
    if arguments.contains_key("references") {
        if let Some(name) = ["inference_call_id", "explain", "limit", "cursor"]
            .into_iter()
            .find(|name| arguments.contains_key(*name))
        {
            return Err(ToolRefusal::invalid(format!(
                "{name} cannot be used with references"
            )));
        }
        let request = body(arguments)?;
        return Ok(PagedQuestion::from(if operator {
            Question::EvidenceReading(request)
        } else {
            Question::GrantRead(request)
        }));
    }
    let page = page(&mut arguments)?;
    let paged = if arguments.contains_key("inference_call_id") {
        MESSAGES
    } else {
        CALLS
    };
    let question = if arguments.contains_key("inference_call_id") {
        let request = queried(arguments)?;
        if operator {
            Question::EvidenceManifest(request)
        } else {
            Question::GrantManifest(request)
        }
    } else {
        if arguments.contains_key("explain") {
            return Err(ToolRefusal::invalid("explain requires inference_call_id"));
        }
        let request = queried(arguments)?;
        if operator {
            Question::EvidenceInventory(request)
        } else {
            Question::GrantInventory(request)
        }
    };
    let page = (!page.is_whole()).then_some((page, paged));
    Ok(PagedQuestion {
        page,
        ..PagedQuestion::from(question)
    })
}

fn page(arguments: &mut JsonObject) -> Result<Page, ToolRefusal> {
    let limit = match arguments.remove("limit") {
        None => None,
        Some(limit) => Some(
            limit
                .as_u64()
                .and_then(|limit| NonZeroUsize::new(usize::try_from(limit).ok()?))
                .ok_or_else(|| ToolRefusal::invalid("limit must be a positive whole number"))?,
        ),
    };
    let cursor = match arguments.remove("cursor") {
        None => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => return Err(ToolRefusal::invalid("cursor must be a string")),
    };
    Ok(Page { limit, cursor })
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
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(tool: &str, arguments: Value) -> Result<PagedQuestion, ToolRefusal> {
        let Value::Object(arguments) = arguments else {
            panic!("an object");
        };
        read(Tool::named(tool).unwrap(), arguments, Authority::Retrieval)
    }

    #[test]
    fn arguments_and_authority_decide_which_route_opens_evidence() {
        let part =
            json!({"inference_call_id": "c", "side": "input", "message_index": 0, "part_index": 0});
        for (arguments, retrieval, operator) in [
            (
                json!({"session_id": "s"}),
                "GrantInventory",
                "EvidenceInventory",
            ),
            (
                json!({"session_id": "s", "inference_call_id": "c", "limit": 3}),
                "GrantManifest",
                "EvidenceManifest",
            ),
            (
                json!({"session_id": "s", "references": [part]}),
                "GrantRead",
                "EvidenceReading",
            ),
        ] {
            for (authority, expected) in [
                (Authority::Retrieval, retrieval),
                (Authority::Operator, operator),
            ] {
                let arguments = arguments.as_object().unwrap().clone();
                let asked = opening(arguments, authority).unwrap();
                let question = format!("{:?}", asked.question);
                assert!(question.starts_with(expected), "{question}");
            }
        }
    }

    #[test]
    fn a_wrong_argument_is_refused_by_name() {
        for (tool, arguments, expected) in [
            ("find_evidence", json!({}), "query"),
            (
                "find_evidence",
                json!({"query": "a b", "max_bytes": 1}),
                "max_bytes",
            ),
            ("search_session", json!({"query": "pager"}), "session_id"),
            ("open_evidence", json!({}), "session_id"),
            (
                "open_evidence",
                json!({"session_id": "s", "limit": 0}),
                "limit",
            ),
            (
                "open_evidence",
                json!({"session_id": "s", "cursor": 1}),
                "cursor",
            ),
            (
                "open_evidence",
                json!({"session_id": "s", "references": []}),
                "references",
            ),
            (
                "open_evidence",
                json!({"session_id": "s", "references": [], "limit": 1}),
                "limit cannot be used with references",
            ),
            (
                "open_evidence",
                json!({"session_id": "s", "explain": true}),
                "explain requires inference_call_id",
            ),
            (
                "commit_dossier",
                json!({"commit_sha": "a"}),
                "sha is missing; ignored arguments: commit_sha; the tool has as_of, explain, repo, repository_host, repository_id, repository_provider, sha",
            ),
            ("session_dossier", json!({}), "session_id is missing"),
            (
                "session_dossier",
                json!({"session_id": ["s"]}),
                "must be a string",
            ),
            ("ci_run", json!({}), "run_id"),
        ] {
            let refusal = asked(tool, arguments.clone()).unwrap_err();
            assert_eq!(refusal.code, "invalid", "{arguments}");
            assert!(
                refusal.message.contains(expected),
                "{arguments}: {}",
                refusal.message
            );
        }
    }

    #[test]
    fn an_argument_that_the_tool_does_not_have_is_ignored_and_named() {
        for (arguments, expected) in [
            (json!({"query": "pager"}), None),
            (
                json!({"query": "pager", "wait_for_previous": true, "schema_version": 1}),
                Some(
                    "ignored arguments: schema_version, wait_for_previous; the tool has commit, max_bytes, query",
                ),
            ),
            (
                json!({"query": "pager", "x y": 1}),
                Some("ignored arguments: others; the tool has commit, max_bytes, query"),
            ),
        ] {
            let asked = asked("find_evidence", arguments).unwrap();
            assert_eq!(asked.ignored.as_deref(), expected);
        }
    }

    #[test]
    fn conflicting_arguments_have_their_own_code() {
        let arguments = json!({
            "cohort_start": "2026-02-01T00:00:00Z",
            "cohort_end": "2026-01-01T00:00:00Z",
            "as_of": "2026-03-01T00:00:00Z",
        });
        let refusal = asked("model_outcomes_report", arguments).unwrap_err();
        assert_eq!(refusal.code, "cohort_reversed");
        let refusal = asked("commit_dossier", json!({"sha": "abc"})).unwrap_err();
        assert_eq!(refusal.code, "malformed_sha");
    }

    #[test]
    fn numbers_and_booleans_are_accepted_as_json_values() {
        let sha = "a".repeat(40);
        asked("commit_dossier", json!({"sha": sha, "explain": true})).unwrap();
        asked("ci_run", json!({"run_id": 7})).unwrap();
    }
}
