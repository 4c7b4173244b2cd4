//! The two streams of the program.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use svc_client::RawReply;
use svc_model::json;

use super::exact::printable;
use super::shell::with_options;
use super::{escape, program};
use crate::error::{CommandError, ExitKind};
use crate::options::ServiceOptions;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// How a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: one JSON value per line, on standard error too.
    Json,
}

/// The output of a command. Colours are left out if they are not wanted or cannot be shown.
pub(crate) struct Output {
    format: Format,
    /// How suggested commands call this program.
    program: String,
    standard: Box<dyn Write>,
    errors: Box<dyn Write>,
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: &'a str,
    message: &'a str,
    /// The hints, in the order in which people see them.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hints: &'a [String],
    /// The id under which the service logs the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl Output {
    /// Returns the streams of the process.
    pub(crate) fn standard(format: Format) -> Self {
        Self::new(format, program(), anstream::stdout(), anstream::stderr())
    }

    pub(crate) fn new(
        format: Format,
        program: &str,
        standard: impl Write + 'static,
        errors: impl Write + 'static,
    ) -> Self {
        Self {
            format,
            program: program.to_owned(),
            standard: Box::new(standard),
            errors: Box::new(errors),
        }
    }

    /// Returns whether the output is for people.
    pub(crate) fn is_for_people(&self) -> bool {
        self.format == Format::Text
    }

    /// Prints a reply: its unchanged bytes, or text for people.
    pub(crate) fn reply<T>(
        &mut self,
        reply: &RawReply<T>,
        render: impl FnOnce(&T) -> String,
    ) -> Result<(), CommandError> {
        match self.format {
            Format::Text => self.text(&render(&reply.value)),
            Format::Json => self.exact(&reply.bytes),
        }
    }

    /// Prints a value that this program created: as JSON, or as text for people.
    pub(crate) fn value<T: Serialize>(
        &mut self,
        value: &T,
        render: impl FnOnce(&T) -> String,
    ) -> Result<(), CommandError> {
        match self.format {
            Format::Text => self.text(&render(value)),
            Format::Json => {
                let bytes = json::to_vec(value, usize::MAX)
                    .map_err(|error| CommandError::refused("unwritable", error.to_string()))?;
                self.exact(&bytes)
            }
        }
    }

    /// Prints text. External text in it must already be escaped.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), CommandError> {
        self.standard.write_all(text.as_bytes())?;
        Ok(self.standard.flush()?)
    }

    /// Prints lines of JSON, in printable ASCII.
    pub(crate) fn lines(&mut self, lines: &[u8]) -> Result<(), CommandError> {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.standard.write_all(&printable(line))?;
            self.standard.write_all(b"\n")?;
        }
        Ok(self.standard.flush()?)
    }

    /// Prints valid JSON in printable ASCII.
    fn exact(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.standard.write_all(&printable(bytes))?;
        self.standard.write_all(b"\n")?;
        Ok(self.standard.flush()?)
    }

    /// Prints a warning for people. Programs find it in the JSON value itself.
    pub(crate) fn warning(&mut self, text: &str) {
        if self.format == Format::Text {
            self.caveat(text);
        }
    }

    /// Prints a warning, for programs too: the output itself has no member that says it.
    pub(crate) fn caveat(&mut self, text: &str) {
        let text = escape(text);
        self.complain(format_args!("{WARNING}warning:{WARNING:#} {text}\n"));
    }

    /// Prints a note for people beside the output.
    pub(crate) fn note(&mut self, text: &str) {
        if self.format == Format::Text {
            let text = escape(text);
            self.complain(format_args!("{HINT}note:{HINT:#} {text}\n"));
        }
    }

    /// Prints suggested commands for the same service. A command begins with `svc`, and is printed
    /// in a form that can be pasted.
    pub(crate) fn next(&mut self, service: &ServiceOptions, commands: &[String]) {
        if self.format == Format::Json || commands.is_empty() {
            return;
        }
        let mut text = String::from("\nnext:\n");
        for command in commands {
            let command = with_options(command, &service.repeated());
            let (program, rest) = match command.strip_prefix("svc ") {
                Some(rest) => (&*self.program, [" ", rest].concat()),
                None => ("", command),
            };
            text.extend(["  ", program, &rest, "\n"]);
        }
        self.complain(format_args!("{text}"));
    }

    /// Prints the error that ended the command.
    pub(crate) fn error(&mut self, error: &CommandError) {
        if error.kind() == ExitKind::BrokenPipe {
            return;
        }
        match self.format {
            Format::Text => {
                let lines: Vec<_> = error.traced().lines().map(escape).collect();
                let message = lines.join("\n  ");
                self.complain(format_args!("{ERROR}error:{ERROR:#} {message}\n"));
                for hint in error.hints() {
                    self.complain(format_args!("{HINT}hint:{HINT:#} {hint}\n"));
                }
            }
            Format::Json => {
                let body = ErrorBody {
                    code: error.code(),
                    message: error.message(),
                    hints: error.hints(),
                    request_id: error.request_id(),
                };
                let report = json::to_vec(&ErrorReport { error: body }, usize::MAX);
                let report = report.unwrap_or_default();
                self.complain(format_args!("{}\n", String::from_utf8_lossy(&report)));
            }
        }
    }

    /// Writes to standard error. If that fails, nobody is left to tell.
    fn complain(&mut self, text: std::fmt::Arguments<'_>) {
        drop(
            self.errors
                .write_fmt(text)
                .and_then(|()| self.errors.flush()),
        );
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Sink;

    fn output(format: Format) -> (Output, Sink, Sink) {
        let (standard, errors) = (Sink::default(), Sink::default());
        (
            Output::new(format, "svc", standard.clone(), errors.clone()),
            standard,
            errors,
        )
    }

    #[test]
    fn an_error_is_one_json_object() {
        let (mut output, _, errors) = output(Format::Json);
        output.error(&CommandError::refused("busy", "all\nbusy").hint("wait"));
        assert_eq!(
            errors.text(),
            "{\"error\":{\"code\":\"busy\",\"message\":\"all\\nbusy\",\"hints\":[\"wait\"]}}\n"
        );
    }

    #[test]
    fn an_error_for_a_person_has_hints_and_no_control_characters() {
        let (mut output, _, errors) = output(Format::Text);
        output.error(&CommandError::refused("a", "one\u{1b}\ntwo").hint("svc me"));
        let text = errors.text();
        assert!(text.contains("one\\u{1b}\n  two\n"), "{text}");
        assert!(text.ends_with(" svc me\n"), "{text}");
    }

    #[test]
    fn json_reaches_a_terminal_as_ascii() {
        let (mut output, standard, _) = output(Format::Json);
        output.exact(br#"{"a": 1.10}"#).unwrap();
        output.exact("{\"a\": \"\u{202e}\"}".as_bytes()).unwrap();
        assert_eq!(standard.text(), "{\"a\": 1.10}\n{\"a\": \"\\u202e\"}\n");
    }

    #[test]
    fn advice_goes_to_stderr_and_not_into_the_output() {
        let (mut output, standard, errors) = output(Format::Text);
        output.text("one\n").unwrap();
        let service = ServiceOptions::default();
        output.next(&service, &[]);
        output.next(&service, &["svc me".to_owned(), "svc facts".to_owned()]);
        assert_eq!(standard.text(), "one\n");
        assert_eq!(errors.text(), "\nnext:\n  svc me\n  svc facts\n");
    }

    #[test]
    fn a_suggested_command_names_the_program_as_the_shell_finds_it() {
        let (mut output, _, errors) = output(Format::Text);
        output.program = "/opt/own/svc".to_owned();
        let commands = ["svc me", "SVC_ORG_ID=a /opt/own/svc serve", "svcx"];
        output.next(&ServiceOptions::default(), &commands.map(str::to_owned));
        assert_eq!(
            errors.text(),
            "\nnext:\n  /opt/own/svc me\n  SVC_ORG_ID=a /opt/own/svc serve\n  svcx\n"
        );
    }

    #[test]
    fn programs_get_no_advice() {
        let (mut output, standard, errors) = output(Format::Json);
        output.next(&ServiceOptions::default(), &["svc me".to_owned()]);
        output.warning("old");
        assert_eq!(
            (standard.text(), errors.text()),
            (String::new(), String::new())
        );
    }
}
