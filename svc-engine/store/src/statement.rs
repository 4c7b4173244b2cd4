//! Statements that are built from conditions.

use super::sessions;
use super::value::Value;

/// A statement under construction, with the values of its placeholders.
#[derive(Debug, Default)]
pub(super) struct Statement<'v> {
    pub(super) text: String,
    pub(super) values: Vec<Value<'v>>,
}

impl<'v> Statement<'v> {
    /// Adds a value and returns its placeholder.
    pub(super) fn value(&mut self, value: impl Into<Value<'v>>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    /// Adds a text that was made for the statement and returns its placeholder.
    pub(super) fn own(&mut self, text: String) -> String {
        self.value(Value::OwnText(text))
    }
}

/// The tables whose facts belong to a Session.
const TABLES: [&str; 6] = [
    "inference_calls",
    "developer_decisions",
    "edit_observations",
    "rejected_edits",
    "retry_linkages",
    "session_commit_observations",
];

/// Returns the condition that some visible fact belongs to the Session of `row`.
pub(super) fn exists(row: &str) -> String {
    let (org_id, session_id) = (format!("{row}.org_id"), format!("{row}.session_id"));
    let exist = TABLES.map(|table| {
        let condition = sessions::of_session(table, &org_id, &session_id);
        format!("EXISTS (SELECT 1 FROM visible_{table} f WHERE {condition})")
    });
    format!("({})", exist.join(" OR "))
}
