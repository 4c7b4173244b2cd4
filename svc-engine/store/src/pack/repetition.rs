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
    ids: Ids<'m>,
    parts: Vec<&'m Part>,
    /// The part that was found last. The next one is likely to be near it.
    last: usize,
}

/// The ids of a call that its payload repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ids<'m> {
    pub(crate) session_id: &'m str,
    pub(crate) model_call_id: Option<&'m str>,
}

/// The stored value that a value of the payload equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The Session of the call.
    SessionId,
    /// The model's own id of the call.
    ModelCallId,
    /// A part, by its index.
    Part(Form, usize),
}

/// How a part contains a value of the payload. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its text is the string.
    Text,
    /// Its id is the string.
    Id,
    /// Its arguments or result are the value.
    Value,
    /// Its arguments or result are the document that the string holds.
    Document(usize),
}

impl Form {
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
enum Content<'m> {
    Text(&'m Text),
    Arguments(&'m Object),
    Result(&'m Json),
}

fn content(part: &Part) -> (Option<&str>, Content<'_>) {
    match part {
        Part::Text { content } | Part::Reasoning { content } => (None, Content::Text(content)),
        Part::ToolCall { id, arguments, .. } => (Some(id), Content::Arguments(arguments)),
        Part::ToolCallResponse { id, result } => match result {
            Json::String(text) => (Some(id), Content::Text(text)),
            result => (Some(id), Content::Result(result)),
        },
    }
}

impl<'m> Repetition<'m> {
    /// Returns the parts of these messages together with the ids of the call.
    pub(crate) fn of(ids: Ids<'m>, messages: &'m [Message]) -> Self {
        Self {
            ids,
            parts: messages.iter().flat_map(|message| &message.parts).collect(),
            last: 0,
        }
    }

    /// Returns the stored value that equals a string, or a value with members or items.
    pub(crate) fn find(&mut self, value: &Json) -> Option<Place> {
        if let Json::String(text) = value
            && text.len() >= ID_FROM
        {
            if *text == *self.ids.session_id {
                return Some(Place::SessionId);
            }
            if self.ids.model_call_id.is_some_and(|id| *text == *id) {
                return Some(Place::ModelCallId);
            }
        }
        let count = self.parts.len();
        for near in 0..count.min(NEAR) {
            let place = (self.last + near) % count;
            if let Some(form) = form(self.parts[place], value) {
                self.last = place;
                return Some(Place::Part(form, place));
            }
        }
        None
    }

    /// Appends the canonical form of a stored value.
    pub(crate) fn write(&self, place: Place, out: &mut Vec<u8>) -> Option<()> {
        let (form, part) = match place {
            Place::SessionId => {
                Text::from(self.ids.session_id).write_escaped(out);
                return Some(());
            }
            Place::ModelCallId => {
                Text::from(self.ids.model_call_id?).write_escaped(out);
                return Some(());
            }
            Place::Part(form, part) => (form, *self.parts.get(part)?),
        };
        match (form, content(part)) {
            (Form::Id, (Some(id), _)) => Text::from(id).write_escaped(out),
            (Form::Text, (_, Content::Text(text))) => text.write_escaped(out),
            (Form::Value, (_, Content::Arguments(arguments))) => arguments.write_canonical(out),
            (Form::Value, (_, Content::Result(result))) => result.write_canonical(out),
            (Form::Document(spelling), (_, content)) => {
                let mut text = Vec::new();
                let spelling = Spelling::ALL.get(spelling)?;
                match content {
                    Content::Arguments(arguments) => spelling.write_object(arguments, &mut text),
                    Content::Result(result) => spelling.write(result, &mut text),
                    Content::Text(_) => return None,
                }
                Text::from_wtf8(text)?.write_escaped(out);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Returns how a part contains a value.
fn form(part: &Part, value: &Json) -> Option<Form> {
    let (id, content) = content(part);
    match (value, content) {
        (Json::String(text), _) if id.is_some_and(|id| !id.is_empty() && *text == *id) => {
            Some(Form::Id)
        }
        (Json::String(text), Content::Text(stored)) => {
            (!text.is_empty() && text == stored).then_some(Form::Text)
        }
        (Json::String(text), Content::Arguments(stored)) => {
            Spelling::of_object(stored, text.as_bytes()).map(Form::Document)
        }
        (Json::String(text), Content::Result(stored)) => {
            Spelling::of(stored, text.as_bytes()).map(Form::Document)
        }
        (Json::Object(value), Content::Arguments(stored)) => {
            (!stored.is_empty() && value == stored).then_some(Form::Value)
        }
        (Json::Object(_) | Json::Array(_), Content::Result(stored)) => {
            (value == stored).then_some(Form::Value)
        }
        _ => None,
    }
}
