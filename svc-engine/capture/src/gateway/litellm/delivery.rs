use svc_model::field::FromField as _;
use svc_model::ingest::Capture;
use svc_model::json::{Json, Object};
use svc_model::time::Instant;
use uuid::Uuid;

/// Returns the capture id and the time of a delivery without an envelope: the gateway's id of the
/// call, if that is a UUID, and the end of the call.
pub(super) fn name(payload: &Object, received_at: Instant) -> Option<Capture> {
    let text = payload.get("litellm_call_id").and_then(Json::as_str)?;
    Some(Capture {
        id: Uuid::try_parse(text.trim()).ok()?,
        observed_at: moment(payload).unwrap_or(received_at),
    })
}

/// Returns the time of the call in such a delivery: the end of the call, or else its start.
pub(super) fn moment(payload: &Object) -> Option<Instant> {
    instant(payload, "endTime").or_else(|| started_at(payload))
}

/// Returns when the call started.
pub(super) fn started_at(payload: &Object) -> Option<Instant> {
    instant(payload, "startTime")
}

fn instant(payload: &Object, name: &str) -> Option<Instant> {
    let value = payload
        .get(name)
        .filter(|value| value.as_number().is_some())?;
    Instant::from_field(value).ok()
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::at;

    use super::*;

    fn named(payload: &str) -> Option<(String, String)> {
        let payload = Json::parse(payload.as_bytes())
            .unwrap()
            .into_object()
            .unwrap();
        let capture = name(&payload, at(0))?;
        Some((capture.id.to_string(), capture.observed_at.to_string()))
    }

    #[test]
    fn a_delivery_takes_its_id_and_end_time_from_the_call() {
        const ID: &str = "23279188-c89f-40fe-8122-d8796501faad";
        let of_call = |times: &str| named(&format!(r#"{{"litellm_call_id":"{ID}"{times}}}"#));
        for (times, observed_at) in [
            (
                r#","startTime":1795177187.450944,"endTime":1795177187.459649"#,
                "2026-11-20T12:19:47.459649Z",
            ),
            (
                r#","startTime":1795177187.450944,"endTime":null"#,
                "2026-11-20T12:19:47.450944Z",
            ),
            (r#","endTime":1e300"#, "2026-11-01T00:00:00Z"),
            (r#","endTime":"1795177187""#, "2026-11-01T00:00:00Z"),
            ("", "2026-11-01T00:00:00Z"),
        ] {
            assert_eq!(
                of_call(times),
                Some((ID.to_owned(), observed_at.to_owned())),
                "{times}"
            );
        }
        assert_eq!(
            named(r#"{"litellm_call_id":"call-1","endTime":1795177187}"#),
            None
        );
        assert_eq!(named(r#"{"endTime":1795177187}"#), None);
    }
}
