//! Evidence, formatted for people.

use std::fmt::Write as _;

use svc_model::evidence::{EvidenceReadItem, Part, Reference};
use svc_model::json::Text;
use svc_model::open::Open;
use svc_view::SHELL;

use super::{escape_text, one_line};

/// Returns a reference in the form of the command line: `CALL:SIDE:MESSAGE:PART`.
pub(crate) fn reference(reference: &Reference) -> String {
    let Reference {
        inference_call_id,
        side,
        message_index,
        part_index,
    } = reference;
    format!("{inference_call_id}:{side}:{message_index}:{part_index}")
}

/// Returns the beginning of a part as one line.
pub(crate) fn part_line(part: &Open<Part>, characters_max: usize) -> String {
    let content = SHELL.content(part);
    let line = match part {
        Open::Known(Part::ToolCall { name, .. }) => format!("{} {content}", escape_text(name)),
        _ => content,
    };
    one_line(&line.into(), characters_max)
}

/// Returns the text after the role of a part.
fn heading(part: &Open<Part>) -> String {
    let kind = SHELL.kind(part);
    match part {
        Open::Known(Part::Text { .. }) => String::new(),
        Open::Known(Part::ToolCall { .. }) => format!(" {kind}"),
        _ => format!(" ({kind})"),
    }
}

/// Returns a whole part under a line that gives its position. Every line of the content is
/// indented, so that no content can look like such a line.
pub(crate) fn item_block(item: &EvidenceReadItem) -> String {
    let mut block = String::new();
    let (heading, content) = (heading(&item.part), SHELL.content_as_sent(item));
    let role = one_line(&item.role, 80);
    let finish = item
        .finish_reason
        .as_ref()
        .map(|reason| format!(", {}", one_line(reason, 80)));
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        writeln!(block, "{arguments}").expect("a string takes everything");
    };
    line(format_args!(
        "{}  {}",
        reference(&item.reference),
        item.observed_at
    ));
    line(format_args!(
        "  {role}{heading}{}",
        finish.unwrap_or_default()
    ));
    for content_line in content.split('\n') {
        if content_line.is_empty() {
            line(format_args!(""));
        } else {
            line(format_args!("    {content_line}"));
        }
    }
    block
}

/// Returns a text that may be absent.
pub(crate) fn optional(text: Option<&Text>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| one_line(text, 80))
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    fn item(part: &str) -> EvidenceReadItem {
        let text = format!(
            r#"{{"reference":{{"inference_call_id":"c:1","side":"output","message_index":2,"part_index":3}},"observed_at":"2026-01-15T09:30:00Z","role":"assistant","finish_reason":"stop","part":{part}}}"#
        );
        json::from_slice(text.as_bytes()).expect("an item")
    }

    #[test]
    fn content_cannot_look_like_a_heading() {
        let block = item_block(&item(
            r#"{"type":"text","content":"one\n\nc:9  two\u001b[1m"}"#,
        ));
        assert_eq!(
            block,
            "c:1:output:2:3  2026-01-15T09:30:00Z\n  assistant, stop\n    one\n\n    c:9  two\\u{1b}[1m\n"
        );
    }

    #[test]
    fn tool_parts_show_their_exact_values() {
        let call = item(
            r#"{"type":"tool_call","id":"t","name":"edit","arguments":{"n":1.10,"s":"\u00e9"}}"#,
        );
        assert!(item_block(&call).ends_with(
            "  assistant calls edit (tool call t), stop\n    {\"n\":1.10,\"s\":\"\\u00e9\"}\n"
        ));
        assert_eq!(part_line(&call.part, 14), "edit {\"n\":1.10…");
        let mut cut = item(r#"{"type":"tool_call","id":"t","name":"edit","arguments":{}}"#);
        cut.sent_arguments = Some("{\"path\": \"a".into());
        assert!(item_block(&cut).ends_with("    {}\n    sent as: {\"path\": \"a\n"));
        let result = item(r#"{"type":"tool_call_response","id":"t","result":"a\nb"}"#);
        assert!(item_block(&result).ends_with("(result of tool call t), stop\n    a\n    b\n"));
        assert_eq!(part_line(&result.part, 80), "a b");
    }
}
