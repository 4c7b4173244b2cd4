//! Members of a wrong type, absent members, and undeclared ones.

use std::collections::BTreeSet;

use harness::pattern::shown;
use harness::server::Backend;
use svc_model::json::Json;

use super::place::{Step, places, with};
use super::target::Target;

on_both_backends! {
    a_member_of_a_wrong_type_is_refused_and_stores_nothing,
    an_undeclared_member_is_refused_and_stores_nothing,
}

fn a_member_of_a_wrong_type_is_refused_and_stores_nothing(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let long = format!("\"{}\"", "x".repeat(1_100));
    let odd: Vec<Json> = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e999",
        "9223372036854775808",
        "NaN",
        r#""""#,
        r#"" ""#,
        r#""x""#,
        r#""\u0000""#,
        r#""\ud800""#,
        "[]",
        "[[]]",
        "{}",
        &long,
    ]
    .iter()
    .map(|text| Json::parse(text.as_bytes()).expect("JSON"))
    .collect();
    let mut statuses = BTreeSet::new();
    for route in target.routes() {
        // Stored first, so that no variant takes its ids.
        target.post(&route, route.body.to_canonical());
        for place in places(&route.body) {
            for other in odd.iter().map(Some).chain([None]) {
                let body = with(&route.body, &place, other).to_canonical();
                statuses.insert(target.try_body(&route, &body).status);
            }
        }
        // Whatever came before, a valid body is still accepted.
        let reply = target.post(&route, route.body.to_canonical());
        assert_eq!(reply.status, 200, "{}: {}", route.path, reply.text());
    }
    assert!(
        statuses.contains(&200) && statuses.contains(&422),
        "{statuses:?}"
    );
    target.read_everything();
}

fn an_undeclared_member_is_refused_and_stores_nothing(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let secret = "undeclared-and-private";
    for route in target.routes() {
        // A gateway's payload is the gateway's own, and the arguments of a tool the tool's, so anything
        // may be in it; so may it in somebody's file of prices.
        let is_file = route.path == "/v1/prices";
        if route.path.starts_with("/ingest/gateway/") || route.takes_any_object() || is_file {
            continue;
        }
        let strict = |place: &[Step]| {
            !place
                .iter()
                .any(|step| matches!(step, Step::Member(name) if name == "payload" || name == "arguments"))
        };
        let objects = places(&route.body)
            .into_iter()
            .filter(|place| strict(place))
            .filter_map(|place| {
                let inside = place
                    .iter()
                    .try_fold(&route.body, |value, step| match step {
                        Step::Member(name) => value.as_object()?.get(name),
                        Step::Item(index) => value.as_array()?.get(*index),
                    })?;
                inside.as_object().map(|object| (place, object.clone()))
            });
        let mut bodies: Vec<Json> = objects
            .map(|(place, mut object)| {
                object.insert("undeclared", secret);
                with(&route.body, &place, Some(&object.into()))
            })
            .collect();
        let mut outermost = route.body.as_object().expect("an object").clone();
        outermost.insert("undeclared", secret);
        bodies.push(outermost.into());
        for body in bodies {
            let reply = target.try_body(&route, &body.to_canonical());
            assert_eq!(
                reply.status,
                422,
                "{} {}: {}",
                route.path,
                shown(&body),
                reply.text()
            );
            assert!(reply.text().contains("extra_forbidden"), "{}", reply.text());
            assert!(
                !reply.text().contains(secret),
                "the input is repeated: {}",
                reply.text()
            );
            let named = reply.text().contains(r#""undeclared""#);
            let ingest = route.path.starts_with("/ingest");
            assert_eq!(named, ingest, "{}: {}", route.path, reply.text());
        }
    }
}
