//! The lines of a file as a tree, and the input of each answer in it.
//!
//! Every line follows another one: the one that it names, or the line before it. What was sent to the
//! model before an answer stands on the way from the answer up to the place where the input begins,
//! and the nearest earlier answer on that way is named, so nothing is given twice.
//!
//! Only the content of recent input is kept. A line that follows one whose content is gone is
//! [`Lost`].

mod remembered;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use svc_messages::Degradation;
use svc_model::evidence::Part;
use svc_model::id::ForeignId;
use svc_model::ingest::CallInput;

use crate::bookmark::Taken;
use crate::content::{Said, Window};
use crate::{Lost, TranscriptCall};

/// The lines whose ids a bookmark remembers.
const REMEMBERED_LINES_MAX: usize = 256;
/// The answers whose keys a bookmark remembers.
const REMEMBERED_ANSWERS_MAX: usize = 256;
/// The bytes of an id that a bookmark remembers.
const REMEMBERED_BYTES_MAX: usize = 256;
/// The node where input begins.
const START: u32 = 0;

/// What a line follows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parent<'a> {
    /// Nothing: the input begins with this line.
    Start,
    /// The line before it.
    Previous,
    /// The line with this id.
    Line(&'a str),
}

/// Where a line stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The offset of the line.
    pub(crate) offset: u64,
    /// Its id, by which later lines name it.
    pub(crate) id: Option<&'a str>,
    /// What it follows.
    pub(crate) parent: Parent<'a>,
    /// The side of the conversation: empty, or the id of a subagent.
    pub(crate) side: &'a str,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Start,
    Input,
    /// An answer, by its place in the list of ids.
    Answer(u32),
    /// Nothing: the part of an answer that stands before it.
    Part,
    /// Something whose content is not known any more.
    Gone,
}

/// An input that no answer has taken up yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: u32,
    offset: u64,
    side: u64,
}

/// An answer that was not given to the caller yet.
#[derive(Debug)]
pub(crate) struct Answer {
    key: String,
    node: u32,
    side: u64,
    /// The offset of the first line that it is made from, its new input included.
    from: u64,
    /// The lines that it is made from.
    lines: Vec<u64>,
    /// The keys of the answers that became a part of it.
    parts: Vec<String>,
    finished: bool,
    /// Whether it may yet become a part of another one.
    held: bool,
    pub(crate) call: TranscriptCall,
    input_left_out: Degradation,
    left_out: Degradation,
}

impl Answer {
    /// Adds messages to the output.
    pub(crate) fn add(&mut self, said: Said) {
        self.left_out += said.left_out;
        self.call.call.output.extend(said.messages);
    }

    /// Puts another call in its place, which has the same input.
    pub(crate) fn replace(&mut self, mut call: TranscriptCall, said: Said) {
        call.call.input = std::mem::take(&mut self.call.call.input);
        self.call = call;
        self.left_out = Degradation::default();
        self.add(said);
    }

    /// Adds parts to the output, which is one message.
    pub(crate) fn add_to_message(&mut self, said: Said) {
        self.left_out += said.left_out;
        for message in said.messages {
            match self.call.call.output.last_mut() {
                Some(last) if last.role == message.role => last.parts.extend(message.parts),
                _ => self.call.call.output.push(message),
            }
        }
    }

    fn text(&self) -> String {
        let parts = self
            .call
            .call
            .output
            .iter()
            .flat_map(|message| &message.parts);
        let texts = parts.filter_map(|part| match part {
            Part::Text { content } => Some(content.to_string_lossy()),
            _ => None,
        });
        texts.collect()
    }
}

/// The tree of the lines of a file.
#[derive(Debug)]
pub(crate) struct Conversation {
    hasher: RandomState,
    nodes: Vec<Node>,
    by_id: HashMap<u64, u32>,
    /// The node of each answer by its key.
    by_key: HashMap<u64, u32>,
    /// The ids by which later calls name the answers.
    ids: Vec<ForeignId>,
    window: Window,
    waiting: Vec<Waiting>,
    answers: Vec<Answer>,
    tip: u32,
    /// The side of the last line, and where it stands.
    last: (u64, u64),
    /// Whether lines before the first one that was given are unknown.
    resumed: bool,
    /// The role of which adjacent messages are one.
    merged_role: Option<&'static str>,
    recent_lines: VecDeque<(Box<str>, u32, u64)>,
    taken: VecDeque<Taken>,
    /// The answers that an earlier reader gave.
    given: HashMap<u64, Option<ForeignId>>,
    last_text: Option<String>,
    opened: u64,
}

impl Conversation {
    pub(crate) fn new(merged_role: Option<&'static str>, keeps_outputs: bool) -> Self {
        let start = Node {
            parent: START,
            kind: Kind::Start,
        };
        Self {
            hasher: RandomState::new(),
            nodes: vec![start],
            by_id: HashMap::new(),
            by_key: HashMap::new(),
            ids: Vec::new(),
            window: Window::new(keeps_outputs),
            waiting: Vec::new(),
            answers: Vec::new(),
            tip: START,
            last: (0, 0),
            resumed: false,
            merged_role,
            recent_lines: VecDeque::new(),
            taken: VecDeque::new(),
            given: HashMap::new(),
            last_text: None,
            opened: 0,
        }
    }

    /// Keeps the content of all lines.
    pub(crate) fn keep_everything(&mut self) {
        self.window.keep_everything();
    }

    /// Returns how many answers were met.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// Places a line that says nothing.
    pub(crate) fn pass(&mut self, place: Place<'_>) -> Result<(), Lost> {
        let node = self.resolve(place.parent)?;
        self.stand(place, node);
        Ok(())
    }

    /// Places a line that was sent to the model. It finishes the answer that it follows.
    pub(crate) fn input(&mut self, place: Place<'_>, said: Said) -> Result<(), Lost> {
        self.place_input(place, said, true)
    }

    /// As [`Self::input`], for a line after which its answer may go on: the result of a tool.
    pub(crate) fn result(&mut self, place: Place<'_>, said: Said) -> Result<(), Lost> {
        self.place_input(place, said, false)
    }

    fn place_input(&mut self, place: Place<'_>, said: Said, finishes: bool) -> Result<(), Lost> {
        // Some lines are written twice.
        if place.id.is_some_and(|id| self.knows(id)) {
            return Ok(());
        }
        let parent = self.resolve(place.parent)?;
        if finishes {
            self.finish_before(parent);
        }
        let begins = matches!(place.parent, Parent::Start);
        if said.is_empty() {
            self.stand(place, if begins { START } else { parent });
            return Ok(());
        }
        let node = self.push(parent, Kind::Input);
        let side = self.hash(place.side);
        self.waiting.push(Waiting {
            node,
            offset: place.offset,
            side,
        });
        let gone = self.window.wait(node, place.offset, said);
        self.forget(&gone);
        self.stand(place, node);
        Ok(())
    }

    /// Returns whether a line with this id was placed.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.by_id.contains_key(&self.hash(id))
    }

    /// Goes back to a line: what comes next follows it.
    pub(crate) fn go_to(&mut self, id: &str) -> Result<(), Lost> {
        self.tip = self.resolve(Parent::Line(id))?;
        Ok(())
    }

    /// Puts other content in the place of a line that no answer has taken up yet. Returns whether
    /// there is such a line.
    pub(crate) fn replace(&mut self, id: &str, said: Said) -> bool {
        let node = self.by_id.get(&self.hash(id)).copied();
        let waits = node.filter(|node| self.waiting.iter().any(|waiting| waiting.node == *node));
        let Some(node) = waits else {
            return false;
        };
        self.window.replace(node, said);
        true
    }

    /// Returns the answer with a key, to which the line belongs, and begins it if there is none.
    /// `None` if it was already given to the caller, or the line is already in it.
    pub(crate) fn answer(
        &mut self,
        place: Place<'_>,
        key: &str,
        begin: impl FnOnce() -> TranscriptCall,
    ) -> Result<Option<&mut Answer>, Lost> {
        let line = place.id.map(|id| self.hash(id));
        if let Some(&node) = self.by_key.get(&self.hash(key)) {
            let mut answers = self.answers.iter();
            let Some(index) = answers.rposition(|answer| answer.key == key) else {
                self.stand(place, node);
                return Ok(None);
            };
            self.continue_answer(place, index)?;
            let answer = &mut self.answers[index];
            let is_new = line.is_none_or(|line| note(&mut answer.lines, line));
            return Ok(is_new.then_some(answer));
        }
        if let Some(id) = self.given.get(&self.hash(key)).cloned() {
            self.stand_for_given(place, key, id);
            return Ok(None);
        }
        let parent = self.resolve(place.parent)?;
        self.begin_answer(place, parent, key, begin)?;
        let answer = self.answers.last_mut();
        Ok(answer.filter(|answer| answer.key == key))
    }

    /// Returns whether there was an answer with a key.
    pub(crate) fn has_answer(&self, key: &str) -> bool {
        let key = self.hash(key);
        self.by_key.contains_key(&key) || self.given.contains_key(&key)
    }

    /// Returns an answer that was not given to the caller yet.
    pub(crate) fn open_answer(&mut self, key: &str) -> Option<&mut Answer> {
        let mut answers = self.answers.iter_mut();
        answers.rfind(|answer| answer.key == key)
    }

    /// Places a later line of an answer: it says nothing by itself.
    fn continue_answer(&mut self, place: Place<'_>, index: usize) -> Result<(), Lost> {
        let answer = self.answers[index].node;
        let parent = self.resolve(place.parent)?;
        let follows = self.nearest_answer(parent) == Some(answer);
        self.stand(place, if follows { parent } else { answer });
        Ok(())
    }

    fn begin_answer(
        &mut self,
        place: Place<'_>,
        parent: u32,
        key: &str,
        begin: impl FnOnce() -> TranscriptCall,
    ) -> Result<(), Lost> {
        self.finish_before(parent);
        let side = self.hash(place.side);
        self.finish_side(side);
        let mut call = begin();
        let Some(id) = call.call.id().cloned() else {
            return self.pass(place);
        };
        let (input, left_out, from) = self.composed(parent)?;
        call.call.input = input;
        self.settle(place.side);
        let node = self.push_answer(place, parent, key, id);
        self.opened += 1;
        self.answers.push(Answer {
            key: key.to_owned(),
            node,
            side,
            from: from.map_or(place.offset, |from| from.min(place.offset)),
            lines: place.id.map(|id| self.hash(id)).into_iter().collect(),
            parts: Vec::new(),
            finished: false,
            held: false,
            call,
            input_left_out: left_out,
            left_out: Degradation::default(),
        });
        Ok(())
    }

    /// Places a line of an answer that an earlier reader gave, whatever stood before it.
    fn stand_for_given(&mut self, place: Place<'_>, key: &str, id: Option<ForeignId>) {
        let parent = self.resolve(place.parent).unwrap_or(START);
        let Some(id) = id else {
            let node = self.push(parent, Kind::Part);
            self.by_key.insert(self.hash(key), node);
            return self.stand(place, node);
        };
        self.finish_before(parent);
        self.settle(place.side);
        self.push_answer(place, parent, key, id);
    }

    fn push_answer(&mut self, place: Place<'_>, parent: u32, key: &str, id: ForeignId) -> u32 {
        let index = count(self.ids.len());
        self.ids.push(id);
        let node = self.push(parent, Kind::Answer(index));
        self.by_key.insert(self.hash(key), node);
        self.stand(place, node);
        node
    }

    /// Finishes an answer.
    pub(crate) fn finish(&mut self, key: &str) {
        if let Some(answer) = self.open_answer(key) {
            answer.finished = true;
        }
    }

    /// Finishes all answers.
    pub(crate) fn finish_all(&mut self) {
        for answer in &mut self.answers {
            answer.finished = true;
            answer.held = false;
        }
    }

    /// Holds an answer back, even when it is finished.
    pub(crate) fn hold(&mut self, key: &str) {
        if let Some(answer) = self.open_answer(key) {
            answer.held = true;
        }
    }

    /// Gives an answer free that was held back.
    pub(crate) fn release(&mut self, key: &str) {
        if let Some(answer) = self.open_answer(key) {
            answer.held = false;
        }
    }

    /// Makes an answer a part of an earlier one. What stands between them comes after both.
    pub(crate) fn join(&mut self, earlier: &str, later: &str) {
        let Some(index) = self.answers.iter().position(|answer| answer.key == later) else {
            return;
        };
        if !self.answers[..index]
            .iter()
            .any(|answer| answer.key == earlier)
        {
            return;
        }
        let part = self.answers.remove(index);
        self.nodes[part.node as usize].kind = Kind::Part;
        self.opened -= 1;
        self.wait_again(part.node);
        if let Some(answer) = self.open_answer(earlier) {
            answer.add(Said {
                messages: part.call.call.output,
                left_out: part.left_out,
            });
            answer.call.call.ended_at = part.call.call.ended_at;
            answer.finished = false;
            answer.parts.push(part.key);
        }
    }

    fn finish_before(&mut self, parent: u32) {
        if self.answers.iter().all(|answer| answer.finished) {
            return;
        }
        let before = self.nearest_answer(parent);
        let open = self.answers.iter_mut();
        for answer in open.filter(|answer| Some(answer.node) == before) {
            answer.finished = true;
        }
    }

    /// Finishes the answers of a side: another one begins there.
    fn finish_side(&mut self, side: u64) {
        for answer in self.answers.iter_mut().filter(|answer| answer.side == side) {
            answer.finished = true;
        }
    }

    /// Returns the finished answers, in order.
    pub(crate) fn take(&mut self) -> Vec<TranscriptCall> {
        let last = self.answers.last();
        if let Some(last) = last.filter(|last| last.finished) {
            self.last_text = Some(last.text());
        }
        let answers = std::mem::take(&mut self.answers);
        let is_done = |answer: &Answer| answer.finished && !answer.held;
        let (finished, open) = answers.into_iter().partition(is_done);
        self.answers = open;
        let finished: Vec<Answer> = finished;
        finished
            .into_iter()
            .map(|answer| self.given(answer))
            .collect()
    }

    fn given(&mut self, answer: Answer) -> TranscriptCall {
        let Answer {
            key,
            node,
            parts,
            mut call,
            input_left_out: mut left_out,
            left_out: output_left_out,
            ..
        } = answer;
        left_out += output_left_out;
        let id = call.call.id().cloned();
        self.remember(key, id);
        for part in parts {
            self.remember(part, None);
        }
        let gone = self.window.keep_output(node, &call.call.output);
        self.forget(&gone);
        call.call.left_out = (!left_out.is_empty()).then(|| left_out.into());
        call
    }

    /// Remembers the key of an answer that was given, or became a part of one.
    fn remember(&mut self, key: String, id: Option<ForeignId>) {
        if key.len() <= REMEMBERED_BYTES_MAX {
            self.taken.push_back(Taken { key, id });
        }
        if self.taken.len() > REMEMBERED_ANSWERS_MAX {
            self.taken.pop_front();
        }
    }

    /// Returns the texts of the last answer.
    pub(crate) fn last_answer_text(&self) -> Option<String> {
        let open = self.answers.last().map(Answer::text);
        open.or_else(|| self.last_text.clone())
    }

    /// Returns what was said from one line to the end of another one's chain, outputs included.
    pub(crate) fn said_since(&self, first: &str, last: Parent<'_>) -> Result<Said, Lost> {
        let first = self.resolve(Parent::Line(first))?;
        let mut node = self.resolve(last)?;
        let mut nodes = Vec::new();
        while node != START {
            if self.nodes[node as usize].kind != Kind::Part {
                nodes.push(node);
            }
            if node == first {
                break;
            }
            node = self.nodes[node as usize].parent;
        }
        let not_given = self.answers.iter().map(|answer| (answer.node, answer));
        let not_given: HashMap<u32, &Answer> = not_given.collect();
        let mut said = Said::default();
        for node in nodes.into_iter().rev() {
            match not_given.get(&node) {
                Some(answer) => said.messages.extend(answer.call.call.output.clone()),
                None => said.append(self.content(node)?.clone()),
            }
        }
        Ok(said)
    }

    fn content(&self, node: u32) -> Result<&Said, Lost> {
        self.window.get(node).ok_or(Lost)
    }

    /// Returns the input of an answer that follows a node, what it left out, and the offset of its
    /// first line.
    fn composed(&self, parent: u32) -> Result<(CallInput, Degradation, Option<u64>), Lost> {
        let (mut node, mut inputs) = (parent, Vec::new());
        let after = loop {
            let Node { parent, kind } = self.nodes[node as usize];
            match kind {
                Kind::Start => break None,
                Kind::Answer(index) => break Some(self.ids[index as usize].clone()),
                Kind::Gone => return Err(Lost),
                Kind::Input => inputs.push(node),
                Kind::Part => {}
            }
            node = parent;
        };
        let mut said = Said::default();
        for &node in inputs.iter().rev() {
            let content = self.content(node)?.clone();
            match self.merged_role {
                Some(role) => said.merge(content, role),
                None => said.append(content),
            }
        }
        let from = inputs
            .iter()
            .filter_map(|node| self.window.offset(*node))
            .min();
        let messages = said.messages;
        Ok((CallInput { after, messages }, said.left_out, from))
    }

    /// Stops waiting for answers to the input of a side: an answer has taken it up, or has not.
    fn settle(&mut self, side: &str) {
        let side = self.hash(side);
        let (settled, waiting) = self
            .waiting
            .iter()
            .partition(|waiting| waiting.side == side);
        self.waiting = waiting;
        let settled: Vec<Waiting> = settled;
        let settled: Vec<u32> = settled.iter().map(|waiting| waiting.node).collect();
        let gone = self.window.settle(&settled);
        self.forget(&gone);
    }

    /// Waits again for an answer to the input before a node.
    fn wait_again(&mut self, mut node: u32) {
        let side = self.hash("");
        while matches!(self.nodes[node as usize].kind, Kind::Part | Kind::Input) {
            let offset = self.window.wait_again(node);
            self.waiting
                .extend(offset.map(|offset| Waiting { node, offset, side }));
            node = self.nodes[node as usize].parent;
        }
    }

    fn forget(&mut self, gone: &[u32]) {
        for node in gone {
            let node = &mut self.nodes[*node as usize];
            if node.kind == Kind::Input {
                node.kind = Kind::Gone;
            }
        }
    }

    fn nearest_answer(&self, mut node: u32) -> Option<u32> {
        loop {
            match self.nodes[node as usize].kind {
                Kind::Answer(_) => return Some(node),
                Kind::Start => return None,
                Kind::Input | Kind::Part | Kind::Gone => node = self.nodes[node as usize].parent,
            }
        }
    }

    fn push(&mut self, parent: u32, kind: Kind) -> u32 {
        self.nodes.push(Node { parent, kind });
        count(self.nodes.len() - 1)
    }

    /// Makes a node the one that a line stands for.
    fn stand(&mut self, place: Place<'_>, node: u32) {
        self.tip = node;
        self.last = (self.hash(place.side), place.offset);
        let Some(id) = place.id else {
            return;
        };
        self.by_id.insert(self.hash(id), node);
        if id.len() <= REMEMBERED_BYTES_MAX {
            self.recent_lines.push_back((id.into(), node, place.offset));
            if self.recent_lines.len() > REMEMBERED_LINES_MAX {
                self.recent_lines.pop_front();
            }
        }
    }

    fn resolve(&self, parent: Parent<'_>) -> Result<u32, Lost> {
        match parent {
            Parent::Start => Ok(START),
            Parent::Previous => Ok(self.tip),
            Parent::Line(id) => match self.by_id.get(&self.hash(id)) {
                Some(node) => Ok(*node),
                None if self.resumed => Err(Lost),
                // The line stands in another file, or nowhere.
                None => Ok(START),
            },
        }
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }
}

/// Adds a line to a list, unless it is there.
fn note(lines: &mut Vec<u64>, line: u64) -> bool {
    let is_new = !lines.contains(&line);
    if is_new {
        lines.push(line);
    }
    is_new
}

/// Returns a place in a list as it is kept. A file has fewer lines than there are places.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
