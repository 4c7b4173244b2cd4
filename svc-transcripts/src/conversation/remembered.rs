//! What a bookmark has of a conversation.

use super::{Conversation, Kind, Node, START, Waiting, count};
use crate::bookmark::{Anchor, Taken};

/// How far behind the end of the file an input may be that still waits for its answer, in bytes, if
/// another side goes on.
const WAITING_BYTES_MAX: u64 = 4 * 1024 * 1024;

impl Conversation {
    /// Returns the offset of the first line that is still needed.
    pub(crate) fn needed_from(&self) -> Option<u64> {
        let (side, end) = self.last;
        let is_needed = |waiting: &&Waiting| {
            waiting.side == side || end.saturating_sub(waiting.offset) <= WAITING_BYTES_MAX
        };
        let waiting = self.waiting.iter().filter(is_needed);
        let offsets = waiting.map(|waiting| waiting.offset);
        offsets
            .chain(self.answers.iter().map(|answer| answer.from))
            .min()
    }

    /// Returns the node of the last line.
    pub(crate) fn tip(&self) -> u32 {
        self.tip
    }

    /// Returns what is before a node, as far as a bookmark can say it.
    pub(crate) fn anchor(&self, mut node: u32) -> Anchor {
        loop {
            let Node { parent, kind } = self.nodes[node as usize];
            match kind {
                Kind::Start => return Anchor::Start,
                Kind::Answer(index) => return Anchor::Answer(self.ids[index as usize].clone()),
                Kind::Input | Kind::Gone => return Anchor::Gone,
                Kind::Part => node = parent,
            }
        }
    }

    /// Returns the last lines before an offset.
    pub(crate) fn lines_before(&self, offset: u64) -> Vec<(String, Anchor)> {
        let before = self.recent_lines.iter().filter(|line| line.2 < offset);
        let lines = before.map(|(id, node, _)| (String::from(&**id), self.anchor(*node)));
        lines
            .filter(|(_, anchor)| *anchor != Anchor::Gone)
            .collect()
    }

    /// Returns the last answers that were given to the caller.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.taken.iter().cloned().collect()
    }

    /// Goes on from a bookmark.
    pub(crate) fn resume(&mut self, tip: Anchor, lines: Vec<(String, Anchor)>, taken: Vec<Taken>) {
        self.resumed = true;
        for (id, anchor) in lines {
            let node = self.anchored(anchor);
            self.by_id.insert(self.hash(&id), node);
            self.recent_lines.push_back((id.into(), node, 0));
        }
        for taken in &taken {
            self.given.insert(self.hash(&taken.key), taken.id.clone());
        }
        self.taken = taken.into();
        self.tip = self.anchored(tip);
    }

    fn anchored(&mut self, anchor: Anchor) -> u32 {
        match anchor {
            Anchor::Start => START,
            Anchor::Gone => self.push(START, Kind::Gone),
            Anchor::Answer(id) => {
                let index = count(self.ids.len());
                self.ids.push(id);
                self.push(START, Kind::Answer(index))
            }
        }
    }
}
