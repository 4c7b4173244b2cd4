//! The published schema of a gateway's payload. It is documentation only: the code that reads
//! payloads is in `svc-engine`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

fn text(what: &str) -> Value {
    json!({ "type": "string", "description": what })
}

/// Returns the schema of a text that may be missing. LiteLLM writes null for what is absent.
fn optional_text(what: &str) -> Value {
    json!({ "type": ["string", "null"], "description": what })
}

/// What the service reads of a `gateway_a` payload: the published schema, with examples.
///
/// A payload may be any object. Members that are not listed here, or have another type, are kept
/// with the call but not read; null is the same as absent. A payload is refused only for an id that
/// cannot be kept.
#[derive(Clone, Copy, Debug)]
pub enum GatewayPayload {}

impl JsonSchema for GatewayPayload {
    fn schema_name() -> Cow<'static, str> {
        "GatewayPayload".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let count =
            |what: &str| json!({ "type": ["number", "null"], "minimum": 0, "description": what });
        let message = generator.subschema_for::<GatewayMessage>();
        json_schema!({
            "type": "object",
            "description": "What the service reads of a `gateway_a` payload: LiteLLM's standard \
                            logging object, or the same from any program. A payload may be any \
                            object. Members that are not listed here, or have another type, are \
                            kept with the call but not read; null is the same as absent. A \
                            payload is refused only for an id that cannot be kept (with NUL or \
                            a lone surrogate, or over 1,024 bytes).",
            "properties": {
                "litellm_call_id": {
                    "type": ["string", "integer", "null"],
                    "description": "The id of the call, unique over all Sessions: best a UUID. A call of the same id and `startTime` is stored once; with another `startTime` it is another call, and in another Session a conflict. Without it, the id of the response is used.",
                },
                "model": optional_text("The model; by default that of the response."),
                "custom_llm_provider": optional_text("The provider of the model."),
                "call_type": optional_text("What was logged, as LiteLLM names it. What is no call of a model with messages, such as an embedding or a search, is skipped (`not_an_inference_call`)."),
                "input": {
                    "description": "What was sent to the model, in the form of OpenAI's Responses; read if there are no `messages`, together with `instructions`.",
                },
                "output": {
                    "description": "What the model answered, in the form of OpenAI's Responses; read if there is no `response`.",
                },
                "messages": {
                    "description": "What was sent to the model: messages in order, or one text of the user.",
                    "anyOf": [{ "type": "array", "items": message }, { "type": ["string", "null"] }],
                },
                "response": {
                    "type": ["object", "null"],
                    "description": "What the model answered. Responses in OpenAI's form (`output`) and Anthropic's (`content`) are read too.",
                    "properties": {
                        "id": optional_text("The id of the answer."),
                        "model": optional_text("The model that answered."),
                        "choices": {
                            "type": ["array", "null"],
                            "description": "Answers; the first is read, and the others are counted as left out.",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "finish_reason": optional_text("Why the model stopped."),
                                    "message": { "anyOf": [message, { "type": "null" }] },
                                },
                            },
                        },
                    },
                },
                "usage": {
                    "type": ["object", "null"],
                    "description": "The tokens that the call used; by default those of the response.",
                    "properties": {
                        "prompt_tokens": count("Input tokens."),
                        "completion_tokens": count("Output tokens."),
                    },
                },
                "startTime": count("When the call began, in Unix seconds; over 20,000,000,000, milliseconds. Together with the end, it gives the duration."),
                "endTime": count("When the call ended, in Unix seconds or milliseconds. `POST /ingest/gateway/{provider}` dates the call by its end, else by its beginning; `POST /ingest/gateway` by `capture`."),
                "response_time_ms": count("The duration in milliseconds; takes precedence over the times."),
                "end_user": optional_text("The user."),
                "metadata": {
                    "type": ["object", "null"],
                    "description": "The Session and the user, for `POST /ingest/gateway/{provider}`, and for an envelope that does not name them.",
                    "properties": {
                        "session_id": optional_text("The Session, any text."),
                        "user_id": optional_text("The user."),
                    },
                },
            },
            "examples": [
                {
                    "litellm_call_id": "7c3e5a10-4b52-4c0d-9a39-0e6f7c1d2b84",
                    "model": "gpt-5",
                    "custom_llm_provider": "openai",
                    "metadata": { "session_id": "fix-the-pager", "user_id": "ann" },
                    "messages": [{ "role": "user", "content": "Why does the pager fire at night?" }],
                    "response": { "choices": [{
                        "finish_reason": "stop",
                        "message": { "role": "assistant", "content": "A cron job restarts the queue." },
                    }] },
                    "usage": { "prompt_tokens": 12, "completion_tokens": 7 },
                    "startTime": 1_795_177_187.25,
                    "endTime": 1_795_177_189.5,
                },
                {
                    "litellm_call_id": "7c3e5a10-4b52-4c0d-9a39-0e6f7c1d2b85",
                    "model": "claude-sonnet-5",
                    "metadata": { "session_id": "fix-the-pager" },
                    "messages": [
                        { "role": "user", "content": [{ "type": "text", "text": "Look at the queue." }] },
                        { "role": "assistant", "content": [
                            { "type": "tool_call", "id": "t1", "name": "read_file", "arguments": { "path": "queue.rs" } },
                        ] },
                        { "role": "tool", "content": [
                            { "type": "tool_call_response", "id": "t1", "result": "fn restart() {}" },
                        ] },
                    ],
                    "response": { "choices": [{
                        "message": { "role": "assistant", "content": [
                            { "type": "thinking", "thinking": "It restarts." },
                            { "type": "text", "text": "The restart is here." },
                        ] },
                    }] },
                },
            ],
        })
    }
}

/// Declares a type that exists only as a schema.
macro_rules! described {
    ($name:ident = |$generator:ident| $schema:expr) => {
        enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

described! { GatewayMessage = |generator| {
    let parts = [
        generator.subschema_for::<GatewayTextPart>(),
        generator.subschema_for::<GatewayThinkingPart>(),
        generator.subschema_for::<GatewayToolCallPart>(),
        generator.subschema_for::<GatewayToolResultPart>(),
        generator.subschema_for::<GatewayOtherPart>(),
    ];
    json_schema!({
        "type": "object",
        "description": "One message of a gateway's payload.",
        "required": ["role"],
        "properties": {
            "role": text("The role: any word, such as `system`, `user`, `assistant` or `tool`."),
            "content": {
                "description": "The content: a text, or a list of parts. Parts of other kinds, \
                                such as images and files, are counted as left out.",
                "anyOf": [
                    { "type": "string" },
                    { "type": "null" },
                    { "type": "array", "items": { "anyOf": parts } },
                ],
            },
            "tool_calls": {
                "type": ["array", "null"],
                "description": "Tool calls in OpenAI's form.",
                "items": { "type": "object" },
            },
            "tool_call_id": optional_text("For the role `tool`: the id of the tool call that this is the result of."),
        },
    })
} }

described! { GatewayTextPart = |_generator| json_schema!({
    "type": "object",
    "description": "A text.",
    "required": ["type", "text"],
    "properties": {
        "type": { "type": "string", "enum": ["text", "input_text", "output_text"], "description": "The kind." },
        "text": text("The text."),
    },
}) }

described! { GatewayThinkingPart = |_generator| json_schema!({
    "type": "object",
    "description": "Readable reasoning of the model.",
    "required": ["type", "thinking"],
    "properties": {
        "type": { "type": "string", "const": "thinking", "description": "The kind." },
        "thinking": text("The reasoning."),
    },
}) }

described! { GatewayToolCallPart = |_generator| json_schema!({
    "type": "object",
    "description": "A tool call of the model.",
    "required": ["type", "id"],
    "properties": {
        "type": { "type": "string", "enum": ["tool_call", "tool_use"], "description": "The kind." },
        "id": text("The id that the model gave the call."),
        "name": optional_text("The name of the tool."),
        "arguments": { "type": ["object", "null"], "description": "The arguments; in a `tool_use`, `input`." },
    },
}) }

described! { GatewayToolResultPart = |_generator| json_schema!({
    "type": "object",
    "description": "The result of a tool call.",
    "required": ["type"],
    "properties": {
        "type": {
            "type": "string",
            "enum": ["tool_call_response", "tool_result"],
            "description": "The kind.",
        },
        "id": optional_text("The id of the tool call; in a `tool_result`, `tool_use_id`."),
        "result": { "description": "The result, any value; in a `tool_result`, `content`." },
    },
}) }

described! { GatewayOtherPart = |_generator| json_schema!({
    "type": "object",
    "description": "A part of another kind. It is counted as left out.",
    "required": ["type"],
    "properties": {
        "type": {
            "description": "The kind.",
            "not": { "enum": [
                "text", "input_text", "output_text", "thinking", "tool_call", "tool_use",
                "tool_call_response", "tool_result",
            ] },
        },
    },
}) }
