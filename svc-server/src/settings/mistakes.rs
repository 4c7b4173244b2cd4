//! What is wrong with settings.

use std::fmt;

/// Every error in the settings, by the name of the setting.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingsError(pub(super) Vec<String>);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [mistake] => write!(f, "invalid settings: {mistake}"),
            mistakes => write!(f, "invalid settings:\n{}", mistakes.join("\n")),
        }
    }
}

impl std::error::Error for SettingsError {}
