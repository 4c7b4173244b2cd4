//! Errors of commands: the reason, the exit code, and what to run next.

use std::fmt;
use std::io;
use std::process::ExitCode;

use svc_client::{BaseUrlError, BuildError};
use svc_model::problem::Advice;

use crate::output::positional;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitKind {
    /// The service, the store or this program refused the command, or failed.
    Refused,
    /// The command line is invalid.
    Usage,
    /// Nobody reads the output any more, which is not an error.
    BrokenPipe,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: ExitKind,
    code: String,
    message: String,
    hints: Vec<String>,
    request_id: Option<String>,
}

impl CommandError {
    /// Returns a refusal: a closed word for programs, a text for people.
    pub(crate) fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: ExitKind::Refused,
            code: code.into(),
            message: message.into(),
            hints: Vec::new(),
            request_id: None,
        }
    }

    /// Returns the refusal of an argument that breaks a rule.
    pub(crate) fn argument(name: &str, rule: impl fmt::Display) -> Self {
        Self::refused("invalid_argument", format!("{name} {rule}"))
    }

    /// Returns the error for an argument that no command takes in this form.
    pub(crate) fn misuse(name: &str, rule: impl fmt::Display) -> Self {
        Self {
            kind: ExitKind::Usage,
            ..Self::argument(name, rule)
        }
    }

    /// Turns a usage error into a refusal.
    #[must_use]
    pub(crate) fn into_refusal(self) -> Self {
        Self {
            kind: ExitKind::Refused,
            ..self
        }
    }

    /// Returns the refusal of a word that only a newer version knows.
    pub(crate) fn newer(name: &str, word: impl fmt::Display) -> Self {
        Self::refused(
            "unknown_word",
            format!("{name} {word} is not known to this svc"),
        )
        .hint("the service is newer: update svc")
    }

    /// Returns the error for an invalid command line.
    pub(crate) fn usage(message: &str) -> Self {
        let mut lines = message.lines().skip_while(|line| line.is_empty());
        let first = lines.next().unwrap_or_default();
        // The details that the first line announces, such as the missing arguments.
        let named = lines
            .take_while(|line| line.starts_with("  "))
            .map(str::trim);
        let named = named.collect::<Vec<_>>().join(", ");
        let first = first.trim_start_matches("error: ");
        Self {
            kind: ExitKind::Usage,
            ..Self::refused("usage", format!("{first} {named}").trim_end())
        }
    }

    /// Adds a hint: a command to run next, or other advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the id of the refused request.
    #[must_use]
    pub(crate) fn of_request(mut self, id: Option<&str>) -> Self {
        self.request_id = id.map(str::to_owned);
        self
    }

    /// Puts before the message what was done in spite of the error.
    #[must_use]
    pub(crate) fn after(mut self, done: &str) -> Self {
        self.message = format!("{done}: {}", self.message);
        self
    }

    /// Adds what to do about the error, if the error does not say enough.
    #[must_use]
    pub(crate) fn advised(mut self, advice: Advice) -> Self {
        self.hints.extend(advice.shell());
        self
    }

    /// Replaces a name such as SESSION in the hints by the argument that the command was given, so
    /// that the hints can be pasted.
    #[must_use]
    pub(crate) fn given(mut self, name: &str, argument: &str) -> Self {
        let (name, argument) = (format!(" {name}"), format!(" {}", positional(argument)));
        for hint in &mut self.hints {
            *hint = hint.replace(&name, &argument);
        }
        self
    }

    pub(crate) fn kind(&self) -> ExitKind {
        self.kind
    }

    /// Returns the reason's closed word.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Returns the message, which may contain external text.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the message with the id of the refused request.
    pub(crate) fn traced(&self) -> String {
        match &self.request_id {
            Some(id) => format!("{} (request {id})", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the id of the refused request, which the service logs.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.kind {
            ExitKind::Refused => ExitCode::from(1),
            ExitKind::Usage => ExitCode::from(2),
            ExitKind::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

/// Returns the text of an error and of all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some libraries repeat the cause in their own text.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => ExitKind::BrokenPipe,
            _ => ExitKind::Refused,
        };
        Self {
            kind,
            ..Self::refused("io", error.to_string())
        }
    }
}

impl From<BuildError> for CommandError {
    fn from(error: BuildError) -> Self {
        let hint = match &error {
            BuildError::Url(BaseUrlError::PlainHttp) => {
                "to send the token unencrypted, where anybody on the network can read it: SVC_ALLOW_PLAIN_HTTP=1"
            }
            BuildError::Url(_) => "see --url and SVC_URL",
            BuildError::Token | BuildError::TokenFile { .. } => "see SVC_TOKEN and SVC_TOKEN_FILE",
            _ => return Self::refused("configuration", chain(&error)),
        };
        Self::refused("configuration", chain(&error)).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_decides_the_exit_code() {
        let code = |error: CommandError| format!("{:?}", error.exit_code());
        assert_eq!(
            code(CommandError::refused("a", "b")),
            format!("{:?}", ExitCode::from(1))
        );
        assert_eq!(
            code(CommandError::usage("error: b")),
            format!("{:?}", ExitCode::from(2))
        );
        let argument = CommandError::misuse("--since", "must be a moment");
        assert_eq!(code(argument), format!("{:?}", ExitCode::from(2)));
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(code(closed.into()), format!("{:?}", ExitCode::SUCCESS));
    }

    #[test]
    fn a_usage_error_is_shortened_to_its_message_and_list() {
        for (text, message) in [
            (
                "error: unexpected argument\n\nUsage: svc\n",
                "unexpected argument",
            ),
            (
                "error: these are missing:\n  <TO>\n  --margin <M>\n\nUsage: svc\n",
                "these are missing: <TO>, --margin <M>",
            ),
        ] {
            let error = CommandError::usage(text);
            assert_eq!((error.code(), error.message()), ("usage", message));
        }
    }
}
