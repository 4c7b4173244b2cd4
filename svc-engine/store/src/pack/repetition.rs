//! Values in a raw payload that are also stored outside it: the parts of messages, and the ids of
//! the call.

use svc_model::evidence::{Message, Part};
use svc_model::json::{Json, Object, Text};

use super::spelling::Spelling;

/// How many parts are compared with one string. They occur roughly in the order of the payload.
const NEAR: usize = 64;

/// An id must have this many bytes to be searched for.
const ID_FROM: usize = 8;

/// The values stored outside a raw payload that the payload may repeat.
#[derive(Debug)]
pub(crate) struct Repetition<'m> {
    ids: CallIds<'m>,
    parts: Vec<&'m Part>,
    /// The part that was found last. The next one is likely to be near it.
    last: usize,
}

/// The ids of a call that its payload repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallIds<'m> {
    pub(crate) session_id: &'m str,
    pub(crate) model_call_id: Option<&'m str>,
}

/// The stored value that a value of the payload equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatedValue {
    /// The Session of the call.
    SessionId,
    /// The model's own id of the call.
    ModelCallId,
    /// A part, by its index.
    Part(RepetitionForm, usize),
}

/// How a part contains a value of the payload. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepetitionForm {
    /// Its text is the string.
    Text,
    /// Its id is the string.
    Id,
    /// Its arguments or result are the value.
    Value,
    /// Its arguments or result are the document that the string holds.
    Document(usize),
}

impl RepetitionForm {
    pub(crate) const COUNT: u8 = 7;

    #[expect(clippy::cast_possible_truncation, reason = "there are four spellings")]
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Id => 1,
            Self::Value => 2,
            Self::Document(spelling) => 3 + spelling as u8,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Text,
            1 => Self::Id,
            2 => Self::Value,
            3..Self::COUNT => Self::Document(usize::from(number) - 3),
            _ => return None,
        })
    }
}

/// The content of a part without its id.
enum PartContent<'m> {
    Text(&'m Text),
    Arguments(&'m Object),
    Result(&'m Json),
}

fn content(part: &Part) -> (Option<&str>, PartContent<'_>) {
    match part {
        Part::Text { content } | Part::Reasoning { content } => (None, PartContent::Text(content)),
        Part::ToolCall { id, arguments, .. } => (Some(id), PartContent::Arguments(arguments)),
        Part::ToolCallResponse { id, result } => match result {
            Json::String(text) => (Some(id), PartContent::Text(text)),
            result => (Some(id), PartContent::Result(result)),
        },
    }
}

impl<'m> Repetition<'m> {
    /// Returns the parts of these messages together with the ids of the call.
    pub(crate) fn of(ids: CallIds<'m>, messages: &'m [Message]) -> Self {
        Self {
            ids,
            parts: messages.iter().flat_map(|message| &message.parts).collect(),
            last: 0,
        }
    }

    /// Returns the stored value that equals a string, or a value with members or items.
    pub(crate) fn find(&mut self, value: &Json) -> Option<RepeatedValue> {
        if let Json::String(text) = value
            && text.len() >= ID_FROM
        {
            if *text == *self.ids.session_id {
                return Some(RepeatedValue::SessionId);
            }
            if self.ids.model_call_id.is_some_and(|id| *text == *id) {
                return Some(RepeatedValue::ModelCallId);
            }
        }
        let count = self.parts.len();
        for near in 0..count.min(NEAR) {
            let place = (self.last + near) % count;
            if let Some(form) = form(self.parts[place], value) {
                self.last = place;
                return Some(RepeatedValue::Part(form, place));
            }
        }
        None
    }

    /// Appends the canonical form of a stored value.
    pub(crate) fn write(&self, place: RepeatedValue, out: &mut Vec<u8>) -> Option<()> {
        let (form, part) = match place {
            RepeatedValue::SessionId => {
                Text::from(self.ids.session_id).write_escaped(out);
                return Some(());
            }
            RepeatedValue::ModelCallId => {
                Text::from(self.ids.model_call_id?).write_escaped(out);
                return Some(());
            }
            RepeatedValue::Part(form, part) => (form, *self.parts.get(part)?),
        };
        match (form, content(part)) {
            (RepetitionForm::Id, (Some(id), _)) => Text::from(id).write_escaped(out),
            (RepetitionForm::Text, (_, PartContent::Text(text))) => text.write_escaped(out),
            (RepetitionForm::Value, (_, PartContent::Arguments(arguments))) => {
                arguments.write_canonical(out);
            }
            (RepetitionForm::Value, (_, PartContent::Result(result))) => {
                result.write_canonical(out);
            }
            (RepetitionForm::Document(spelling), (_, content)) => {
                let mut text = Vec::new();
                let spelling = Spelling::ALL.get(spelling)?;
                match content {
                    PartContent::Arguments(arguments) => {
                        spelling.write_object(arguments, &mut text);
                    }
                    PartContent::Result(result) => spelling.write(result, &mut text),
                    PartContent::Text(_) => return None,
                }
                Text::from_wtf8(text)?.write_escaped(out);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Returns how a part contains a value.
fn form(part: &Part, value: &Json) -> Option<RepetitionForm> {
    let (id, content) = content(part);
    match (value, content) {
        (Json::String(text), _) if id.is_some_and(|id| !id.is_empty() && *text == *id) => {
            Some(RepetitionForm::Id)
        }
        (Json::String(text), PartContent::Text(stored)) => {
            (!text.is_empty() && text == stored).then_some(RepetitionForm::Text)
        }
        (Json::String(text), PartContent::Arguments(stored)) => {
            Spelling::of_object(stored, text.as_bytes()).map(RepetitionForm::Document)
        }
        (Json::String(text), PartContent::Result(stored)) => {
            Spelling::of(stored, text.as_bytes()).map(RepetitionForm::Document)
        }
        (Json::Object(value), PartContent::Arguments(stored)) => {
            (!stored.is_empty() && value == stored).then_some(RepetitionForm::Value)
        }
        (Json::Object(_) | Json::Array(_), PartContent::Result(stored)) => {
            (value == stored).then_some(RepetitionForm::Value)
        }
        _ => None,
    }
}
