//! One order of checks for every route.
//!
//! The checks are: path and method, the form of the request, body size, credential (a token, or the
//! forge's signature of the body), authority, grant, body, fields. Each can end a request, and a
//! caller without a valid credential sees only 404, 405, 413 and 401. Then the handler calls the
//! engine once, and the reply is written within its budget.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use percent_encoding::percent_decode_str;
use svc_engine::engine::{Engine, Reader};
use svc_engine::ingest::BodyBudget;
use svc_engine::read::Repeats;
use svc_model::endpoint::{Access, Endpoint, Grant as Needs, Parameter, Place};
use svc_model::identity::Authority;
use svc_model::ingest::is_protobuf;
use svc_model::json::{self, Object, Text};
use svc_model::limit::READ_WAIT_SECONDS;
use svc_model::problem::Problem;
use svc_model::request::{Incoming, Refusal, Request as _};

use crate::admission::{self, Encoding};
use crate::app::App;
use crate::auth::{self, Caller, Rights, Sender};
use crate::body;
use crate::handler::Handler;
use crate::observe;
use crate::places;
use crate::problem;
use crate::reply;
use crate::settings::Grant;

/// What a handler gets besides the request.
pub(crate) struct Exchange {
    pub(crate) app: App,
    /// `None` on open routes and on routes that the forge signs.
    pub(crate) caller: Option<Caller>,
    pub(crate) budget: BodyBudget,
    /// How long its read waits for a slot at most.
    wait: Duration,
    /// Whether a page or a tool asks, not a client of the route.
    is_inner: bool,
}

impl Exchange {
    /// Returns the exchange for a request that arrived as a value inside another request.
    pub(crate) fn of(app: App, caller: Caller) -> Self {
        Self {
            app,
            caller: Some(caller),
            budget: BodyBudget::new(0),
            wait: READ_WAIT,
            is_inner: true,
        }
    }

    /// Returns the engine, which the caller reads.
    pub(crate) fn engine(&self) -> Engine {
        let reader = match &self.caller {
            Some(caller) if caller.authority != Authority::Operator => {
                Reader::agent(&caller.client_id)
            }
            _ => Reader::operator(),
        };
        self.app.engine.read_by(reader.waiting(self.wait))
    }

    /// Returns how a scan counts content that is repeated. The interface counts it each time for
    /// the configured token of agents; everybody else is bounded by what a scan really reads.
    pub(crate) fn repeats(&self) -> Repeats {
        match &self.caller {
            Some(Caller {
                authority: Authority::Retrieval,
                rights: Rights::Configured,
                ..
            }) if !self.is_inner => Repeats::Count,
            _ => Repeats::Once,
        }
    }
}

/// A route and what answers it.
pub(crate) trait Handle: Endpoint<Request: Send, Reply: Send> + Sized {
    /// Answers a request that passed the checks.
    fn handle(
        exchange: Exchange,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Reply, Problem>> + Send;

    /// Returns what the router calls.
    fn handler() -> Handler {
        bind::<Self>()
    }
}

/// Returns what the router calls for a route: its checks, then its answer.
pub(crate) fn bind<E: Handle>() -> Handler {
    Arc::new(|app, request| {
        Box::pin(async move {
            match answer::<E>(app, request).await {
                Ok(response) => response,
                Err(problem) => problem::answer(&problem),
            }
        })
    })
}

async fn answer<E: Handle>(app: App, request: HttpRequest) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let place = parts
        .extensions
        .remove()
        .unwrap_or_else(places::ConnectionPlace::detached);
    let sender = Sender::of(E::ACCESS, &app.tokens, &app.webhook_keys, &parts.headers);
    let (sender, assumed) = match E::ACCESS {
        Access::Context(_) | Access::Search => sender.assumed(&app.engine).await,
        _ => (sender.confirmed(&app.engine).await, None),
    };
    let engine = app.engine.clone();
    let answer = answer_to::<E>(app, sender, parts, body, place).await;
    match (answer, assumed) {
        (answer @ (Ok(_) | Err(Problem::BodyTooLarge | Problem::Unauthorized)), _)
        | (answer, None) => answer,
        // The bearer of a revoked token does not learn what is wrong with the request.
        (Err(problem), Some(token)) => {
            engine.token_grants(token).await?;
            Err(problem)
        }
    }
}

async fn answer_to<E: Handle>(
    app: App,
    mut sender: Sender,
    parts: Parts,
    body: Body,
    place: places::ConnectionPlace,
) -> Result<Response, Problem> {
    let headers = &parts.headers;
    if let Some(caller) = sender.caller() {
        place.sender_is_known();
        observe::caller(caller);
    }
    let (encodings, body_use) = (E::CONTENT_ENCODINGS, sender.body_use());
    let content = body::read(
        headers,
        body,
        E::BODY_BYTES_MAX,
        encodings,
        body_use,
        &place,
    )
    .await;
    let mut content = match content {
        Ok(content) => content,
        Err(Problem::BodyTooLarge) => return Err(Problem::BodyTooLarge),
        // A stranger learns only that it is one.
        Err(problem) => return Err(sender.identify().err().unwrap_or(problem)),
    };
    let caller = sender.identify()?;
    if E::ACCESS == Access::Signature {
        place.sender_is_known();
        content.sender_is_known();
        observe::forge();
    }
    if let Some(caller) = &caller {
        check_caller::<E>(&app, caller)?;
    }
    let (content, memory) = content.decoded()?;
    let exchange = Exchange {
        app: app.clone(),
        caller,
        budget: BodyBudget::new(content.len()),
        wait: read_wait(&parts.headers),
        is_inner: false,
    };
    let path = path_parameters(E::PATH, parts.uri.path());
    let mut query = query_parameters(parts.uri.query().unwrap_or_default());
    if E::IGNORES_OTHER_QUERY {
        query.retain(|name, _| resembles(&name.to_string_lossy(), E::PARAMETERS));
    }
    let headers = header_parameters(E::PARAMETERS, &parts.headers);
    let encoding = match headers.get("content-type").and_then(json::Json::as_str) {
        Some(content_type) if is_protobuf(content_type) => Encoding::Protobuf,
        _ => Encoding::Json,
    };
    let bytes = exchange
        .budget
        .in_place(|| admission::estimate(&content, encoding));
    let _held = admission::admit(&app.work, bytes, admission::WAIT).await?;
    let request = {
        let incoming = Incoming {
            path: &path,
            query: &query,
            headers: &headers,
            body: &content,
            memory: &exchange.budget.memory,
        };
        let read = exchange.budget.in_place(|| E::Request::read(&incoming));
        let read = incoming.with_declared_query(E::PARAMETERS, read);
        read.map_err(|refusal| {
            if refusal == Refusal::Form {
                tracing::warn!(
                    mend = "set the content type of the webhook to application/json at the forge, \
                            and redeliver",
                    "webhook.form_body"
                );
            }
            Problem::from(refusal)
        })?
    };
    drop((content, memory));
    let body = {
        let reply = E::handle(exchange, request).await?;
        reply::write::<E>(&reply, E::REPLY_BYTES_MAX)?
    };
    reply::send(&app.replies, body).await
}

/// How long a read waits for a slot, unless its request asks for less.
const READ_WAIT: Duration = Duration::from_secs(READ_WAIT_SECONDS);

/// Returns how long a read waits for a slot: the seconds of `Prefer: wait=N` (RFC 7240), if there
/// are any. The engine shortens what is too long.
fn read_wait(headers: &HeaderMap) -> Duration {
    let lists = headers.get_all("prefer").iter();
    let all = lists.filter_map(|list| list.to_str().ok()?.into());
    let mut preferences = all.flat_map(|list: &str| list.split(','));
    let seconds = preferences.find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"').parse().ok())?
    });
    seconds.map_or(READ_WAIT, Duration::from_secs)
}

/// Checks that a caller may use a route: its authority, and the grant that the route needs.
pub(crate) fn check_caller<E: Endpoint>(app: &App, caller: &Caller) -> Result<(), Problem> {
    auth::authorize(E::ACCESS, caller)?;
    match E::ACCESS {
        Access::Context(needs) => check_grant(needs, &app.grant, caller),
        Access::Search if caller.authority != Authority::Operator => {
            check_grant(Needs::Configured, &app.grant, caller)
        }
        _ => Ok(()),
    }
}

/// Checks that the grant that the route needs exists, in the deployment's settings or for the
/// caller's named token. Requests with a named token must always name the Session.
fn check_grant(needs: Needs, grant: &Grant, caller: &Caller) -> Result<(), Problem> {
    if !matches!(caller.rights, Rights::Configured) {
        return match needs {
            Needs::Single => Err(Problem::RetrievalDisabled),
            Needs::Configured => Ok(()),
        };
    }
    match (needs, grant) {
        (Needs::Single, Grant::Single(_))
        | (Needs::Configured, Grant::Single(_) | Grant::Plural(_)) => Ok(()),
        (Needs::Single | Needs::Configured, Grant::None) | (Needs::Single, Grant::Plural(_)) => {
            Err(Problem::RetrievalDisabled)
        }
    }
}

/// Returns the parameters in a path, percent-decoded. A slash in a parameter is written `%2F`.
fn path_parameters(template: &'static str, path: &str) -> Object {
    template
        .split('/')
        .zip(path.split('/'))
        .filter_map(|(name, value)| Some((name.strip_prefix('{')?.strip_suffix('}')?, value)))
        .map(|(name, value)| {
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            (Text::from(name), json::Json::from(value))
        })
        .collect()
}

/// Returns the parameters in a query. If one is repeated, the last counts.
pub(crate) fn query_parameters(query: &str) -> Object {
    let mut parameters = Object::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        parameters.insert(name.into_owned(), value.into_owned());
    }
    parameters
}

/// The number of edits after which a name is no misspelling of another.
const EDITS_MAX: usize = 2;

/// Returns whether a name is that of a declared parameter, or a misspelling of one.
fn resembles(name: &str, declared: &[Parameter]) -> bool {
    let of_query = |parameter: &&Parameter| parameter.place == Place::Query;
    // A long name resembles none, and comparing takes time.
    name.len() <= 64
        && declared
            .iter()
            .filter(of_query)
            .any(|known| strsim::damerau_levenshtein(name, known.name) <= EDITS_MAX)
}

/// Returns the declared headers and the content type. If one is repeated, the first counts. A value
/// that is not UTF-8 still counts as present: what cannot be read is replaced, so it matches
/// nothing that is known.
fn header_parameters(declared: &[Parameter], headers: &HeaderMap) -> Object {
    declared
        .iter()
        .filter(|parameter| parameter.place == Place::Header)
        .map(|parameter| parameter.name)
        .chain(["content-type"])
        .filter_map(|name| {
            let value = String::from_utf8_lossy(headers.get(name)?.as_bytes());
            Some((Text::from(name), json::Json::from(value.into_owned())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_path_parameter_may_hold_a_slash() {
        let found = path_parameters(
            "/v1/facts/session/{session_id}/x",
            "/v1/facts/session/a%2Fb%20c/x",
        );
        assert_eq!(
            found.get("session_id").and_then(json::Json::as_str),
            Some("a/b c")
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_request_may_ask_for_a_shorter_wait() {
        for (prefer, expected) in [
            (&["wait=0"][..], 0),
            (&["respond-async, Wait = \"1\"; x=y"], 1),
            (&["return=minimal", "wait=100"], 100),
            (&["wait=soon"], READ_WAIT_SECONDS),
            (&[], READ_WAIT_SECONDS),
        ] {
            let mut headers = HeaderMap::new();
            for value in prefer {
                headers.append("prefer", HeaderValue::from_static(value));
            }
            assert_eq!(read_wait(&headers).as_secs(), expected, "{prefer:?}");
        }
    }

    #[test]
    fn the_last_of_a_repeated_parameter_wins() {
        let found = query_parameters("a=1&b=%FF&a=2+3");
        assert_eq!(found.get("a").and_then(json::Json::as_str), Some("2 3"));
        assert_eq!(
            found.get("b").and_then(json::Json::as_str),
            Some("\u{fffd}")
        );
    }

    #[test]
    fn a_misspelt_parameter_resembles_the_declared_one() {
        let declared = svc_model::endpoint::CiOutcomeQuery::PARAMETERS;
        for name in ["run_id", "runid", "run_attmept", "as_off"] {
            assert!(resembles(name, declared), "{name}");
        }
        for name in ["x", "", "org_id", "undeclared"] {
            assert!(!resembles(name, declared), "{name}");
        }
    }

    #[test]
    fn only_declared_headers_are_read_even_if_not_valid_text() {
        let declared = svc_model::endpoint::IngestForge::PARAMETERS;
        let read = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("x-other", HeaderValue::from_static("o"));
            headers.append("X-Forge-Event", HeaderValue::from_bytes(value).unwrap());
            headers.append("x-forge-event", HeaderValue::from_static("second"));
            let found = header_parameters(declared, &headers);
            assert!(!found.contains_key("x-other"));
            found.get("x-forge-event").cloned()
        };
        assert_eq!(read(b"push"), Some("push".into()));
        assert_eq!(read("\u{e9}".as_bytes()), Some("\u{e9}".into()));
        assert_eq!(read(b""), Some("".into()));
        assert_eq!(read(b"push\xff"), Some("push\u{fffd}".into()));
    }
}
