//! Builds the path and query of a request.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use svc_model::request::Outgoing;

/// All characters except those that URLs never reserve. The slash is encoded too, so that a
/// parameter remains one segment.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the path and query of a request, encoded.
///
/// `path` is that of an endpoint, with its parameters in braces.
pub(crate) fn target(path: &str, outgoing: &Outgoing) -> String {
    let mut target = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, name, after)) = next_parameter(rest) {
        target.push_str(before);
        let value = outgoing.path.iter().find(|(known, _)| *known == name);
        target.extend(
            value
                .iter()
                .flat_map(|(_, value)| utf8_percent_encode(value, ENCODED)),
        );
        rest = after;
    }
    target.push_str(rest);
    if !outgoing.query.is_empty() {
        let start = target.len() + 1;
        target.push('?');
        return form_urlencoded::Serializer::for_suffix(target, start)
            .extend_pairs(&outgoing.query)
            .finish();
    }
    target
}

/// Splits a path at its first parameter: the text before it, its name, and the text after it.
fn next_parameter(path: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = path.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_stays_one_segment() {
        let outgoing = Outgoing::default().with_path("session_id", "a/b c?d#e%\u{e9}:~");
        assert_eq!(
            target("/v1/facts/session/{session_id}/inference-calls", &outgoing),
            "/v1/facts/session/a%2Fb%20c%3Fd%23e%25%C3%A9%3A~/inference-calls"
        );
    }

    #[test]
    fn query_parameters_are_encoded_as_a_form() {
        let outgoing = Outgoing::default()
            .with_query("session_id", "a+b &=\u{e9}")
            .with_query("n", "1");
        assert_eq!(
            target("/query/evidence", &outgoing),
            "/query/evidence?session_id=a%2Bb+%26%3D%C3%A9&n=1"
        );
    }

    #[test]
    fn a_request_without_parameters_is_its_path() {
        assert_eq!(target("/health", &Outgoing::default()), "/health");
    }
}
