//! What an answer lacks, with a line for each reason and the call that shows it.

use svc_model::json::Object;
use svc_model::limit::{CONTEXT_ITEMS_MAX, CONTEXT_REPLY_BYTES_HIGH};

use super::member::{counted, object};

/// Writes what a search of all Sessions left out.
pub(super) fn of_sessions(body: &Object, max_bytes: u64) -> Vec<String> {
    let beyond = |count| counted(count, "Session", "Sessions");
    let larger = if max_bytes < CONTEXT_REPLY_BYTES_HIGH {
        format!("call find_evidence with max_bytes {CONTEXT_REPLY_BYTES_HIGH}")
    } else {
        "call find_evidence with more specific keywords".to_owned()
    };
    let bounds = [
        skipped(body, "candidate_limit").map(|count| {
            format!(
                "Left out: {} beyond the first {CONTEXT_ITEMS_MAX}; call find_evidence with more \
                 specific keywords.",
                beyond(count)
            )
        }),
        skipped(body, "response_budget").map(|count| {
            format!(
                "Left out: {} too large for max_bytes; {larger}.",
                beyond(count)
            )
        }),
    ];
    let unsearched = unsearched(body, "call open_evidence with one of these session_ids");
    bounds.into_iter().flatten().chain(unsearched).collect()
}

/// Writes what a search of one Session left out. `opening` is the call that lists the Session's
/// calls.
pub(super) fn of_parts(body: &Object, max_bytes: u64, opening: &str) -> Vec<String> {
    let matching = |count| counted(count, "matching part", "matching parts");
    let larger = if max_bytes < CONTEXT_REPLY_BYTES_HIGH {
        format!("call search_session with max_bytes {CONTEXT_REPLY_BYTES_HIGH}")
    } else {
        format!("to look for them call by call: {opening}")
    };
    let bounds = [
        skipped(body, "item_limit").map(|count| {
            format!(
                "Left out: {} beyond the first {CONTEXT_ITEMS_MAX}; call search_session with more \
                 specific keywords.",
                matching(count)
            )
        }),
        skipped(body, "response_budget").map(|count| {
            format!(
                "Left out: {} too large for max_bytes; {larger}.",
                matching(count)
            )
        }),
        skipped(body, "repeated_content").map(|count| {
            format!(
                "Left out: {} with the same content as another.",
                matching(count)
            )
        }),
    ];
    let unsearched = unsearched(body, &format!("to browse: {opening}"));
    bounds.into_iter().flatten().chain(unsearched).collect()
}

/// Writes what no search covers. `browse` says how to find it anyway.
fn unsearched(body: &Object, browse: &str) -> Vec<String> {
    let quarantined = object(body, "coverage")
        .and_then(|coverage| positive(coverage, "quarantined_inference_calls"));
    [
        skipped(body, "reasoning_part").map(|count| {
            let parts = counted(count, "reasoning part", "reasoning parts");
            format!("Not searched: {parts}; {browse}.")
        }),
        skipped(body, "non_finite_number").map(|count| {
            let parts = counted(count, "tool part", "tool parts");
            format!(
                "Not searched: {parts} with a number that JSON cannot express. No call opens this."
            )
        }),
        skipped(body, "content_erased").map(|count| {
            let calls = counted(count, "call", "calls");
            format!("Not searched: {calls} with erased content. Nothing brings it back.")
        }),
        quarantined.map(|count| {
            let calls = counted(count, "quarantined call", "quarantined calls");
            format!("Not searched: {calls}. Only an operator can release a quarantined call.")
        }),
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
