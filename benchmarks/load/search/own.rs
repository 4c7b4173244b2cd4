//! Our own set: the scenes of all families with their surroundings, and for each family some
//! Sessions about the same component in which nothing of interest happens.

use serde_json::{Value, json};
use svc_model::time::Instant;

use crate::Failure;
use crate::search::scenarios::{Family, Scene, Turn, families};
use crate::search::set::{
    CallRow, MessageRow, QuestionRow, QuestionSet, Right, SessionRow, Split, fingerprint, text_part,
};
use crate::search::surroundings::{PROMPT, REMINDER, Surroundings, pick};

/// Sessions of a family in which nothing of interest happens.
const ERRAND_SESSIONS: usize = 3;
/// One of so many questions is asked again with a slip of the finger.
const SLIP_EVERY: u64 = 4;
/// 2026-01-05, in microseconds, and how many hours later the last Session may begin.
const FIRST_DAY: i64 = 1_767_571_200_000_000;
const HOURS: u64 = 120 * 24;
const USERS: [&str; 6] = ["ann", "ben", "chiyo", "dmitri", "eva", "farid"];
const MODELS: [&str; 3] = ["gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"];
const AGENTS: [&str; 3] = ["codex", "claude-code", "gemini-cli"];

/// Returns the set.
pub(crate) fn own_set() -> Result<QuestionSet, Failure> {
    let mut set = QuestionSet::default();
    for family in &families()? {
        for scene in &family.sessions {
            let session = format!("{}-{}", family.name, scene.name);
            set.questions.extend(questions(&session, scene));
            let row = Writer::new(family, session).scene(scene);
            set.sessions.push(row);
        }
        for number in 1..=ERRAND_SESSIONS {
            let session = format!("{}-errand-{number}", family.name);
            set.sessions.push(Writer::new(family, session).errands());
        }
    }
    // As they would be captured, not family by family.
    set.sessions.sort_by_cached_key(|row| row.time.clone());
    set.check()?;
    Ok(set)
}

fn questions(session: &str, scene: &Scene) -> Vec<QuestionRow> {
    let mut rows = Vec::new();
    for (number, asked) in scene.questions.iter().enumerate() {
        let mut push = |id: String, kind: &str, query: String| {
            rows.push(QuestionRow {
                split: Split::of(&id),
                id,
                kind: kind.to_owned(),
                query,
                session: Right::One(session.to_owned()),
                part: Some(asked.part.to_owned()),
            });
        };
        let id = format!("{session}-{}", number + 1);
        let may_slip = matches!(asked.kind, "decision" | "failure" | "command");
        if may_slip && fingerprint(&id).is_multiple_of(SLIP_EVERY) {
            push(format!("{id}-slip"), "typo", slip(asked.query));
        }
        push(id, asked.kind, asked.query.to_owned());
    }
    rows
}

/// Returns a query with one letter of its longest word wrong: left out, doubled, or swapped with
/// the next.
fn slip(query: &str) -> String {
    let words = query.split(' ');
    let longest = words.max_by_key(|word| word.chars().count());
    let longest = longest.unwrap_or_default();
    let mut letters: Vec<char> = longest.chars().collect();
    let hash = fingerprint(query);
    if letters.len() >= 4 {
        let at = 1 + (hash / 3 % (letters.len() as u64 - 2)) as usize;
        match hash % 3 {
            0 => drop(letters.remove(at)),
            1 => letters.insert(at, letters[at]),
            _ => letters.swap(at, at + 1),
        }
    }
    query.replacen(longest, &letters.into_iter().collect::<String>(), 1)
}

/// Writes a Session, message by message.
struct Writer<'f> {
    around: Surroundings<'f>,
    session: String,
    messages: Vec<MessageRow>,
    tool_calls: usize,
}

impl<'f> Writer<'f> {
    fn new(family: &'f Family, session: String) -> Self {
        Self {
            around: Surroundings::new(family, &session),
            session,
            messages: vec![MessageRow::text("system", PROMPT)],
            tool_calls: 0,
        }
    }

    fn scene(mut self, scene: &Scene) -> SessionRow {
        let mut has_looked = false;
        for turn in &scene.turns {
            // Not before the user has pasted everything.
            let is_work = matches!(turn, Turn::Assistant(_) | Turn::Tool { .. });
            if is_work && !std::mem::replace(&mut has_looked, true) {
                self.look_around();
            }
            match turn {
                Turn::User(text) => self.user(text),
                Turn::Assistant(text) => self.answer(vec![text_part(text.as_str())]),
                Turn::Tool { name, arguments } => self.tool_call(name, arguments),
                Turn::Result(text) => self.result_or_paste(text),
            }
        }
        self.finish()
    }

    fn errands(mut self) -> SessionRow {
        for _ in 0..self.around.random.between(2, 5) {
            let (errand, report) = self.around.errand();
            self.user(&errand);
            self.look_around();
            self.answer(vec![text_part(report)]);
        }
        self.finish()
    }

    /// Adds what the user says. The program of the agent adds its own.
    fn user(&mut self, text: &str) {
        let mut parts = Vec::new();
        if self.messages.len() == 1 {
            parts.push(text_part(REMINDER));
            parts.push(text_part(self.around.project()));
        }
        parts.push(text_part(text));
        self.messages.push(MessageRow::parts("user", parts));
    }

    /// Adds parts to what the assistant says now.
    fn answer(&mut self, parts: Vec<Value>) {
        match self.messages.last_mut() {
            Some(last) if last.role == "assistant" => last.parts.extend(parts),
            _ => self.messages.push(MessageRow::parts("assistant", parts)),
        }
    }

    fn tool_call(&mut self, name: &str, arguments: &str) {
        self.tool_calls += 1;
        let id = self.tool_call_id();
        let pairs = arguments.lines().filter_map(|line| line.split_once(": "));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.into()));
        let arguments = Value::Object(pairs.collect());
        let call = json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments});
        self.answer(vec![call]);
    }

    fn tool_call_id(&self) -> String {
        let hash = fingerprint(&self.session) as u32;
        format!("call_{hash:08x}{}", self.tool_calls)
    }

    fn tool_result(&mut self, text: impl Into<String>) {
        let result = json!({
            "type": "tool_call_response", "id": self.tool_call_id(), "result": text.into(),
        });
        self.messages.push(MessageRow::parts("tool", vec![result]));
    }

    /// Adds the result of the tool call before it, or else what the user pasted.
    fn result_or_paste(&mut self, text: &str) {
        match self.messages.last_mut() {
            Some(last) if last.role == "user" => last.parts.push(text_part(text)),
            _ => self.tool_result(text),
        }
    }

    /// Reads files, searches, and runs tests, as agents do before they answer.
    fn look_around(&mut self) {
        for _ in 0..self.around.random.between(1, 4) {
            match self.around.random.below(3) {
                0 => {
                    let (word, found) = self.around.matches();
                    self.tool_call("Grep", &format!("pattern: {word}\npath: ."));
                    self.tool_result(found);
                }
                1 => {
                    let command = format!("command: make test-{}", self.around.family.project);
                    self.tool_call("Bash", &command);
                    let log = self.around.log();
                    self.tool_result(log);
                }
                _ => {
                    let file = self.around.file();
                    self.tool_call("Read", &format!("file_path: {file}"));
                    let text = self.around.read(file);
                    self.tool_result(text);
                }
            }
        }
    }

    fn finish(mut self) -> SessionRow {
        for _ in 0..self.around.random.between(1, 4) {
            let (said, answered) = self.around.chatter();
            self.user(said);
            if self.around.random.below(3) == 0 {
                self.look_around();
            }
            self.answer(vec![text_part(answered)]);
        }
        let random = &mut self.around.random;
        let hour = random.below(HOURS) as i64;
        let time = Instant::from_microseconds(FIRST_DAY + hour * 3_600_000_000);
        let agent = random.below(AGENTS.len() as u64) as usize;
        SessionRow {
            session: self.session,
            group: String::new(),
            time: time.map(|time| time.to_string()),
            user: Some(pick(random, &USERS).to_owned()),
            model: Some(MODELS[agent].to_owned()),
            agent: Some(AGENTS[agent].to_owned()),
            calls: calls(self.messages),
        }
    }
}

/// Returns the calls of a conversation: each ends with what the assistant says.
fn calls(messages: Vec<MessageRow>) -> Vec<CallRow> {
    let mut calls = Vec::new();
    let mut call = CallRow::default();
    for message in messages {
        if message.role == "assistant" {
            call.output.push(message);
            calls.push(std::mem::take(&mut call));
        } else {
            call.input.push(message);
        }
    }
    if !call.input.is_empty() {
        calls.push(call);
    }
    calls
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::search::metrics::contains;
    use crate::search::set::places;

    #[test]
    fn every_question_has_its_part_in_the_right_session() {
        let set = own_set().expect("a set");
        assert!(set.sessions.len() >= 300, "{} Sessions", set.sessions.len());
        assert!(set.questions.len() >= 200, "{}", set.questions.len());
        for question in &set.questions {
            let session = set.sessions.iter();
            let session = session
                .clone()
                .find(|row| question.session.has(&row.session));
            let parts = places(session.expect("the Session")).expect("parts");
            let part = question.part.as_deref().expect("a part");
            let has_it = parts.iter().any(|place| contains(&place.text, part));
            assert!(has_it, "{}: {part}", question.id);
        }
    }

    #[test]
    fn the_set_is_the_same_every_time() {
        let lines = |set: QuestionSet| {
            let lines = set.sessions.iter().map(serde_json::to_string);
            lines.collect::<Result<Vec<_>, _>>().expect("JSON")
        };
        let first = lines(own_set().expect("a set"));
        assert_eq!(first, lines(own_set().expect("a set")));
        let bytes: usize = first.iter().map(String::len).sum();
        assert!((5_000_000..40_000_000).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn sessions_have_the_same_surroundings_and_both_splits_are_used() {
        let set = own_set().expect("a set");
        for row in &set.sessions {
            assert_eq!(row.calls[0].input[0].parts[0]["content"], PROMPT);
            assert!(row.calls.len() >= 2, "{}", row.session);
        }
        let tuned = set.questions.iter().filter(|one| one.split == Split::Tune);
        let share = tuned.count() as f64 / set.questions.len() as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
        let kinds: HashSet<&str> = set.questions.iter().map(|one| one.kind.as_str()).collect();
        assert!(kinds.len() >= 12, "{kinds:?}");
    }

    #[test]
    fn a_slip_changes_one_word() {
        let query = "why does the readiness probe fail";
        let slipped = slip(query);
        assert_ne!(slipped, query);
        let differing = query.split(' ').zip(slipped.split(' '));
        assert_eq!(differing.filter(|(one, other)| one != other).count(), 1);
    }
}
