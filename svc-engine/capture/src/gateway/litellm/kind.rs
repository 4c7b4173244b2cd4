//! What kind of work a payload logs. LiteLLM logs everything that the proxy did, not only calls of
//! models.

use svc_model::json::{Json, Object};

use svc_messages::identity::usable;

/// The kinds of work that are inference calls, as LiteLLM names them without the `a` of their
/// asynchronous twins. Words may follow, as in `pass_through_endpoint`.
const INFERENCE: [&str; 9] = [
    "completion",
    "text_completion",
    "chat",
    "anthropic_messages",
    "responses",
    "generate_content",
    "pass_through",
    "llm_passthrough",
    "allm_passthrough",
];

/// Returns whether a payload logs an inference call. One that does not say what it logs does.
pub(super) fn is_inference(payload: &Object) -> bool {
    let Some(kind) = usable(payload.get("call_type")) else {
        return true;
    };
    let kind = kind.as_str().unwrap_or_default().trim();
    [Some(kind), kind.strip_prefix('a')]
        .into_iter()
        .flatten()
        .any(|kind| {
            INFERENCE.iter().any(|family| {
                let rest = kind.strip_prefix(family);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            })
        })
}

/// Returns whether a payload logs a request that was passed through, unread by the proxy.
pub(super) fn is_passed_through(payload: &Object) -> bool {
    let kind = payload.get("call_type").and_then(Json::as_str);
    kind.is_some_and(|kind| kind.contains("pass_through") || kind.contains("passthrough"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_a_model_with_messages_are_inference_calls() {
        let kind = |kind: &str| Object::from_iter([("call_type", kind)]);
        for name in [
            "completion",
            "acompletion",
            "atext_completion",
            "anthropic_messages",
            "responses",
            "aresponses",
            "generate_content",
            "agenerate_content_stream",
            "pass_through_endpoint",
            "allm_passthrough_route",
            " ",
        ] {
            assert!(is_inference(&kind(name)), "{name}");
        }
        for name in [
            "aembedding",
            "moderation",
            "aimage_generation",
            "speech",
            "atranscription",
            "arerank",
            "asearch",
            "acreate_batch",
            "afile_list",
            "list_mcp_tools",
            "call_mcp_tool",
            "aget_responses",
            "adelete_responses",
            "alist_input_items",
        ] {
            assert!(!is_inference(&kind(name)), "{name}");
        }
        assert!(is_inference(&Object::new()));
        assert!(is_inference(&Object::from_iter([("call_type", 5)])));
    }
}
