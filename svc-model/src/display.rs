//! Replies as text for people: the words that the shell and the console share. Each of these
//! surfaces escapes external text in its own way.

use std::fmt::Write as _;

use crate::ingest::{CiProvider, GatewayProvider};
use crate::json::Text;
use crate::open::Open;
use crate::query::{InferenceSkip, TimelineEvent};
use crate::time::Instant;

/// A kind of system that has a product name. JSON uses a neutral word for it.
pub trait Product: Copy + Send + Sync + 'static {
    /// Every kind.
    const ALL: &'static [Self];

    /// Returns the product name of a kind of system. For a kind that only a newer service knows,
    /// returns its word, which is external text.
    fn product(self) -> &'static str;

    /// Returns the neutral word of the service.
    fn word(self) -> &'static str;

    /// Returns the kind with this product name or neutral word.
    fn named(text: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|kind| kind.product() == text || kind.word() == text)
    }
}

impl Product for CiProvider {
    const ALL: &'static [Self] = Self::ALL;

    fn product(self) -> &'static str {
        match self {
            Self::ForgeActions => "github-actions",
            Self::CiA => "jenkins",
            Self::CiB => "gitlab-ci",
            Self::CiC => "circleci",
            Self::CiD => "buildkite",
            Self::Other => "other",
        }
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Product for GatewayProvider {
    const ALL: &'static [Self] = Self::ALL;

    fn product(self) -> &'static str {
        match self {
            Self::GatewayA => "litellm",
            Self::GatewayB => "portkey",
            Self::GatewayC => "helicone",
            Self::Unknown => "unknown",
        }
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// Returns the product name of a kind of system. For one that only a newer service knows, returns
/// its word, which is external text.
pub fn product<T: Product>(kind: &Open<T>) -> &str {
    match kind {
        Open::Known(kind) => kind.product(),
        Open::Unknown(word) => word.word(),
    }
}

/// Returns the provider and the name of a model: `anthropic/claude-opus-5`. Many gateways put the
/// provider before the name too; it is not repeated. What is unknown is a dash.
pub fn model(provider: Option<&str>, name: Option<&str>) -> String {
    model_or(provider, name, "-")
}

/// Returns a model as [`model`] does, with this placeholder for what is unknown.
fn model_or(provider: Option<&str>, name: Option<&str>, unknown: &str) -> String {
    let is_in = |name: &str, provider: &str| {
        let rest = name.strip_prefix(provider);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    match (provider, name) {
        (Some(provider), Some(name)) if is_in(name, provider) => name.to_owned(),
        _ => format!(
            "{}/{}",
            provider.unwrap_or(unknown),
            name.unwrap_or(unknown)
        ),
    }
}

/// Returns the date and time of a moment, in UTC and to the second: `2026-01-31 09:30:00`.
pub fn clock(at: Instant) -> String {
    let text = at.to_string().replacen('T', " ", 1);
    text.chars().take("2026-01-31 09:30:00".len()).collect()
}

/// Returns whether a character of an external text is not shown as itself: it controls a terminal,
/// breaks a line, changes the direction of the text around it, or is invisible, so that it could say
/// something to a model that no person sees. Every surface for people and models escapes these.
///
/// The selectors of text and emoji style are shown: they follow many ordinary symbols.
pub const fn is_hidden(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The bytes of a lone surrogate in generalised UTF-8.
const SURROGATE_BYTES: usize = 3;

/// Returns a captured text, which may have several lines. Lone surrogates are escaped. Each other
/// character except line breaks and tabs is added by `push`, which escapes what its surface must
/// not show.
pub fn escaped(text: &Text, push: impl Fn(char, &mut String)) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        let whole = match str::from_utf8(rest) {
            Ok(whole) => whole,
            Err(error) => str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        for character in whole.chars() {
            match character {
                '\n' | '\t' => escaped.push(character),
                other => push(other, &mut escaped),
            }
        }
        let Some(surrogate) = rest[whole.len()..].first_chunk::<SURROGATE_BYTES>() else {
            return escaped;
        };
        let [_, middle, last] = surrogate.map(u16::from);
        let unit = 0xd000 | (middle & 0x3f) << 6 | last & 0x3f;
        write!(escaped, "\\u{unit:04x}").expect("a string takes everything");
        rest = &rest[whole.len() + SURROGATE_BYTES..];
    }
}

/// Returns why calls were not searched for in a commit, or not in all of it.
pub const fn reason(skip: InferenceSkip) -> &'static str {
    match skip {
        InferenceSkip::CommitDiffUnavailable => {
            "the mirror lacks the commit or cannot read its diff"
        }
        InferenceSkip::ContentErased => "the content of a call that may have written it was erased",
        InferenceSkip::MalformedDiffSection => "part of the diff is malformed",
        InferenceSkip::MirrorAbsent => "the repository has no mirror",
        InferenceSkip::MirrorUnreadable => "the mirror cannot be opened",
        InferenceSkip::PushUnknown => "it is unknown which push first brought the commit",
        InferenceSkip::UnsupportedDiffSection => {
            "part of the diff is not text, such as a binary file"
        }
    }
}

/// How a surface writes what differs between surfaces.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// Escapes external text.
    pub escape: fn(&str) -> String,
    /// The placeholder for an absent value.
    pub none: &'static str,
    /// The minus sign.
    pub minus: char,
}

impl Surface {
    /// Returns the source and the description of an event.
    pub fn describe(self, event: &TimelineEvent) -> (String, String) {
        let escape = self.escape;
        match event {
            TimelineEvent::InferenceCall {
                gateway_provider,
                model_provider,
                model,
                input_tokens,
                output_tokens,
                duration_ms,
                ..
            } => {
                let [provider, name] = [model_provider, model]
                    .map(|name| name.as_deref().filter(|name| !name.is_empty()));
                let model = escape(&model_or(provider, name, self.none));
                let tokens = input_tokens.zip(*output_tokens);
                let tokens =
                    tokens.map(|(input, output)| format!("{input} tokens in, {output} out"));
                let duration = duration_ms.map(|duration| format!("{duration} ms"));
                let what: Vec<String> = [Some(model), tokens, duration]
                    .into_iter()
                    .flatten()
                    .collect();
                (escape(product(gateway_provider)), what.join(", "))
            }
            TimelineEvent::DeveloperDecision {
                agent_harness,
                accepted,
                explicit,
                interaction_mode,
                call_id,
                ..
            } => {
                let verdict = if *accepted { "accepted" } else { "rejected" };
                let who = if *explicit { "a person" } else { "a rule" };
                let call_id = call_id.as_ref();
                let call_id = call_id.map_or_else(String::new, |id| format!(", {}", escape(id)));
                let mode = escape(interaction_mode.as_str());
                let what = format!("{verdict} by {who}, {mode}{call_id}");
                (escape(agent_harness.as_str()), what)
            }
            TimelineEvent::EditObservation {
                agent_harness,
                call_id,
                external_lines_added,
                external_lines_removed,
                ..
            } => {
                let lines = |sign: char, lines: &Option<i64>| match lines {
                    Some(lines) => format!("{sign}{lines}"),
                    None => format!("{sign}?"),
                };
                let what = format!(
                    "{}, by others {} {}",
                    escape(call_id),
                    lines('+', external_lines_added),
                    lines(self.minus, external_lines_removed)
                );
                (escape(agent_harness.as_str()), what)
            }
            TimelineEvent::RejectedEdit {
                agent_harness,
                call_id,
                ..
            } => (escape(agent_harness.as_str()), escape(call_id)),
            TimelineEvent::RetryLinkage {
                agent_harness,
                tool_name,
                rejected_call_id,
                accepted_call_id,
                ..
            } => {
                let what = format!(
                    "{} {}, accepted as {}",
                    escape(tool_name.as_str()),
                    escape(rejected_call_id),
                    escape(accepted_call_id)
                );
                (escape(agent_harness.as_str()), what)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::FactId;

    #[test]
    fn what_steers_or_is_invisible_is_not_shown_as_itself() {
        for (first, last, what) in [
            (0x00, 0x1f, "control characters"),
            (0x7f, 0x9f, "control characters"),
            (0xad, 0xad, "the soft hyphen"),
            (0x61c, 0x61c, "the mark of Arabic letters"),
            (0x180b, 0x180f, "Mongolian selectors"),
            (
                0x200b,
                0x200f,
                "zero-width characters and marks of direction",
            ),
            (0x2028, 0x2029, "line separators"),
            (0x202a, 0x202e, "embeddings and overrides"),
            (0x2060, 0x2064, "invisible operators"),
            (0x2066, 0x2069, "isolates"),
            (0x3164, 0x3164, "a filler"),
            (0xfe00, 0xfe0d, "variation selectors"),
            (0xfeff, 0xfeff, "the byte order mark"),
            (0xfff9, 0xfffb, "annotations"),
            (0x1d173, 0x1d17a, "musical control characters"),
            (0xe0000, 0xe007f, "tag letters"),
            (0xe0100, 0xe01ef, "more variation selectors"),
        ] {
            for code in first..=last {
                let character = char::from_u32(code).unwrap();
                assert!(is_hidden(character), "{what}: {code:x}");
            }
        }
        for shown in "a é\u{a0}中ا🙂⚠\u{fe0f}\u{2010}\u{202f}\u{fffd}\u{10ffff}".chars() {
            assert!(!is_hidden(shown), "{:x}", u32::from(shown));
        }
    }

    #[test]
    fn a_provider_is_named_once() {
        for (provider, name, shown) in [
            (Some("openai"), Some("gpt-6"), "openai/gpt-6"),
            (Some("openai"), Some("openai/gpt-6"), "openai/gpt-6"),
            (Some("openai"), Some("openai-gpt"), "openai/openai-gpt"),
            (Some("openai"), Some("azure/gpt-6"), "openai/azure/gpt-6"),
            (None, Some("openai/gpt-6"), "-/openai/gpt-6"),
            (Some("openai"), None, "openai/-"),
        ] {
            assert_eq!(model(provider, name), shown);
            let event = TimelineEvent::InferenceCall {
                fact_id: FactId::new(Uuid::nil()),
                occurred_at: Instant::parse("2026-01-31T09:30:00Z").unwrap(),
                gateway_provider: GatewayProvider::GatewayA.into(),
                input_tokens: None,
                output_tokens: None,
                duration_ms: None,
                model_call_id: None,
                model_provider: provider.map(str::to_owned),
                model: name.map(str::to_owned),
            };
            let surface = Surface {
                escape: str::to_owned,
                none: "-",
                minus: '-',
            };
            assert_eq!(surface.describe(&event).1, shown);
        }
    }
}
