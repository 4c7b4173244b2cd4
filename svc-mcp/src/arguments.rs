//! Converts a tool's arguments to its question.

use std::num::NonZeroUsize;

use rmcp::model::JsonObject;
use serde_json::Value;
use svc_model::endpoint::{
    AcceptedWorkLifecycleReport, CiRunsQuery, CommitQuery, Endpoint, ModelOutcomesReport,
    Parameter, Place, SessionQuery,
};
use svc_model::field::{FieldError, Step};
use svc_model::identity::Authority;
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use svc_model::problem::{Detail, Problem, QueryFault};
use svc_model::request::{Incoming, Refusal as Unread, Request};

use crate::page::{CALLS, MESSAGES, Page, Paged};
use crate::question::Question;
use crate::refusal::Refusal;
use crate::schema::VERSION;
use crate::tool::Tool;

/// A question, and the requested page of its reply.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) page: Option<(Page, Paged)>,
}

impl From<Question> for Asked {
    fn from(question: Question) -> Self {
        Self {
            question,
            page: None,
        }
    }
}

/// Reads a tool's arguments. Evidence is opened through the routes that the caller's authority
/// allows.
///
/// # Errors
///
/// If the arguments are not valid for the tool.
pub(crate) fn read(
    tool: Tool,
    mut arguments: JsonObject,
    authority: Authority,
) -> Result<Asked, Refusal> {
    // Some clients send null for every argument that they leave out.
    arguments.retain(|_, value| !value.is_null());
    declared(tool, &arguments)?;
    Ok(match tool {
        Tool::FindEvidence => Question::Discovery(body(arguments)?).into(),
        Tool::SearchSession => Question::Selected(body(arguments)?).into(),
        Tool::OpenEvidence => opening(arguments, authority)?,
        Tool::SessionDossier => {
            Question::SessionQuery(parameters::<SessionQuery>(arguments)?).into()
        }
        Tool::CommitDossier => Question::CommitQuery(parameters::<CommitQuery>(arguments)?).into(),
        Tool::CiRun => Question::CiRunsQuery(parameters::<CiRunsQuery>(arguments)?).into(),
        Tool::ModelOutcomes => {
            Question::ModelOutcomesReport(parameters::<ModelOutcomesReport>(arguments)?).into()
        }
        Tool::AcceptedWorkLifecycle => Question::AcceptedWorkLifecycleReport(parameters::<
            AcceptedWorkLifecycleReport,
        >(arguments)?)
        .into(),
    })
}

/// Reads what is to be opened.
fn opening(mut arguments: JsonObject, authority: Authority) -> Result<Asked, Refusal> {
    let operator = authority == Authority::Operator;
    if arguments.contains_key("references") {
        if let Some(name) = ["inference_call_id", "explain", "limit", "cursor"]
            .into_iter()
            .find(|name| arguments.contains_key(*name))
        {
            return Err(Refusal::invalid(format!(
                "{name} cannot be used with references"
            )));
        }
        let request = body(arguments)?;
        return Ok(Asked::from(if operator {
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
            return Err(Refusal::invalid("explain requires inference_call_id"));
        }
        let request = queried(arguments)?;
        if operator {
            Question::EvidenceInventory(request)
        } else {
            Question::GrantInventory(request)
        }
    };
    let page = (!page.is_whole()).then_some((page, paged));
    Ok(Asked { question, page })
}

fn page(arguments: &mut JsonObject) -> Result<Page, Refusal> {
    let limit = match arguments.remove("limit") {
        None => None,
        Some(limit) => Some(
            limit
                .as_u64()
                .and_then(|limit| NonZeroUsize::new(usize::try_from(limit).ok()?))
                .ok_or_else(|| Refusal::invalid("limit must be a positive whole number"))?,
        ),
    };
    let cursor = match arguments.remove("cursor") {
        None => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => return Err(Refusal::invalid("cursor must be a string")),
    };
    Ok(Page { limit, cursor })
}

/// Reads a request that is sent as a body.
fn body<R: Request>(mut arguments: JsonObject) -> Result<R, Refusal> {
    arguments.insert(VERSION.to_owned(), 1.into());
    let body = Value::Object(arguments).to_string();
    request(&Object::new(), &Object::new(), body.as_bytes())
}

/// Reads a request that is sent as query parameters.
fn queried<R: Request>(arguments: JsonObject) -> Result<R, Refusal> {
    let mut query = Object::new();
    for (name, value) in arguments {
        query.insert(name.clone(), text(&name, value)?);
    }
    request(&Object::new(), &query, b"")
}

/// Reads a request that is sent as the parameters of a route.
fn parameters<E: Endpoint>(arguments: JsonObject) -> Result<E::Request, Refusal> {
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
            return Err(Refusal::invalid(format!("{} is missing", parameter.name)));
        }
    }
    request(&path, &query, b"")
}

fn request<R: Request>(path: &Object, query: &Object, body: &[u8]) -> Result<R, Refusal> {
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
fn text(name: &str, value: Value) -> Result<Json, Refusal> {
    match value {
        Value::String(text) => Ok(text.into()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(Refusal::invalid(format!("{name} must be a string")))
        }
    }
}

/// Refuses an argument that the tool's schema does not declare, and names those that it does. The
/// argument is repeated only if it is a plain name.
fn declared(tool: Tool, arguments: &JsonObject) -> Result<(), Refusal> {
    let schema = tool.definition().input_schema;
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = |name: &str| properties.is_some_and(|known| known.contains_key(name));
    let Some(name) = arguments.keys().find(|name| !known(name)) else {
        return Ok(());
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let wrong = if name.len() <= 64 && name.bytes().all(plain) {
        format!("argument {name}")
    } else {
        "such argument".to_owned()
    };
    let names = properties.into_iter().flat_map(JsonObject::keys);
    let names: Vec<&str> = names.map(String::as_str).collect();
    Err(Refusal::invalid(format!(
        "the tool has no {wrong}; its arguments are {}",
        names.join(", ")
    )))
}

fn refusal(unread: Unread) -> Refusal {
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
    Refusal {
        code: code.to_owned(),
        advice,
        ..Refusal::invalid(message)
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

    fn asked(tool: Tool, arguments: Value) -> Result<Asked, Refusal> {
        let Value::Object(arguments) = arguments else {
            panic!("an object");
        };
        read(tool, arguments, Authority::Retrieval)
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
                let asked = read(Tool::OpenEvidence, arguments, authority).unwrap();
                let question = format!("{:?}", asked.question);
                assert!(question.starts_with(expected), "{question}");
            }
        }
    }

    #[test]
    fn an_unknown_argument_is_refused_by_name() {
        for (tool, arguments, expected) in [
            (Tool::FindEvidence, json!({}), "query"),
            (
                Tool::FindEvidence,
                json!({"query": "a b", "max_bytes": 1}),
                "max_bytes",
            ),
            (
                Tool::FindEvidence,
                json!({"query": "pager", "schema_version": 1}),
                "schema_version",
            ),
            (Tool::SearchSession, json!({"query": "pager"}), "session_id"),
            (Tool::OpenEvidence, json!({}), "session_id"),
            (
                Tool::OpenEvidence,
                json!({"session_id": "s", "limit": 0}),
                "limit",
            ),
            (
                Tool::OpenEvidence,
                json!({"session_id": "s", "cursor": 1}),
                "cursor",
            ),
            (
                Tool::OpenEvidence,
                json!({"session_id": "s", "references": []}),
                "references",
            ),
            (
                Tool::OpenEvidence,
                json!({"session_id": "s", "references": [], "limit": 1}),
                "limit cannot be used with references",
            ),
            (
                Tool::OpenEvidence,
                json!({"session_id": "s", "x y": 1}),
                "no such argument; its arguments are ",
            ),
            (
                Tool::OpenEvidence,
                json!({"session_id": "s", "explain": true}),
                "explain requires inference_call_id",
            ),
            (
                Tool::FindEvidence,
                json!({"query": "pager", "session": "s"}),
                "no argument session; its arguments are commit, max_bytes, query",
            ),
            (
                Tool::CommitDossier,
                json!({"commit_sha": "a"}),
                "no argument commit_sha; its arguments are as_of, explain, repo, repository_host, repository_id, repository_provider, sha",
            ),
            (Tool::SessionDossier, json!({}), "session_id is missing"),
            (
                Tool::SessionDossier,
                json!({"session_id": ["s"]}),
                "must be a string",
            ),
            (
                Tool::SessionDossier,
                json!({"session_id": "s", "repo": "a/b"}),
                "repo",
            ),
            (Tool::CiRun, json!({}), "run_id"),
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
    fn conflicting_arguments_have_their_own_code() {
        let arguments = json!({
            "cohort_start": "2026-02-01T00:00:00Z",
            "cohort_end": "2026-01-01T00:00:00Z",
            "as_of": "2026-03-01T00:00:00Z",
        });
        let refusal = asked(Tool::ModelOutcomes, arguments).unwrap_err();
        assert_eq!(refusal.code, "cohort_reversed");
        let refusal = asked(Tool::CommitDossier, json!({"sha": "abc"})).unwrap_err();
        assert_eq!(refusal.code, "malformed_sha");
    }

    #[test]
    fn numbers_and_booleans_are_accepted_as_json_values() {
        let sha = "a".repeat(40);
        asked(Tool::CommitDossier, json!({"sha": sha, "explain": true})).unwrap();
        asked(Tool::CiRun, json!({"run_id": 7})).unwrap();
    }
}
