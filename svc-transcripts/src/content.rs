//! What lines say, and how much of it is kept.

use std::collections::{HashMap, VecDeque};

use svc_messages::{Degradation, Normaliser};
use svc_model::evidence::{Message, Part};
use svc_model::json::{Json, NodeBudget, Object};

use crate::cut;

/// The bytes of settled content that are kept.
const SETTLED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The bytes of content that may wait for its answer.
const WAITING_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The memory of a message or part besides its content, in bytes.
const ITEM_BYTES: usize = 64;

/// Messages, and what was left out of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) messages: Vec<Message>,
    pub(crate) left_out: Degradation,
}

impl Said {
    /// Reads an item: a message, a call or a result in the form of any of the models' interfaces.
    pub(crate) fn of(item: &Object) -> Self {
        let mut normaliser = Normaliser::new(NodeBudget::unlimited());
        let message = normaliser.object(item, None);
        let mut left_out = normaliser.degradation;
        left_out.unsupported_content += u64::from(message.is_err());
        let messages: Vec<Message> = message.ok().flatten().into_iter().collect();
        let parts = messages.iter().flat_map(|message| &message.parts);
        left_out.truncated += parts.filter(|part| is_cut(part)).count() as u64;
        Self { messages, left_out }
    }

    /// Reads a message of a role with a content.
    pub(crate) fn by(role: &str, content: Json) -> Self {
        Self::of(&Object::from_iter([
            ("role", role.into()),
            ("content", content),
        ]))
    }

    /// Returns something that was sent and is not kept.
    pub(crate) fn unsupported() -> Self {
        let mut said = Self::default();
        said.left_out.unsupported_content = 1;
        said
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.left_out.is_empty()
    }

    /// Adds what was said next.
    pub(crate) fn append(&mut self, next: Self) {
        self.left_out += next.left_out;
        self.messages.extend(next.messages);
    }

    /// Adds what was said next. Adjacent messages of the role become one.
    pub(crate) fn merge(&mut self, next: Self, role: &str) {
        self.left_out += next.left_out;
        for message in next.messages {
            match self.messages.last_mut() {
                Some(last) if last.role == *role && message.role == *role => {
                    last.parts.extend(message.parts);
                }
                _ => self.messages.push(message),
            }
        }
    }

    fn bytes(&self) -> usize {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        ITEM_BYTES * (1 + self.messages.len()) + parts.map(part_bytes).sum::<usize>()
    }
}

/// Returns whether a part is a result that the client has cut and marked.
fn is_cut(part: &Part) -> bool {
    match part {
        Part::ToolCallResponse { result, .. } => has_cut(result),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall { .. } => false,
    }
}

fn has_cut(result: &Json) -> bool {
    match result {
        Json::String(text) => cut::is_marked(&text.to_string_lossy()),
        Json::Array(items) => items.iter().any(has_cut),
        Json::Object(members) => members.iter().any(|(_, value)| has_cut(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

fn part_bytes(part: &Part) -> usize {
    let content = match part {
        Part::Text { content } | Part::Reasoning { content } => content.len(),
        Part::ToolCall { arguments, .. } => arguments.memory(),
        Part::ToolCallResponse { result, .. } => result.memory(),
    };
    ITEM_BYTES + content
}

/// The content of lines, by node: all that waits for an answer, and some of what is settled.
#[derive(Debug)]
pub(crate) struct Window {
    contents: HashMap<u32, Content>,
    waiting: Contents,
    settled: Contents,
    keeps_outputs: bool,
}

#[derive(Debug)]
struct Content {
    offset: u64,
    bytes: usize,
    said: Said,
}

#[derive(Debug)]
struct Contents {
    nodes: VecDeque<u32>,
    bytes: usize,
    bytes_max: usize,
}

impl Contents {
    const fn up_to(bytes_max: usize) -> Self {
        Self {
            nodes: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    fn add(&mut self, node: u32, bytes: usize) {
        self.nodes.push_back(node);
        self.bytes += bytes;
    }
}

impl Window {
    pub(crate) fn new(keeps_outputs: bool) -> Self {
        Self {
            contents: HashMap::new(),
            waiting: Contents::up_to(WAITING_BYTES_MAX),
            settled: Contents::up_to(SETTLED_BYTES_MAX),
            keeps_outputs,
        }
    }

    pub(crate) fn keep_everything(&mut self) {
        self.waiting.bytes_max = usize::MAX;
        self.settled.bytes_max = usize::MAX;
    }

    pub(crate) fn get(&self, node: u32) -> Option<&Said> {
        self.contents.get(&node).map(|content| &content.said)
    }

    pub(crate) fn offset(&self, node: u32) -> Option<u64> {
        self.contents.get(&node).map(|content| content.offset)
    }

    /// Keeps content that waits for its answer. Returns the nodes whose content is gone.
    pub(crate) fn wait(&mut self, node: u32, offset: u64, said: Said) -> Vec<u32> {
        let bytes = self.put(node, offset, said);
        self.waiting.add(node, bytes);
        evict(&mut self.waiting, &mut self.contents)
    }

    /// Settles content that waited. Returns the nodes whose content is gone.
    pub(crate) fn settle(&mut self, nodes: &[u32]) -> Vec<u32> {
        self.waiting
            .nodes
            .retain(|node| nodes.binary_search(node).is_err());
        for &node in nodes {
            let bytes = self.contents.get(&node).map_or(0, |content| content.bytes);
            self.waiting.bytes = self.waiting.bytes.saturating_sub(bytes);
            self.settled.add(node, bytes);
        }
        evict(&mut self.settled, &mut self.contents)
    }

    /// Lets settled content wait again. Returns its offset, if it is settled and still there.
    pub(crate) fn wait_again(&mut self, node: u32) -> Option<u64> {
        let content = self.contents.get(&node)?;
        let place = self
            .settled
            .nodes
            .iter()
            .rposition(|settled| *settled == node)?;
        self.settled.nodes.remove(place);
        self.settled.bytes -= content.bytes;
        self.waiting.add(node, content.bytes);
        Some(content.offset)
    }

    /// Keeps the output of an answer, if outputs are kept. Returns the nodes whose content is gone.
    pub(crate) fn keep_output(&mut self, node: u32, messages: &[Message]) -> Vec<u32> {
        if !self.keeps_outputs {
            return Vec::new();
        }
        let messages = messages.to_vec();
        let left_out = Degradation::default();
        let bytes = self.put(node, 0, Said { messages, left_out });
        self.settled.add(node, bytes);
        evict(&mut self.settled, &mut self.contents)
    }

    /// Replaces content that waits for its answer.
    pub(crate) fn replace(&mut self, node: u32, said: Said) {
        if let Some(content) = self.contents.get_mut(&node) {
            let bytes = said.bytes();
            self.waiting.bytes = (self.waiting.bytes + bytes).saturating_sub(content.bytes);
            content.bytes = bytes;
            content.said = said;
        }
    }

    fn put(&mut self, node: u32, offset: u64, said: Said) -> usize {
        let bytes = said.bytes();
        let content = Content {
            offset,
            bytes,
            said,
        };
        self.contents.insert(node, content);
        bytes
    }
}

fn evict(kept: &mut Contents, contents: &mut HashMap<u32, Content>) -> Vec<u32> {
    let mut gone = Vec::new();
    while kept.bytes > kept.bytes_max {
        let Some(node) = kept.nodes.pop_front() else {
            break;
        };
        let content = contents.remove(&node);
        kept.bytes -= content.map_or(0, |content| content.bytes);
        gone.push(node);
    }
    gone
}
