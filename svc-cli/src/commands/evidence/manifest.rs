use clap::Args;
use svc_model::endpoint::{EvidenceManifest, GrantManifest};
use svc_model::evidence::{Manifest, ManifestRequest};
use svc_model::id::InferenceCallId;
use svc_view::SHELL;

use super::ask;
use crate::commands::context::session_id;
use crate::commands::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape, one_line, optional, positional, quote, reference};

#[derive(Debug, Args)]
pub(crate) struct ReadManifest {
    /// The Session.
    session: String,

    /// The call, as the inventory names it.
    call: String,

    #[command(flatten)]
    service: ServiceOptions,
}

impl ReadManifest {
    pub(super) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = ManifestRequest::new(
            session_id(&self.session)?,
            InferenceCallId::new(&self.call)
                .map_err(|rule| CommandError::argument("the call", rule))?,
        );
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            Ok(ask::<EvidenceManifest, GrantManifest>(&client, &request).await?)
        })
        .map_err(|error| error.given("SESSION", &self.session))?;
        output.reply(&reply, render_manifest)?;
        output.next(&self.service, &after_manifest(&reply.value));
        Ok(())
    }
}

fn render_manifest(manifest: &Manifest) -> String {
    let parts: usize = manifest
        .messages
        .iter()
        .map(|message| message.parts.len())
        .sum();
    let mut text = format!(
        "call {} of Session {}: {} messages, {parts} parts\n",
        manifest.call.inference_call_id,
        escape(manifest.session_id.as_str()),
        manifest.messages.len(),
    );
    text.extend(left_out(manifest));
    text.extend(erased(manifest));
    if manifest.messages.is_empty() {
        return text;
    }
    let mut table = Table::new(["reference", "role", "type", "finish reason"]);
    for message in &manifest.messages {
        let role = one_line(&message.role, 40);
        let finish_reason = optional(message.finish_reason.as_ref());
        for part in &message.parts {
            let reference = escape(&reference(&part.reference));
            table.row([
                reference,
                role.clone(),
                part.part_type.to_string(),
                finish_reason.clone(),
            ]);
        }
        if message.parts.is_empty() {
            // An empty message is evidence too.
            let place = format!("({}:{})", message.side, message.message_index);
            table.row([place, role, "-".to_owned(), finish_reason]);
        }
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}

/// Returns a line that says when the content of a call was erased, if it was.
pub(crate) fn erased(manifest: &Manifest) -> Option<String> {
    let at = manifest.call.content_erased_at?;
    Some(format!("what was said was erased at {at}\n"))
}

/// Returns a line that lists what the capture left out of a call, if anything.
pub(crate) fn left_out(manifest: &Manifest) -> Option<String> {
    let left_out = SHELL.left_out(manifest.left_out?)?;
    Some(format!("left out by the capture: {left_out}\n"))
}

fn after_manifest(manifest: &Manifest) -> Vec<String> {
    let session = positional(manifest.session_id.as_str());
    let last = manifest
        .messages
        .iter()
        .rev()
        .find_map(|message| message.parts.last());
    last.map(|part| {
        format!(
            "svc evidence read {session} {}",
            quote(&reference(&part.reference))
        )
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

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
        assert_eq!(
            after_manifest(&manifest),
            ["svc evidence read s f8d5:output:0:0"]
        );
    }
}
