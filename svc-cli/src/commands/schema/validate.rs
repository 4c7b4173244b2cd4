use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Map, Value};
use svc_model::json::Json;
use svc_server::schemas::PublishedSchema;

use super::published;
use super::violation::{Violation, violations};
use crate::error::CommandError;
use crate::output::{Output, escape};

/// The file name for standard input.
const STANDARD_INPUT: &str = "-";

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The schema, such as GatewayPayload.
    #[arg(value_name = "NAME")]
    name: String,

    /// The file with the document, or - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// The result, for programs.
#[derive(Debug, Serialize)]
struct ValidationResult {
    schema: &'static str,
    valid: bool,
    violations: Vec<Violation>,
}

impl Validate {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        let schema = published::find(&self.name)?;
        let document = Json::parse(&read(&self.file)?).map_err(|error| {
            CommandError::refused("not_json", format!("the document is not JSON: {error}"))
        })?;
        let violations = violations(&validator(schema)?, &plain(&document));
        let checked = ValidationResult {
            schema: schema.name,
            valid: violations.is_empty(),
            violations,
        };
        output.value(&checked, render)?;
        let count = match checked.violations.len() {
            0 => return Ok(()),
            1 => "one violation".to_owned(),
            count => format!("{count} violations"),
        };
        let name = schema.name;
        Err(
            CommandError::refused("invalid_document", format!("{count} of {name}"))
                .hint(format!("to see the schema: svc schema show {name}")),
        )
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CommandError> {
    if file == Path::new(STANDARD_INPUT) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(file).map_err(|error| {
        let name = file.display();
        CommandError::refused("io", format!("{name} cannot be read: {error}"))
    })
}

/// Returns a validator for a schema, which also checks formats.
pub(super) fn validator(schema: PublishedSchema) -> Result<Validator, CommandError> {
    let unusable = |error: &dyn std::fmt::Display| {
        CommandError::refused("unusable_schema", format!("{}: {error}", schema.name))
    };
    let document = serde_json::from_str(schema.text).map_err(|error| unusable(&error))?;
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&document).map_err(|error| unusable(&error))
}

/// Converts a document for the validator. Of duplicate members the last is kept, as the service
/// does. Lone surrogates become U+FFFD. Numbers become doubles, clamped to the largest double.
/// Values such as NaN become null, so that they fail as numbers.
pub(super) fn plain(document: &Json) -> Value {
    match document {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match serde_json::from_str(number.as_str()) {
            Ok(value) => value,
            Err(_)
                if number
                    .as_str()
                    .ends_with(|last: char| last.is_ascii_digit()) =>
            {
                f64::MAX.copysign(number.as_f64()).into()
            }
            Err(_) => Value::Null,
        },
        Json::String(text) => text.to_string_lossy().into(),
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(object) => object
            .iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), plain(value)))
            .collect::<Map<String, Value>>()
            .into(),
    }
}

fn render(checked: &ValidationResult) -> String {
    if checked.valid {
        return format!("valid: {}\n", checked.schema);
    }
    let lines = checked.violations.iter().map(|violation| {
        let place = match &*violation.pointer {
            "" => "(document)".to_owned(),
            pointer => escape(pointer),
        };
        format!("{place}: {}\n", escape(&violation.message))
    });
    lines.collect()
}
