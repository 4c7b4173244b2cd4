use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use svc_client::ErrorKind;
use svc_model::evidence::{EvidenceRead, EvidenceReadRequest};
use svc_model::problem::Decline;
use svc_model::version::Version1;

use super::file::{exists, write_new};
use super::read;
use super::selection::{parse_reference, selection};
use crate::commands::context::session_id;
use crate::commands::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape, item_block, reference};

#[derive(Debug, Args)]
pub(crate) struct ReadParts {
    /// The Session.
    session: String,

    /// The parts to read, as the manifest names them: CALL:SIDE:MESSAGE:PART.
    #[arg(required_unless_present = "file", value_name = "REFERENCE")]
    references: Vec<String>,

    /// A file of references, or - for standard input:
    /// {"schema_version":1,"references":[{"inference_call_id","side","message_index","part_index"}]}.
    #[arg(long = "references", id = "file", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Write the exact reply to a new private file. An existing file is never overwritten.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    service: ServiceOptions,
}

/// The summary of a file that was written.
#[derive(Debug, Serialize)]
struct FileSummary {
    file: String,
    items: usize,
}

impl ReadParts {
    pub(super) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let mut references = Vec::new();
        for text in &self.references {
            references.push(parse_reference(text).ok_or_else(|| {
                CommandError::argument("a reference", "must be CALL:input|output:MESSAGE:PART")
                    .hint("the manifest of a call lists them: svc evidence manifest SESSION CALL")
                    .given("SESSION", &self.session)
            })?);
        }
        if let Some(file) = &self.file {
            references.extend(selection(file)?);
        }
        if let Some(file) = self.output.as_deref().filter(|file| file.exists()) {
            return Err(exists(file));
        }
        let request = EvidenceReadRequest {
            schema_version: Version1,
            session_id: session_id(&self.session)?,
            references,
            explain: true,
        };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            let reply = read(&client, &request).await;
            reply.map_err(|error| refused(error, &request))
        })?;
        match &self.output {
            None => output.reply(&reply, render_read),
            Some(file) => {
                write_new(file, &reply.bytes)?;
                let written = FileSummary {
                    file: file.display().to_string(),
                    items: reply.value.items.len(),
                };
                output.value(&written, |written| {
                    format!("{}: {} items\n", escape(&written.file), written.items)
                })
            }
        }
    }
}

/// Adds to an error which reference is at fault, as the user gave it.
fn refused(error: svc_client::Error, request: &EvidenceReadRequest) -> CommandError {
    let at_fault = match error.kind() {
        ErrorKind::Declined(
            Decline::EvidenceUnavailable {
                reference_index: Some(index),
            }
            | Decline::EvidencePartAbsent {
                reference_index: index,
            }
            | Decline::ContentErased {
                reference_index: index,
            },
        ) => usize::try_from(*index).ok(),
        _ => None,
    };
    let error = CommandError::from(error).given("SESSION", request.session_id.as_str());
    let at_fault = at_fault.and_then(|index| Some((index, request.references.get(index)?)));
    let Some((index, at_fault)) = at_fault else {
        return error;
    };
    error
        .given("CALL", at_fault.inference_call_id.as_str())
        .hint(format!("reference {index} is {}", reference(at_fault)))
}

pub(crate) fn render_read(read: &EvidenceRead) -> String {
    let blocks: Vec<_> = read.items.iter().map(item_block).collect();
    blocks.join("\n")
}
