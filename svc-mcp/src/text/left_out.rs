//! What an answer lacks, with a line for each reason and the call that shows it.

use svc_model::json::Object;
use svc_model::limit::{CONTEXT_ITEMS_MAX, CONTEXT_REPLY_BYTES_HIGH};

use super::member::{counted, object};

/// Writes what a search of all Sessions left out.
pub(super) fn of_sessions(body: &Object, max_bytes: u64) -> Vec<String> {
    let larger = if max_bytes < CONTEXT_REPLY_BYTES_HIGH {
        format!("call find_evidence with max_bytes {CONTEXT_REPLY_BYTES_HIGH}")
    } else {
        "call find_evidence with more specific keywords".to_owned()
    };
    let line = |reason, rest: &str| {
        let count = counted(skipped(body, reason)?, "Session", "Sessions");
        Some(format!("Left out: {count} {rest}."))
    };
    let bounds = [
        line(
            "candidate_limit",
            &format!(
                "beyond the first {CONTEXT_ITEMS_MAX}; call find_evidence with more specific keywords"
            ),
        ),
        line(
            "response_budget",
            &format!("too large for max_bytes; {larger}"),
        ),
    ];
    let unsearched = unsearched(body, "call open_evidence with one of these session_ids");
    bounds.into_iter().flatten().chain(unsearched).collect()
}

/// Writes what a search of one Session left out. `opening` is the call that lists the Session's
/// calls.
pub(super) fn of_parts(body: &Object, max_bytes: u64, opening: &str) -> Vec<String> {
    let larger = if max_bytes < CONTEXT_REPLY_BYTES_HIGH {
        format!("call search_session with max_bytes {CONTEXT_REPLY_BYTES_HIGH}")
    } else {
        format!("to look for them call by call: {opening}")
    };
    let line = |reason, rest: &str| {
        let count = counted(skipped(body, reason)?, "matching part", "matching parts");
        Some(format!("Left out: {count} {rest}."))
    };
    let bounds = [
        line(
            "item_limit",
            &format!(
                "beyond the first {CONTEXT_ITEMS_MAX}; call search_session with more specific keywords"
            ),
        ),
        line(
            "response_budget",
            &format!("too large for max_bytes; {larger}"),
        ),
        line("repeated_content", "with the same content as another"),
    ];
    let unsearched = unsearched(body, &format!("to browse: {opening}"));
    bounds.into_iter().flatten().chain(unsearched).collect()
}

/// Writes what no search covers. `browse` says how to find it anyway.
fn unsearched(body: &Object, browse: &str) -> Vec<String> {
    let quarantined = object(body, "coverage")
        .and_then(|coverage| positive(coverage, "quarantined_inference_calls"));
    let line = |count: Option<u64>, one, many, rest: &str| {
        Some(format!(
            "Not searched: {}{rest}",
            counted(count?, one, many)
        ))
    };
    [
        line(
            skipped(body, "reasoning_part"),
            "reasoning part",
            "reasoning parts",
            &format!("; {browse}."),
        ),
        line(
            skipped(body, "non_finite_number"),
            "tool part",
            "tool parts",
            " with a number that JSON cannot express. No call opens this.",
        ),
        line(
            skipped(body, "content_erased"),
            "call",
            "calls",
            " with erased content. Nothing brings it back.",
        ),
        line(
            quarantined,
            "quarantined call",
            "quarantined calls",
            ". Only an operator can release a quarantined call.",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Writes what the capture left out of a call. `explain` is the call that shows it if this answer
/// does not.
pub(super) fn of_call(body: &Object, explain: &str) -> String {
    let Some(left_out) = object(body, "left_out") else {
        return format!("To see what the capture left out: {explain}");
    };
    let kinds = [
        (
            "unsupported_content",
            "message or part of a kind that is not kept, such as an image or a file",
            "messages or parts of kinds that are not kept, such as images and files",
        ),
        (
            "opaque_reasoning",
            "reasoning part that is encrypted or empty",
            "reasoning parts that are encrypted or empty",
        ),
        (
            "missing_id",
            "tool call or result without an id",
            "tool calls or results without an id",
        ),
        (
            "malformed_arguments",
            "tool call's arguments, which are not a JSON object",
            "tool calls' arguments, which are not JSON objects",
        ),
        (
            "truncated",
            "part that the client had cut",
            "parts that the client had cut",
        ),
    ];
    let counts = kinds.into_iter().filter_map(|(kind, one, many)| {
        positive(left_out, kind).map(|count| counted(count, one, many))
    });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() {
        return "The capture left nothing out of this call.".to_owned();
    }
    format!(
        "The capture left out, and no call opens: {}.",
        counts.join("; ")
    )
}

fn skipped(body: &Object, reason: &str) -> Option<u64> {
    positive(object(body, "skipped")?, reason)
}

/// Returns a count, unless it is 0 or absent.
fn positive(body: &Object, name: &str) -> Option<u64> {
    let count = body.get(name)?.as_number()?.as_u64()?;
    (count > 0).then_some(count)
}
