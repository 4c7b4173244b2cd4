//! What a raw payload says that is stored beside it: the parts of messages, and the ids of the call.

use svc_model::evidence::{Message, Part};
use svc_model::json::{Json, Object, Text};

use super::spelling::Spelling;

/// How many parts are looked at for one string. They stand in the order of the payload, or nearly.
const NEAR: usize = 64;

/// From this many bytes on an id of the call is looked for.
const ID_FROM: usize = 8;

/// What is stored beside a raw payload and may be said in it.
#[derive(Debug)]
pub(super) struct Said<'m> {
    ids: Ids<'m>,
    parts: Vec<&'m Part>,
    /// The part that was found last: the next one is near.
    last: usize,
}

/// The ids of a call that its payload repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ids<'m> {
    pub(super) session_id: &'m str,
    pub(super) model_call_id: Option<&'m str>,
}

/// Where a value of a payload is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The Session of the call.
    SessionId,
    /// The model's own id of the call.
    ModelCallId,
    /// A part, by its place.
    Part(Way, usize),
}

/// How a part says a value of the payload. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Its text is the string.
    Text,
    /// Its id is the string.
    Id,
    /// Its arguments or result are the value.
    Value,
    /// Its arguments or result are the document that the string holds.
    Document(usize),
}

impl Way {
    pub(super) const COUNT: u8 = 7;

    #[expect(clippy::cast_possible_truncation, reason = "there are four spellings")]
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Id => 1,
            Self::Value => 2,
            Self::Document(spelling) => 3 + spelling as u8,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Text,
            1 => Self::Id,
            2 => Self::Value,
            3..Self::COUNT => Self::Document(usize::from(number) - 3),
            _ => return None,
        })
    }
}

/// What a part says beside its id.
enum Saying<'m> {
    Text(&'m Text),
    Arguments(&'m Object),
    Result(&'m Json),
}

fn saying(part: &Part) -> (Option<&str>, Saying<'_>) {
    match part {
        Part::Text { content } | Part::Reasoning { content } => (None, Saying::Text(content)),
        Part::ToolCall { id, arguments, .. } => (Some(id), Saying::Arguments(arguments)),
        Part::ToolCallResponse { id, result } => match result {
            Json::String(text) => (Some(id), Saying::Text(text)),
            result => (Some(id), Saying::Result(result)),
        },
    }
}

impl<'m> Said<'m> {
    /// What the parts of these messages say, and the ids of the call.
    pub(super) fn of(ids: Ids<'m>, messages: &'m [Message]) -> Self {
        Self {
            ids,
            parts: messages.iter().flat_map(|message| &message.parts).collect(),
            last: 0,
        }
    }

    /// Returns where a string or a value with members or items is said.
    pub(super) fn find(&mut self, value: &Json) -> Option<Place> {
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
            if let Some(way) = way(self.parts[place], value) {
                self.last = place;
                return Some(Place::Part(way, place));
            }
        }
        None
    }

    /// Appends the canonical form of what is said at a place.
    pub(super) fn write(&self, place: Place, out: &mut Vec<u8>) -> Option<()> {
        let (way, part) = match place {
            Place::SessionId => {
                Text::from(self.ids.session_id).write_escaped(out);
                return Some(());
            }
            Place::ModelCallId => {
                Text::from(self.ids.model_call_id?).write_escaped(out);
                return Some(());
            }
            Place::Part(way, part) => (way, *self.parts.get(part)?),
        };
        match (way, saying(part)) {
            (Way::Id, (Some(id), _)) => Text::from(id).write_escaped(out),
            (Way::Text, (_, Saying::Text(text))) => text.write_escaped(out),
            (Way::Value, (_, Saying::Arguments(arguments))) => arguments.write_canonical(out),
            (Way::Value, (_, Saying::Result(result))) => result.write_canonical(out),
            (Way::Document(spelling), (_, saying)) => {
                let mut text = Vec::new();
                let spelling = Spelling::ALL.get(spelling)?;
                match saying {
                    Saying::Arguments(arguments) => spelling.write_object(arguments, &mut text),
                    Saying::Result(result) => spelling.write(result, &mut text),
                    Saying::Text(_) => return None,
                }
                Text::from_wtf8(text)?.write_escaped(out);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Returns how a part says a value.
fn way(part: &Part, value: &Json) -> Option<Way> {
    let (id, saying) = saying(part);
    match (value, saying) {
        (Json::String(text), _) if id.is_some_and(|id| !id.is_empty() && *text == *id) => {
            Some(Way::Id)
        }
        (Json::String(text), Saying::Text(said)) => {
            (!text.is_empty() && text == said).then_some(Way::Text)
        }
        (Json::String(text), Saying::Arguments(said)) => {
            Spelling::of_object(said, text.as_bytes()).map(Way::Document)
        }
        (Json::String(text), Saying::Result(said)) => {
            Spelling::of(said, text.as_bytes()).map(Way::Document)
        }
        (Json::Object(value), Saying::Arguments(said)) => {
            (!said.is_empty() && value == said).then_some(Way::Value)
        }
        (Json::Object(_) | Json::Array(_), Saying::Result(said)) => {
            (value == said).then_some(Way::Value)
        }
        _ => None,
    }
}
