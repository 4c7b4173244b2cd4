use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use svc_client::model::problem::RequiredAuthority;
use svc_client::{Client, Denial, Error, ErrorKind, RawReply};
use svc_model::endpoint::{
    Endpoint, EvidenceInventory, EvidenceManifest, EvidenceReading, GrantInventory, GrantManifest,
    GrantRead,
};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
    Reference, Side,
};
use svc_model::id::InferenceCallId;
use svc_model::json;
use svc_model::limit::EVIDENCE_READ_BODY_BYTES_MAX;
use svc_model::version::Version1;

use super::context::session_id;
use super::service;
use crate::cli::ServiceOptions;
use crate::error::CommandError;
use crate::output::{Output, Table, escape, item_block, one_line, optional, quote, reference};

#[derive(Debug, Subcommand)]
pub(crate) enum Evidence {
    /// List the visible calls of a Session.
    Inventory(ReadInventory),
    /// List the messages and parts of a call, without what they say.
    Manifest(ReadManifest),
    /// Read parts, complete and exact.
    Read(ReadParts),
}

#[derive(Debug, Args)]
pub(crate) struct ReadInventory {
    /// The Session.
    session: String,

    #[command(flatten)]
    service: ServiceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReadManifest {
    /// The Session.
    session: String,

    /// The call, as the inventory names it.
    call: String,

    #[command(flatten)]
    service: ServiceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReadParts {
    /// The Session.
    session: String,

    /// What to read, as the manifest names it: CALL:SIDE:MESSAGE:PART.
    #[arg(required_unless_present = "file", value_name = "REFERENCE")]
    references: Vec<String>,

    /// A file of references to read, - for standard input:
    /// {"schema_version":1,"references":[{"inference_call_id","side","message_index","part_index"}]}.
    #[arg(long = "references", id = "file", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Write the exact reply to a new private file. It never replaces one.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A file of references.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    #[expect(dead_code, reason = "reading it is what checks it")]
    schema_version: Version1,
    references: Vec<Reference>,
}

/// What is said of a written file.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    items: usize,
}

impl Evidence {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Inventory(inventory) => inventory.run(output),
            Self::Manifest(manifest) => manifest.run(output),
            Self::Read(read) => read.run(output),
        }
    }
}

impl ReadInventory {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = InventoryRequest { session_id: session_id(&self.session)? };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            Ok(ask::<EvidenceInventory, GrantInventory>(&client, &request).await?)
        })?;
        output.reply(&reply, render_inventory)?;
        output.next(&after_inventory(&reply.value))
    }
}

impl ReadManifest {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = ManifestRequest {
            session_id: session_id(&self.session)?,
            inference_call_id: InferenceCallId::new(&self.call)
                .map_err(|rule| CommandError::argument("the call", rule))?,
        };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            Ok(ask::<EvidenceManifest, GrantManifest>(&client, &request).await?)
        })?;
        output.reply(&reply, render_manifest)?;
        output.next(&after_manifest(&reply.value))
    }
}

impl ReadParts {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let mut references = Vec::new();
        for text in &self.references {
            references.push(parse_reference(text).ok_or_else(|| {
                CommandError::argument("a reference", "must be CALL:input|output:MESSAGE:PART")
                    .hint("the manifest of a call lists them: svc evidence manifest SESSION CALL")
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
        };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async { Ok(read(&client, &request).await?) })?;
        match &self.output {
            None => output.reply(&reply, render_read),
            Some(file) => {
                write_new(file, &reply.bytes)?;
                let written =
                    Written { file: file.display().to_string(), items: reply.value.items.len() };
                output.value(&written, |written| {
                    format!("{}: {} items\n", escape(&written.file), written.items)
                })
            }
        }
    }
}

/// Reads parts.
pub(super) async fn read(
    client: &Client,
    request: &EvidenceReadRequest,
) -> Result<RawReply<EvidenceRead>, Error> {
    ask::<EvidenceReading, GrantRead>(client, request).await
}

/// Asks the route of operators; a token that is none of an operator asks within its grant.
pub(super) async fn ask<Everywhere, Granted>(
    client: &Client,
    request: &Everywhere::Request,
) -> Result<RawReply<Everywhere::Reply>, Error>
where
    Everywhere: Endpoint,
    Granted: Endpoint<Request = Everywhere::Request, Reply = Everywhere::Reply>,
{
    const NO_OPERATOR: ErrorKind =
        ErrorKind::Forbidden(Denial::Authority(RequiredAuthority::Operator));
    match client.call_raw::<Everywhere>(request).await {
        Err(error) if *error.kind() == NO_OPERATOR => client.call_raw::<Granted>(request).await,
        outcome => outcome,
    }
}

/// Reads `CALL:SIDE:MESSAGE:PART`; the call may hold colons.
fn parse_reference(text: &str) -> Option<Reference> {
    let mut fields = text.rsplitn(4, ':');
    let part_index = fields.next()?.parse().ok()?;
    let message_index = fields.next()?.parse().ok()?;
    let side = Side::from_wire(fields.next()?)?;
    let inference_call_id = InferenceCallId::new(fields.next()?).ok()?;
    Some(Reference { inference_call_id, side, message_index, part_index })
}

fn selection(file: &Path) -> Result<Vec<Reference>, CommandError> {
    let unreadable = |what: String| CommandError::refused("references", what);
    let name = escape(&file.display().to_string());
    // One byte more than is allowed tells that there is more.
    let bytes_max = EVIDENCE_READ_BODY_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(bytes_max).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes))
    };
    read.map_err(|error| unreadable(format!("{name} cannot be read: {error}")))?;
    if bytes.len() > EVIDENCE_READ_BODY_BYTES_MAX {
        return Err(unreadable(format!("{name} is over {EVIDENCE_READ_BODY_BYTES_MAX} bytes")));
    }
    let selection: Selection = json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("{name} holds no references: {error}")))?;
    Ok(selection.references)
}

fn exists(file: &Path) -> CommandError {
    let name = escape(&file.display().to_string());
    CommandError::refused("file_exists", format!("{name} exists, and is never replaced"))
}

/// Writes a file that did not exist, for its owner alone.
fn write_new(file: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => error.into(),
    })?;
    let written = opened.write_all(bytes).and_then(|()| opened.sync_all());
    if written.is_err() {
        // Half a reply is no evidence.
        drop(fs::remove_file(file));
    }
    Ok(written?)
}

fn render_inventory(inventory: &Inventory) -> String {
    let session = escape(inventory.session_id.as_str());
    if !inventory.found {
        return format!("Session {session} is not known\n");
    }
    let mut text = format!(
        "Session {session}: {} visible calls, {} quarantined\n",
        inventory.visible_inference_calls, inventory.quarantined_inference_calls,
    );
    if inventory.calls.is_empty() {
        return text;
    }
    let name = |name: Option<&String>| name.map_or_else(|| "-".to_owned(), |name| escape(name));
    let mut table = Table::new(["observed at", "call", "provider", "model"]);
    for call in &inventory.calls {
        table.row([
            call.observed_at.to_string(),
            call.inference_call_id.to_string(),
            name(call.model_provider.as_ref()),
            name(call.model.as_ref()),
        ]);
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}

fn after_inventory(inventory: &Inventory) -> Vec<String> {
    let session = quote(inventory.session_id.as_str());
    let last = inventory.calls.last();
    last.map(|call| format!("svc evidence manifest {session} {}", call.inference_call_id))
        .into_iter()
        .collect()
}

fn render_manifest(manifest: &Manifest) -> String {
    let parts: usize = manifest.messages.iter().map(|message| message.parts.len()).sum();
    let mut text = format!(
        "call {} of Session {}: {} messages, {parts} parts\n",
        manifest.call.inference_call_id,
        escape(manifest.session_id.as_str()),
        manifest.messages.len(),
    );
    if manifest.messages.is_empty() {
        return text;
    }
    let mut table = Table::new(["reference", "role", "type", "finish reason"]);
    for message in &manifest.messages {
        let role = one_line(&message.role, 40);
        let finish_reason = optional(message.finish_reason.as_ref());
        for part in &message.parts {
            let reference = escape(&reference(&part.reference));
            table.row([reference, role.clone(), part.part_type.to_string(), finish_reason.clone()]);
        }
        if message.parts.is_empty() {
            // A message that says nothing is evidence too.
            let place = format!("({}:{})", message.side, message.message_index);
            table.row([place, role, "-".to_owned(), finish_reason]);
        }
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}

fn after_manifest(manifest: &Manifest) -> Vec<String> {
    let session = quote(manifest.session_id.as_str());
    let last = manifest.messages.iter().rev().find_map(|message| message.parts.last());
    last.map(|part| {
        format!("svc evidence read {session} {}", quote(&reference(&part.reference)))
    })
    .into_iter()
    .collect()
}

pub(super) fn render_read(read: &EvidenceRead) -> String {
    let blocks: Vec<_> = read.items.iter().map(item_block).collect();
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_from_its_end() {
        let parsed = parse_reference("a:b:output:10:2").unwrap();
        assert_eq!(parsed.inference_call_id.as_str(), "a:b");
        assert_eq!((parsed.side, parsed.message_index, parsed.part_index), (Side::Output, 10, 2));
        assert_eq!(reference(&parsed), "a:b:output:10:2");
        for wrong in ["", "a", "a:output:1", ":output:1:2", "a:both:1:2", "a:input:-1:2", "a:input:1:x"] {
            assert_eq!(parse_reference(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn references_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("selection.json");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            selection(&file)
        };
        let one = r#"{"schema_version":1,"references":[{"inference_call_id":"c","side":"input","message_index":0,"part_index":1}]}"#;
        assert_eq!(read(one).unwrap(), [parse_reference("c:input:0:1").unwrap()]);
        for wrong in ["", "[]", "{}", r#"{"schema_version":2,"references":[]}"#, r#"{"schema_version":1,"references":[],"x":1}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&" ".repeat(EVIDENCE_READ_BODY_BYTES_MAX + 1)).is_err());
        assert!(selection(&folder.path().join("absent")).is_err());
    }

    #[test]
    fn a_file_is_new_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reply.json");
        write_new(&file, b"{}").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"{}");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(write_new(&file, b"[]").unwrap_err().code(), "file_exists");
        assert_eq!(fs::read(&file).unwrap(), b"{}");
    }

    #[test]
    fn an_inventory_is_a_table() {
        let text = r#"{"session_id":"s\u001b","quarantine_revision":0,"found":true,"visible_inference_calls":1,"quarantined_inference_calls":2,"calls":[{"inference_call_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","observed_at":"2026-01-15T09:30:00Z","model_provider":null,"model":"m"}],"capture_completeness":"unknown","schema_version":1}"#;
        let inventory = json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(
            render_inventory(&inventory),
            "Session s\\u{1b}: 1 visible calls, 2 quarantined\n\n\
             observed at           call                                  provider  model\n\
             2026-01-15T09:30:00Z  f8d5f475-40a1-5ebb-9796-b05b24001822  -         m\n"
        );
        assert_eq!(
            after_inventory(&inventory),
            [r"svc evidence manifest $'s\x1b' f8d5f475-40a1-5ebb-9796-b05b24001822"]
        );
    }

    #[test]
    fn a_manifest_shows_messages_without_parts() {
        let text = r#"{"session_id":"s","quarantine_revision":0,"call":{"inference_call_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","observed_at":"2026-01-15T09:30:00Z","model_provider":null,"model":null},"messages":[{"side":"input","message_index":0,"role":"user","finish_reason":null,"parts":[]},{"side":"output","message_index":0,"role":"assistant","finish_reason":"stop","parts":[{"type":"tool_call","reference":{"inference_call_id":"f8d5","side":"output","message_index":0,"part_index":0}}]}],"schema_version":1}"#;
        let manifest = json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(
            render_manifest(&manifest),
            "call f8d5f475-40a1-5ebb-9796-b05b24001822 of Session s: 2 messages, 1 parts\n\n\
             reference        role       type       finish reason\n\
             (input:0)        user       -          -\n\
             f8d5:output:0:0  assistant  tool_call  stop\n"
        );
        assert_eq!(after_manifest(&manifest), ["svc evidence read s f8d5:output:0:0"]);
    }
}
