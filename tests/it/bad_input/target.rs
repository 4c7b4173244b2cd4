//! A server that gets bad input, and what must hold for all its answers.

use harness::delivery::{Call, Webhook};
use harness::http::Reply;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, Server};
use serde_json::json;
use svc_model::endpoint::{self, Access, Description, Method};
use svc_model::json::Json;

use super::valid;

/// The Session of every valid body.
pub(super) const SESSION: &str = "bad-input";

/// A server that gets bad input, and what its valid bodies refer to.
pub(super) struct Target {
    pub(super) server: Server,
    pub(super) call: String,
    pub(super) grant: String,
}

/// A route that takes a body.
pub(super) struct Route {
    pub(super) endpoint: Description,
    pub(super) path: String,
    /// A valid body.
    pub(super) body: Json,
}

impl Route {
    /// Returns the event that a webhook route gets its valid body for.
    pub(super) fn event(&self) -> Option<&'static str> {
        if self.endpoint.access != Access::Signature {
            return None;
        }
        Some(match self.endpoint.path {
            "/ingest/forge/push" => "push",
            "/ingest/forge/repository" => "repository",
            "/ingest/forge/ci" => "workflow_run",
            _ => "pull_request",
        })
    }

    /// Returns whether the body is somebody else's document, which has no required or forbidden
    /// members: a forge's event, or an export of logs or traces.
    pub(super) fn takes_any_object(&self) -> bool {
        self.event().is_some() || ["/v1/logs", "/v1/traces"].contains(&self.endpoint.path)
    }
}

impl Target {
    pub(super) fn start(backend: Backend) -> Option<Self> {
        let server = Server::start(backend, &Configuration::granting_one(SESSION))?;
        let stored = server
            .deliver("/ingest/gateway", Call::new(SESSION, "first").body())
            .json();
        let call = dig(&stored, "fact_id")
            .and_then(Json::as_str)
            .expect("a fact id")
            .to_owned();
        let granted = json!({"token": "removed", "session_id": SESSION, "reason": "a try"});
        let granted = server.ask("/v1/grants/add", granted.to_string()).json();
        let grant = dig(&granted, "entry.grant_id")
            .and_then(Json::as_str)
            .expect("the id of a grant")
            .to_owned();
        let revoked = json!({"token": "revoked", "reason": "a try"});
        let revoked = server.ask("/v1/grants/revoke", revoked.to_string());
        assert_eq!(revoked.status, 200, "{}", revoked.text());
        Some(Self {
            server,
            call,
            grant,
        })
    }

    /// Returns every route that takes a body.
    pub(super) fn routes(&self) -> Vec<Route> {
        let routes: Vec<Route> = endpoint::all()
            .into_iter()
            .filter(|endpoint| endpoint.method == Method::Post)
            .map(|endpoint| Route {
                path: endpoint.path.replace("{provider}", "gateway_a"),
                body: valid::body(self, endpoint.path),
                endpoint,
            })
            .collect();
        assert!(!routes.is_empty());
        routes
    }

    /// Posts a body with a sufficient credential, so that only the body can be refused.
    pub(super) fn post(&self, route: &Route, body: impl Into<Vec<u8>>) -> Reply {
        let Some(event) = route.event() else {
            return self.server.ask(&route.path, body);
        };
        let delivery = Webhook::unnamed(body).header("x-forge-event", event);
        // The same name for all, so that a rename is a repetition rather than a new one.
        self.server
            .send(&delivery.named("bad-input").to(&route.path))
    }

    /// Returns the counts of what is stored.
    pub(super) fn facts(&self) -> Vec<u8> {
        self.server.read("/v1/facts").body
    }

    /// Posts a body that may be bad, and checks everything that holds for every answer.
    pub(super) fn try_body(&self, route: &Route, body: &[u8]) -> Reply {
        let before = self.facts();
        let reply = self.post(route, body);
        let what = || {
            format!(
                "{} {}",
                route.path,
                String::from_utf8_lossy(&body[..body.len().min(600)])
            )
        };
        let documented = reply.status == 200 || route.endpoint.statuses.contains(&reply.status);
        assert!(
            documented && reply.status < 500,
            "{}: {} {}",
            what(),
            reply.status,
            reply.text()
        );
        let skipped = Some(&Json::Bool(true));
        let declined = reply.status == 200 && dig(&reply.json(), "skipped") == skipped;
        if reply.status != 200 || declined {
            assert!(
                declined || dig(&reply.json(), "detail").is_some(),
                "{}: {}",
                what(),
                reply.text()
            );
            assert_eq!(
                self.facts(),
                before,
                "{}: {} and stored",
                what(),
                reply.status
            );
        }
        reply
    }

    /// Reads everything that is stored for the Session. Whatever was accepted must not break a
    /// read.
    pub(super) fn read_everything(&self) {
        let inventory = self
            .server
            .read(&format!("/query/evidence?session_id={SESSION}"))
            .json();
        let calls = dig(&inventory, "calls")
            .and_then(Json::as_array)
            .expect("calls");
        for call in calls {
            let id = dig(call, "inference_call_id")
                .and_then(Json::as_str)
                .expect("an id");
            let manifest = self.server.read_json(&format!(
                "/query/evidence/manifest?session_id={SESSION}&inference_call_id={id}"
            ));
            let messages = dig(&manifest, "messages")
                .and_then(Json::as_array)
                .expect("messages");
            let parts = messages
                .iter()
                .filter_map(|message| dig(message, "parts")?.as_array());
            for part in parts.flatten() {
                let reference = dig(part, "reference").expect("a reference").to_canonical();
                let reference = String::from_utf8(reference).expect("ASCII");
                let body = format!(
                    r#"{{"schema_version":1,"session_id":"{SESSION}","references":[{reference}]}}"#
                );
                let reply = self.server.ask("/query/evidence/read", body);
                let declined = reply.status == 409 && reply.text().contains("non_finite_number");
                assert!(
                    reply.status == 200 || declined,
                    "{reference}: {}",
                    reply.text()
                );
            }
        }
        for rest in ["", "/inference-calls"] {
            self.server
                .read_json(&format!("/v1/facts/session/{SESSION}{rest}"));
        }
        let query = r#"{"schema_version":1,"query":"pager window text"}"#;
        assert_eq!(self.server.ask("/query/context", query).status, 200);
    }
}
