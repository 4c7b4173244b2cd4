//! Odd parameters in paths and queries.

use harness::http::Request;
use harness::server::{Backend, OPERATOR_TOKEN};
use svc_model::endpoint::{self, Method, Place};

use super::target::Target;

on_both_backends! {
    an_odd_parameter_is_never_a_server_error,
}

fn an_odd_parameter_is_never_a_server_error(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let long = "x".repeat(2_000);
    let odd = [
        "",
        "%20",
        "%00",
        "%ff",
        "%ED%A0%80",
        "%",
        "%zz",
        "+",
        "a%2Fb",
        "%F0%9F%98%80",
        &long,
    ];
    for endpoint in endpoint::all() {
        let in_path = endpoint
            .parameters
            .iter()
            .any(|parameter| parameter.place == Place::Path);
        let names: Vec<&str> = endpoint
            .parameters
            .iter()
            .filter(|parameter| parameter.place == Place::Query && parameter.required)
            .map(|parameter| parameter.name)
            .collect();
        for value in odd {
            let mut path = endpoint.path.to_owned();
            for parameter in endpoint.parameters {
                path = path.replace(&format!("{{{}}}", parameter.name), value);
            }
            let query: Vec<String> = names.iter().map(|name| format!("{name}={value}")).collect();
            let request = Request {
                method: endpoint.method.as_str().into(),
                path: format!("{path}?{}&undeclared={value}", query.join("&")),
                body: (endpoint.method == Method::Post).then(|| b"{}".to_vec()),
                ..Request::default()
            };
            let reply = target
                .server
                .try_send(&request.bearer(OPERATOR_TOKEN))
                .expect("an answer");
            // A parameter that is not declared is never ignored.
            let documented = endpoint.statuses.contains(&reply.status);
            let ignores_others = endpoint.path == "/query/ci/outcome";
            if reply.status == 422 && !ignores_others {
                let named = r#"{"type":"extra_forbidden","loc":["query","undeclared"],"#;
                assert!(reply.text().contains(named), "{path}: {}", reply.text());
            }
            // An empty segment is another path, and some of these are not requests at all.
            let other_path = in_path && matches!(reply.status, 400 | 404 | 405);
            assert!(
                (documented || other_path) && reply.status < 500,
                "{} {path}: {} {}",
                endpoint.method.as_str(),
                reply.status,
                reply.text()
            );
            if !names.is_empty() && matches!(value, "" | "%20" | "%00" | "+") {
                let refused = reply.status == 422 || reply.status == 403;
                assert!(
                    refused,
                    "{path} with {value:?}: {} {}",
                    reply.status,
                    reply.text()
                );
            }
        }
    }
}
