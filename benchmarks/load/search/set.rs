//! Sessions and questions as files: JSON lines, one Session or question a line.
//!
//! ```json
//! {"session":"s1","time":"2026-03-01T09:00:00Z","user":"ann","model":"m","agent":"pager-bot","calls":[{"input":[{"role":"user","content":"Why?"}],"output":[{"role":"assistant","parts":[{"type":"text","content":"So."}]}]}]}
//! {"id":"q1","kind":"decision","query":"why","session":"s1","part":"So.","split":"tune"}
//! ```
//!
//! The input of a call is what it adds to the calls before it. A message has `parts`, as in
//! `POST /ingest/calls`, or one text as `content`. `session` of a question may be an array; any of
//! them is right. Sessions with the same `group` are searched together, and apart from all others.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use svc_model::evidence::Part;
use svc_model::search::search_text;

use crate::Failure;

/// A Session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SessionRow {
    pub(crate) session: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) calls: Vec<CallRow>,
}

/// A call of a model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CallRow {
    /// What it adds to the input of the call before it.
    #[serde(default)]
    pub(crate) input: Vec<MessageRow>,
    #[serde(default)]
    pub(crate) output: Vec<MessageRow>,
}

/// A message: parts, or one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageRow {
    pub(crate) role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<Value>,
}

impl MessageRow {
    /// Returns a message with one text.
    pub(crate) fn text(role: &str, text: impl Into<String>) -> Self {
        Self::parts(role, vec![text_part(text)])
    }

    /// Returns a message with parts.
    pub(crate) fn parts(role: &str, parts: Vec<Value>) -> Self {
        Self {
            role: role.to_owned(),
            content: None,
            parts,
        }
    }

    /// Returns all parts.
    pub(crate) fn all(&self) -> impl Iterator<Item = Value> {
        let text = self.content.as_deref().map(text_part);
        text.into_iter().chain(self.parts.iter().cloned())
    }
}

/// Returns a text part.
pub(crate) fn text_part(text: impl Into<String>) -> Value {
    json!({"type": "text", "content": text.into()})
}

/// A question whose right Sessions are known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QuestionRow {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) query: String,
    pub(crate) session: Right,
    /// A text that the right part contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<String>,
    #[serde(default)]
    pub(crate) split: Split,
}

/// The right Sessions of a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Right {
    One(String),
    Any(Vec<String>),
}

impl Right {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Self::One(session) => std::slice::from_ref(session),
            Self::Any(sessions) => sessions,
        }
    }

    pub(crate) fn has(&self, session: &str) -> bool {
        self.all().iter().any(|right| right == session)
    }
}

/// Whether weights may be tuned with a question, or are only checked with it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Split {
    Tune,
    #[default]
    Held,
}

impl Split {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tune => "tune",
            Self::Held => "held",
        }
    }

    /// Returns the split of a question, by its id alone.
    pub(crate) fn of(id: &str) -> Self {
        if fingerprint(id).is_multiple_of(2) {
            Self::Tune
        } else {
            Self::Held
        }
    }
}

/// Returns a number that depends on a text alone.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    crate::template::mix(hash)
}

/// Sessions, and questions about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuestionSet {
    pub(crate) sessions: Vec<SessionRow>,
    pub(crate) questions: Vec<QuestionRow>,
}

impl QuestionSet {
    /// Reads both files.
    pub(crate) fn read(sessions: &Path, questions: &Path) -> Result<Self, Failure> {
        let set = Self {
            sessions: read_lines(sessions)?,
            questions: read_lines(questions)?,
        };
        set.check()?;
        Ok(set)
    }

    /// Writes both files.
    pub(crate) fn write(&self, sessions: &Path, questions: &Path) -> Result<(), Failure> {
        write_lines(sessions, &self.sessions)?;
        write_lines(questions, &self.questions)
    }

    /// Checks that ids are unique, and that the right Sessions exist.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let mut sessions = HashSet::new();
        for row in &self.sessions {
            if !sessions.insert(row.session.as_str()) {
                return Err(format!("two Sessions are called {}", row.session).into());
            }
        }
        let mut ids = HashSet::new();
        for question in &self.questions {
            let id = &question.id;
            if !ids.insert(id) {
                return Err(format!("two questions are called {id}").into());
            }
            let right = question.session.all();
            let missing = |session: &String| !sessions.contains(session.as_str());
            if right.is_empty() || right.iter().any(missing) {
                return Err(format!("a right Session of {id} is missing").into());
            }
        }
        Ok(())
    }

    /// Returns the sets that are searched apart, one for each group.
    pub(crate) fn groups(self) -> Vec<Self> {
        let mut groups: BTreeMap<String, Self> = BTreeMap::new();
        let mut group_of = BTreeMap::new();
        for session in self.sessions {
            group_of.insert(session.session.clone(), session.group.clone());
            let group = groups.entry(session.group.clone()).or_default();
            group.sessions.push(session);
        }
        for question in self.questions {
            let group = question.session.all().first();
            let group = group.and_then(|session| group_of.get(session));
            if let Some(group) = group.and_then(|group| groups.get_mut(group)) {
                group.questions.push(question);
            }
        }
        groups.into_values().collect()
    }
}

/// A part of a Session.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) role: String,
    pub(crate) kind: String,
    /// Its search text.
    pub(crate) text: String,
    /// The size of its JSON in bytes.
    pub(crate) size: usize,
}

/// Returns the distinct parts of a Session in the order in which they were said, but no reasoning.
pub(crate) fn places(session: &SessionRow) -> Result<Vec<Place>, Failure> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let calls = session.calls.iter();
    for message in calls.flat_map(|call| call.input.iter().chain(&call.output)) {
        for value in message.all() {
            let kind = value["type"].as_str().unwrap_or_default().to_owned();
            let written = value.to_string();
            if kind == "reasoning" || !seen.insert(written.clone()) {
                continue;
            }
            found.push(Place {
                role: message.role.clone(),
                kind,
                text: text_of(written.as_bytes())?,
                size: written.len(),
            });
        }
    }
    Ok(found)
}

/// Returns the search text of a part that is written as JSON.
pub(crate) fn text_of(part: &[u8]) -> Result<String, Failure> {
    let part: Part = svc_model::json::from_slice(part)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(part)))?;
    Ok(search_text(&part).to_string_lossy().into_owned())
}

/// Reads a file of JSON lines.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Failure> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut rows = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let row = serde_json::from_str(&line)
            .map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))?;
        rows.push(row);
    }
    Ok(rows)
}

fn write_lines<T: Serialize>(path: &Path, rows: &[T]) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in rows {
        serde_json::to_writer(&mut file, row)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> QuestionSet {
        let session = |session: &str, group: &str| SessionRow {
            session: session.to_owned(),
            group: group.to_owned(),
            ..SessionRow::default()
        };
        let question: QuestionRow =
            serde_json::from_str(r#"{"id":"q","kind":"chat","query":"why","session":["b","c"]}"#)
                .expect("a question");
        QuestionSet {
            sessions: vec![
                session("a", "one"),
                session("b", "two"),
                session("c", "two"),
            ],
            questions: vec![question],
        }
    }

    #[test]
    fn groups_have_their_own_questions() {
        let groups = set().groups();
        let counts = groups.iter();
        let counts = counts.map(|group| (group.sessions.len(), group.questions.len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(1, 0), (2, 1)]);
    }

    #[test]
    fn ids_are_unique_and_right_sessions_exist() {
        set().check().expect("a good set");
        let mut wrong = set();
        wrong.sessions.pop();
        wrong.check().expect_err("c is missing");
        let mut twice = set();
        twice.questions.extend(set().questions);
        twice.check().expect_err("q is there twice");
    }

    #[test]
    fn a_split_depends_on_the_id_alone() {
        let ids = (0..1_000).map(|number| format!("family-a-{number}"));
        let tuned = ids.filter(|id| Split::of(id) == Split::Tune).count();
        assert!((420..580).contains(&tuned), "{tuned} of 1000");
    }

    #[test]
    fn parts_count_once_in_a_session() {
        let row: SessionRow = serde_json::from_str(
            r#"{"session":"s","calls":[
                {"input":[{"role":"user","content":"Why?"}],"output":[{"role":"assistant","parts":[
                    {"type":"reasoning","content":"Hm."},{"type":"text","content":"So."}]}]},
                {"input":[{"role":"user","content":"Why?"}]}]}"#,
        )
        .expect("a Session");
        let texts = places(&row).expect("parts").into_iter();
        let texts: Vec<String> = texts.map(|place| place.text).collect();
        assert_eq!(texts, ["Why?", "So."]);
    }
}
