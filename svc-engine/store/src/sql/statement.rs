//! Statements that are built from conditions.

use super::value::Value;

/// A statement under construction, with the values of its placeholders.
#[derive(Debug, Default)]
pub(crate) struct Statement<'v> {
    pub(crate) text: String,
    pub(crate) values: Vec<Value<'v>>,
}

impl<'v> Statement<'v> {
    /// Adds a value and returns its placeholder.
    pub(crate) fn value(&mut self, value: impl Into<Value<'v>>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    /// Adds a text that was made for the statement and returns its placeholder.
    pub(crate) fn own(&mut self, text: String) -> String {
        self.value(Value::OwnText(text))
    }
}
