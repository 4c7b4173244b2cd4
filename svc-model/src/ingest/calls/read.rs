//! Reads a request with calls, member by member.

use super::{CallInput, CallOrigin, CallsRequest, ContinuedCall, ReaderReport, SentCall};
use crate::evidence::{LeftOut, Message, Part, PartType};
use crate::field::{FieldKind, Fields, FromField, Undeclared, Violation, Violations};
use crate::id::{ForeignId, is_trimmed};
use crate::json::{Json, Object, Text};
use crate::limit::{
    AGENT_WORD_CHARACTERS_MAX, PATH_BYTES_MAX, SENT_CALL_MESSAGES_MAX, SENT_CALLS_MAX,
    SENT_PARTS_MAX,
};
use crate::usage::TokenCounts;

const CALLS: (usize, &str) = (SENT_CALLS_MAX, "must have at most 1000 calls");
const MESSAGES: (usize, &str) = (SENT_CALL_MESSAGES_MAX, TOO_MANY_MESSAGES);
const PARTS: (usize, &str) = (SENT_PARTS_MAX, TOO_MANY_PARTS);
const TOO_MANY_MESSAGES: &str = "must have at most 10000 messages";
const TOO_MANY_PARTS: &str = "must have at most 100000 parts";

/// Reads a request.
pub(super) fn request(body: &Object) -> Result<CallsRequest, Violations> {
    let fields = Fields::new(body, vec!["body".into()]);
    let mut violations = Violations::default();
    let v = &mut violations;
    let source = fields.required_object("source", v);
    let source = source.and_then(|fields| origin(&fields, v));
    let session_id = fields.required("session_id", v);
    let user_id = fields.nullable("user_id", v);
    let continues = fields.nullable_object("continues", v);
    let continues = continues.and_then(|continued| {
        let continued_call = continued_call(&continued, v)?;
        if Some(&continued_call.session_id) == session_id.as_ref() {
            let place = continued.loc("session_id");
            v.push(Violation::rule("must not be the Session itself").at(place));
        }
        Some(continued_call)
    });
    let reader = fields.nullable_object("reader", v);
    let reader = reader.map(|fields| reader_report(&fields, v));
    let mut parts = 0;
    let calls = fields.required_objects("calls", CALLS, v);
    let calls = calls.map(|calls| {
        let read = calls.iter().map(|fields| call(fields, &mut parts, v));
        // Every call is looked at, so that a reply names every one that is wrong.
        read.collect::<Vec<_>>().into_iter().collect::<Option<_>>()
    });
    if parts > PARTS.0 {
        v.push(Violation::new(FieldKind::TooLong, PARTS.1).at(fields.loc("calls")));
    }
    let declared = [
        "source",
        "session_id",
        "user_id",
        "continues",
        "reader",
        "calls",
    ];
    fields.deny_undeclared(&declared, Undeclared::ByName, v);
    violations.finish(|| {
        Some(CallsRequest {
            source: source?,
            session_id: session_id?,
            user_id,
            continues,
            reader,
            calls: calls??,
        })
    })
}

fn origin(fields: &Fields<'_>, v: &mut Violations) -> Option<CallOrigin> {
    let kind = fields.required("kind", v);
    let agent = fields.required("agent", v);
    let agent_version = word(fields, "agent_version", v);
    let declared = ["kind", "agent", "agent_version"];
    fields.deny_undeclared(&declared, Undeclared::ByName, v);
    Some(CallOrigin {
        kind: kind?,
        agent: agent?,
        agent_version,
    })
}

fn continued_call(fields: &Fields<'_>, v: &mut Violations) -> Option<ContinuedCall> {
    let session_id = fields.required("session_id", v);
    let response_id = fields.nullable("response_id", v);
    fields.deny_undeclared(&["session_id", "response_id"], Undeclared::ByName, v);
    Some(ContinuedCall {
        session_id: session_id?,
        response_id,
    })
}

fn reader_report(fields: &Fields<'_>, v: &mut Violations) -> ReaderReport {
    let report = ReaderReport {
        version: word(fields, "version", v),
        lines: unsigned(fields, "lines", v),
        unknown: unsigned(fields, "unknown", v),
        format_changed: unsigned(fields, "format_changed", v),
    };
    let declared = ["version", "lines", "unknown", "format_changed"];
    fields.deny_undeclared(&declared, Undeclared::ByName, v);
    report
}

const CALL: [&str; 17] = [
    "response_id",
    "call_id",
    "request_id",
    "model",
    "model_provider",
    "started_at",
    "ended_at",
    "input",
    "output",
    "usage",
    "cost_usd_micros",
    "tier",
    "stop_reason",
    "cwd",
    "git_branch",
    "subagent",
    "left_out",
];

fn call(fields: &Fields<'_>, parts: &mut usize, v: &mut Violations) -> Option<SentCall> {
    let response_id = fields.nullable::<ForeignId>("response_id", v);
    let call_id = fields.nullable::<ForeignId>("call_id", v);
    let is_given = |name| fields.get(name).is_some_and(|id| *id != Json::Null);
    if !is_given("response_id") && !is_given("call_id") {
        v.push(Violation::rule("must have a response_id or a call_id").at(fields.place()));
    }
    let ended_at = fields.required("ended_at", v);
    let input = fields.required_object("input", v);
    let input = input.and_then(|fields| call_input(&fields, parts, v));
    let output = messages(fields, "output", parts, v);
    let usage = fields.nullable_object("usage", v);
    let usage = usage.map(|fields| token_counts(&fields, v));
    let left_out = fields.nullable_object("left_out", v);
    let left_out = left_out.map(|fields| left_out_counts(&fields, v));
    let count = input.as_ref().map_or(0, |input| input.messages.len());
    if count + output.as_ref().map_or(0, Vec::len) > MESSAGES.0 {
        v.push(Violation::new(FieldKind::TooLong, MESSAGES.1).at(fields.place()));
    }
    let call = SentCall {
        response_id,
        call_id,
        request_id: fields.nullable("request_id", v),
        model: fields.nullable("model", v),
        model_provider: fields.nullable("model_provider", v),
        started_at: fields.nullable("started_at", v),
        ended_at: ended_at?,
        input: input?,
        output: output?,
        usage,
        cost_usd_micros: fields
            .nullable::<Count>("cost_usd_micros", v)
            .map(|count| count.0),
        tier: word(fields, "tier", v),
        stop_reason: word(fields, "stop_reason", v),
        cwd: path(fields, "cwd", v),
        git_branch: path(fields, "git_branch", v),
        subagent: fields.nullable("subagent", v),
        left_out,
    };
    fields.deny_undeclared(&CALL, Undeclared::ByName, v);
    Some(call)
}

fn call_input(fields: &Fields<'_>, parts: &mut usize, v: &mut Violations) -> Option<CallInput> {
    let after = fields.nullable("after", v);
    let messages = messages(fields, "messages", parts, v);
    fields.deny_undeclared(&["after", "messages"], Undeclared::ByName, v);
    Some(CallInput {
        after,
        messages: messages?,
    })
}

fn messages(
    fields: &Fields<'_>,
    name: &'static str,
    parts: &mut usize,
    v: &mut Violations,
) -> Option<Vec<Message>> {
    let messages = fields.required_objects(name, MESSAGES, v)?;
    let read = messages.iter().map(|fields| message(fields, parts, v));
    read.collect::<Vec<_>>().into_iter().collect()
}

fn message(fields: &Fields<'_>, parts: &mut usize, v: &mut Violations) -> Option<Message> {
    let role = fields.required::<Role>("role", v);
    let finish_reason = fields.nullable::<Text>("finish_reason", v);
    let objects = fields.required_objects("parts", PARTS, v)?;
    *parts += objects.len();
    let read: Vec<Option<Part>> = objects.iter().map(|fields| part(fields, v)).collect();
    let declared = ["role", "parts", "finish_reason"];
    fields.deny_undeclared(&declared, Undeclared::ByName, v);
    Some(Message {
        role: role?.0,
        parts: read.into_iter().collect::<Option<_>>()?,
        finish_reason,
    })
}

/// Reads a canonical part.
fn part(fields: &Fields<'_>, v: &mut Violations) -> Option<Part> {
    let id = |fields: &Fields<'_>, v: &mut Violations| {
        let id = fields.required::<ForeignId>("id", v);
        id.map(|id| id.as_str().to_owned())
    };
    let (part, declared): (Option<Part>, &[&str]) = match fields.required("type", v)? {
        PartType::Text => (
            fields
                .required("content", v)
                .map(|content| Part::Text { content }),
            &["type", "content"],
        ),
        PartType::Reasoning => (
            fields
                .required::<Readable>("content", v)
                .map(|content| Part::Reasoning { content: content.0 }),
            &["type", "content"],
        ),
        PartType::ToolCall => {
            let (id, name) = (id(fields, v), fields.required("name", v));
            let arguments = fields.required::<Arguments>("arguments", v);
            let part = || {
                Some(Part::ToolCall {
                    id: id?,
                    name: name?,
                    arguments: arguments?.0,
                    sent: None,
                })
            };
            (part(), &["type", "id", "name", "arguments"])
        }
        PartType::ToolCallResponse => {
            let id = id(fields, v);
            let result = fields.required::<Value>("result", v).map(|result| result.0);
            let part = || {
                Some(Part::ToolCallResponse {
                    id: id?,
                    result: result?,
                })
            };
            (part(), &["type", "id", "result"])
        }
    };
    fields.deny_undeclared(declared, Undeclared::ByName, v);
    part
}

fn token_counts(fields: &Fields<'_>, v: &mut Violations) -> TokenCounts {
    const COUNTS: [&str; 7] = [
        "input_tokens_uncached",
        "cache_read_tokens",
        "cache_write_tokens",
        "cache_write_5m_tokens",
        "cache_write_1h_tokens",
        "output_tokens",
        "reasoning_tokens",
    ];
    let [
        uncached,
        read,
        mut write,
        write_5m,
        write_1h,
        output,
        reasoning,
    ] = COUNTS.map(|name| fields.nullable::<Count>(name, v).map(|count| count.0));
    let mut wrong = |name, message| v.push(Violation::rule(message).at(fields.loc(name)));
    match (write_5m, write_1h) {
        (Some(short), Some(long)) => {
            let sum = short.checked_add(long);
            if sum.is_none() || write.is_some_and(|write| sum != Some(write)) {
                wrong("cache_write_tokens", "must be the sum of its lifetimes");
            }
            write = sum;
        }
        (None, None) => {}
        (None, Some(_)) => wrong("cache_write_5m_tokens", "must be given with the other"),
        (Some(_), None) => wrong("cache_write_1h_tokens", "must be given with the other"),
    }
    if output.zip(reasoning).is_some_and(|(all, part)| part > all) {
        wrong("reasoning_tokens", "must be at most output_tokens");
    }
    fields.deny_undeclared(&COUNTS, Undeclared::ByName, v);
    TokenCounts {
        input_tokens_uncached: uncached,
        cache_read_tokens: read,
        cache_write_tokens: write,
        cache_write_5m_tokens: write_5m,
        cache_write_1h_tokens: write_1h,
        output_tokens: output,
        reasoning_tokens: reasoning,
    }
}

fn left_out_counts(fields: &Fields<'_>, v: &mut Violations) -> LeftOut {
    const COUNTS: [&str; 5] = [
        "unsupported_content",
        "opaque_reasoning",
        "missing_id",
        "malformed_arguments",
        "truncated",
    ];
    let [
        unsupported_content,
        opaque_reasoning,
        missing_id,
        malformed_arguments,
        truncated,
    ] = COUNTS.map(|name| unsigned(fields, name, v));
    fields.deny_undeclared(&COUNTS, Undeclared::ByName, v);
    LeftOut {
        unsupported_content,
        opaque_reasoning,
        missing_id,
        malformed_arguments,
        truncated,
    }
}

fn unsigned(fields: &Fields<'_>, name: &'static str, v: &mut Violations) -> u64 {
    let count = fields.nullable::<Count>(name, v);
    count.map_or(0, |count| count.0.unsigned_abs())
}

fn word(fields: &Fields<'_>, name: &'static str, v: &mut Violations) -> Option<String> {
    fields.nullable::<Word>(name, v)?.0
}

fn path(fields: &Fields<'_>, name: &'static str, v: &mut Violations) -> Option<String> {
    fields.nullable::<Path>(name, v)?.0
}

/// A whole number that is not negative.
struct Count(i64);

impl FromField for Count {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let number = match value {
            Json::Number(number) if number.is_integer() => number,
            _ => return Err(Violation::new(FieldKind::IntType, "must be an integer")),
        };
        match number.as_i64() {
            Some(count) if count >= 0 => Ok(Self(count)),
            None if !number.as_str().starts_with('-') => Err(Violation::new(
                FieldKind::LessThanEqual,
                "must be at most 2^63-1",
            )),
            _ => Err(Violation::new(
                FieldKind::GreaterThanEqual,
                "must be at least 0",
            )),
        }
    }
}

/// Any text.
impl FromField for Text {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        value.as_text().cloned().ok_or(expected)
    }
}

/// A text that is not blank, exactly as it is.
struct Readable(Text);

impl FromField for Readable {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let text = Text::from_field(value)?;
        if text.is_blank() {
            return Err(Violation::rule("must not be blank"));
        }
        Ok(Self(text))
    }
}

/// A text that is not blank, trimmed.
struct Role(Text);

impl FromField for Role {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Readable::from_field(value).map(|role| Self(role.0.trimmed()))
    }
}

struct Arguments(Object);

impl FromField for Arguments {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::DictType, "must be a JSON object");
        value.as_object().cloned().map(Self).ok_or(expected)
    }
}

struct Value(Json);

impl FromField for Value {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Ok(Self(value.clone()))
    }
}

/// A short text, trimmed; `None` if it is blank.
struct Word(Option<String>);

impl FromField for Word {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let text = scalar_text(value)?;
        if text.chars().count() > AGENT_WORD_CHARACTERS_MAX {
            return Err(Violation::rule("must have at most 64 characters"));
        }
        Ok(Self((!text.is_empty()).then(|| text.to_owned())))
    }
}

/// A path or the name of a branch, trimmed; `None` if it is blank.
struct Path(Option<String>);

impl FromField for Path {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let text = scalar_text(value)?;
        if text.len() > PATH_BYTES_MAX {
            return Err(Violation::rule("must have at most 4096 bytes of UTF-8"));
        }
        Ok(Self((!text.is_empty()).then(|| text.to_owned())))
    }
}

fn scalar_text(value: &Json) -> Result<&str, Violation> {
    let expected = Violation::new(FieldKind::StringType, "must be a string");
    let text = value.as_text().ok_or(expected)?.as_str();
    let text = text.filter(|text| !text.contains('\0'));
    let unfit = Violation::rule("must hold no NUL and no surrogate");
    Ok(text.ok_or(unfit)?.trim_matches(is_trimmed))
}
