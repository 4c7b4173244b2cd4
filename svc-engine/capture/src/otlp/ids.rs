//! The ids of traces and spans.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_engine_fact::CallKey;
use svc_model::json::{Json, Object};

/// What identifies a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpanIdentity {
    trace: [u8; 16],
    span: [u8; 8],
}

impl SpanIdentity {
    /// Returns the identity of a span, or of the span in which a record was logged. Ids that are
    /// all zeros stand for none.
    pub(super) fn of(holder: &Object) -> Option<Self> {
        Self::read(holder, "spanId")
    }

    /// Returns the identity of the span that contains this one.
    pub(super) fn of_parent(span: &Object) -> Option<Self> {
        Self::read(span, "parentSpanId")
    }

    fn read(holder: &Object, name: &str) -> Option<Self> {
        Some(Self {
            trace: id(holder.get("traceId"))?,
            span: id(holder.get(name))?,
        })
    }

    pub(super) fn trace_id(self) -> String {
        hexadecimal(&self.trace)
    }

    pub(super) fn span_id(self) -> String {
        hexadecimal(&self.span)
    }

    pub(super) fn key(self) -> CallKey {
        CallKey::span(&self.trace_id(), &self.span_id())
    }
}

/// Returns an id of `N` bytes: hexadecimal digits in any case, or base64.
fn id<const N: usize>(value: Option<&Json>) -> Option<[u8; N]> {
    let text = value?.as_str()?.trim();
    let bytes = if text.len() == 2 * N {
        digits(text)?
    } else {
        STANDARD.decode(text).ok()?
    };
    let id: [u8; N] = bytes.try_into().ok()?;
    (id != [0; N]).then_some(id)
}

fn digits(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::object;
    use super::*;

    fn read(trace: &str, span: &str) -> Option<String> {
        let holder = object(&format!(r#"{{"traceId":{trace},"spanId":{span}}}"#));
        SpanIdentity::of(&holder).map(|identity| identity.key().to_string())
    }

    #[test]
    fn ids_are_hexadecimal_in_any_case_or_base64() {
        let expected = "span:00112233445566778899aabbccddeeff:0011223344556677";
        for (trace, span) in [
            (
                r#""00112233445566778899aabbccddeeff""#,
                r#""0011223344556677""#,
            ),
            (
                r#""00112233445566778899AABBCCDDEEFF""#,
                r#""0011223344556677""#,
            ),
            (r#""ABEiM0RVZneImaq7zN3u/w==""#, r#""ABEiM0RVZnc=""#),
        ] {
            assert_eq!(read(trace, span).as_deref(), Some(expected), "{trace}");
        }
    }

    #[test]
    fn ids_of_zeros_or_of_another_length_are_none() {
        let trace = r#""00112233445566778899aabbccddeeff""#;
        let span = r#""0011223344556677""#;
        for (trace, span) in [
            (trace, r#""0000000000000000""#),
            (r#""00000000000000000000000000000000""#, span),
            (trace, r#""00112233""#),
            (trace, r#""001122334455667g""#),
            (trace, "5"),
            (trace, "null"),
            ("null", span),
            (r#""""#, span),
        ] {
            assert_eq!(read(trace, span), None, "{trace} {span}");
        }
    }
}
