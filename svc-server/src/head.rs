//! Checks that the head of a request has only one meaning.
//!
//! A proxy and this service must never read a request differently. So a request has one credential,
//! one host, and an unambiguous end of its body.

use axum::http::{HeaderMap, HeaderName, header};
use svc_model::problem::Problem;

/// Headers that may occur only once.
const ONCE: [HeaderName; 3] = [
    header::AUTHORIZATION,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// Checks a head.
///
/// # Errors
///
/// If one of these headers is repeated, or the transfer encoding is unknown.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let once = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_none();
    let chunked = headers
        .get(header::TRANSFER_ENCODING)
        .is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if chunked && ONCE.iter().all(once) {
        Ok(())
    } else {
        Err(Problem::MalformedRequest)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn checked(headers: &[(HeaderName, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), HeaderValue::from_static(value));
        }
        check(&map).is_ok()
    }

    #[test]
    fn security_relevant_headers_must_not_be_repeated() {
        use header::{ACCEPT, AUTHORIZATION, HOST, TRANSFER_ENCODING};
        assert!(checked(&[]));
        assert!(checked(&[
            (HOST, "a"),
            (AUTHORIZATION, "b"),
            (TRANSFER_ENCODING, "Chunked")
        ]));
        assert!(checked(&[(ACCEPT, "a"), (ACCEPT, "b")]));
        for name in [HOST, AUTHORIZATION] {
            assert!(!checked(&[(name.clone(), "a"), (name, "a")]));
        }
        for value in ["gzip", "gzip, chunked", "chunked, chunked", "identity", ""] {
            assert!(!checked(&[(TRANSFER_ENCODING, value)]), "{value}");
        }
        assert!(!checked(&[
            (TRANSFER_ENCODING, "chunked"),
            (TRANSFER_ENCODING, "chunked")
        ]));
    }
}
