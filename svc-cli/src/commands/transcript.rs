use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use clap::Args;
use svc_client::model::problem::{Decline, RequiredAuthority};
use svc_client::{Client, Denial, Error, ErrorKind, PartStream};
use svc_model::evidence::{CallSummary, Inventory, Manifest, Reference, Side};
use svc_model::id::{InferenceCallId, SessionId};
use svc_view::model as shown_model;

use super::context::session_id;
use super::evidence::manifest::{erased, left_out};
use super::service;
use super::session::{similar, unknown};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape, item_block, positional, reference};

/// The number of characters in a whole call id.
const CALL_CHARACTERS: usize = 36;

#[derive(Debug, Args)]
pub(crate) struct Transcript {
    /// The Session.
    session: String,

    /// The call, or a prefix of its id; by default every call of the Session.
    call: Option<String>,

    /// Print every message of every call, even if an earlier call already contained it.
    #[arg(long, conflicts_with = "call")]
    all: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Transcript {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let session_id = session_id(&self.session)?;
        let client = service::client(&self.service)?;
        service::block_on(async {
            let mut source = TranscriptRoutes {
                client: &client,
                session_id: &session_id,
                is_granted: false,
            };
            let calls = match &self.call {
                Some(call) if call.len() == CALL_CHARACTERS => vec![call_id(call)?],
                other => {
                    let inventory = source.inventory().await?;
                    if inventory.calls.is_empty() && other.is_none() {
                        if output.is_for_people() {
                            output.text(&nothing(&inventory))?;
                        }
                        if !inventory.found {
                            let meant = similar(&client, &session_id, "svc transcript").await;
                            output.next(&self.service, &meant);
                        }
                        return Ok(());
                    }
                    named(&inventory, other.as_deref())?
                }
            };
            let mut printer = Printer {
                output,
                seen: (!self.all && self.call.is_none()).then(PrintedPrefixes::default),
                is_first: true,
            };
            let (mut left, mut parts_left) = (0, 0);
            for call in &calls {
                match printer.call(&mut source, call).await {
                    // A call that is too large does not hide the others.
                    Err(CallFailure::Asked(error)) if calls.len() > 1 && is_of_call(&error) => {
                        printer.refused(&format!("call {call}"), &error);
                        left += 1;
                    }
                    Err(CallFailure::Asked(error)) => return Err(error.into()),
                    Err(CallFailure::Printed(error)) => return Err(error),
                    Ok(parts) => parts_left += parts,
                }
            }
            let calls = (left > 0).then(|| format!("{left} of {} calls", calls.len()));
            let parts = (parts_left > 0).then(|| format!("{parts_left} parts"));
            let hidden: Vec<_> = calls.into_iter().chain(parts).collect();
            if hidden.is_empty() {
                return Ok(());
            }
            let message = format!("{} cannot be shown", hidden.join(" and "));
            Err(CommandError::refused("incomplete", message))
        })
    }
}

/// The routes that a transcript is read through: the operator's, or those within the token's grant.
struct TranscriptRoutes<'a> {
    client: &'a Client,
    session_id: &'a SessionId,
    is_granted: bool,
}

const NO_OPERATOR: ErrorKind = ErrorKind::Forbidden(Denial::Authority(RequiredAuthority::Operator));

impl TranscriptRoutes<'_> {
    async fn inventory(&mut self) -> Result<Inventory, Error> {
        if !self.is_granted {
            match self.client.evidence().inventory(self.session_id).await {
                Err(error) if *error.kind() == NO_OPERATOR => self.is_granted = true,
                outcome => return outcome,
            }
        }
        self.client.context().inventory(self.session_id).await
    }

    async fn manifest(&mut self, call: &InferenceCallId) -> Result<Manifest, Error> {
        if !self.is_granted {
            match self.client.evidence().manifest(self.session_id, call).await {
                Err(error) if *error.kind() == NO_OPERATOR => self.is_granted = true,
                outcome => return outcome,
            }
        }
        self.client.context().manifest(self.session_id, call).await
    }

    fn parts(&self, references: Vec<Reference>) -> PartStream {
        if self.is_granted {
            self.client.context().parts(self.session_id, references)
        } else {
            self.client.evidence().parts(self.session_id, references)
        }
    }
}

/// Why a call was not printed.
enum CallFailure {
    Asked(Error),
    Printed(CommandError),
}

impl From<Error> for CallFailure {
    fn from(error: Error) -> Self {
        Self::Asked(error)
    }
}

impl From<CommandError> for CallFailure {
    fn from(error: CommandError) -> Self {
        Self::Printed(error)
    }
}

/// Returns whether an error concerns one call only.
fn is_of_call(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Declined(_) | ErrorKind::Oversize)
}

/// Returns whether an error concerns one part only, if no other part was requested.
fn is_of_part(error: &Error) -> bool {
    use ErrorKind::{Declined, Oversize, ReplyTooLarge};
    matches!(
        error.kind(),
        Oversize
            | ReplyTooLarge { .. }
            | Declined(Decline::EvidenceResponseLimit { .. } | Decline::NonFiniteNumber)
    )
}

fn call_id(text: &str) -> Result<InferenceCallId, CommandError> {
    InferenceCallId::new(text).map_err(|rule| CommandError::argument("the call", rule))
}

/// Says that there are no calls, which is not a failure.
fn nothing(inventory: &Inventory) -> String {
    if !inventory.found {
        return unknown(&inventory.session_id);
    }
    let session = escape(inventory.session_id.as_str());
    format!("no call of Session {session} is visible\n")
}

/// Returns the calls whose ids have this prefix, or all calls without a prefix.
fn named(inventory: &Inventory, begin: Option<&str>) -> Result<Vec<InferenceCallId>, CommandError> {
    let session = escape(inventory.session_id.as_str());
    let ids = inventory.calls.iter();
    let ids = ids.map(|call| call.inference_call_id.to_string());
    let found: Vec<String> = ids
        .filter(|id| begin.is_none_or(|begin| id.starts_with(begin)))
        .collect();
    match (begin, found.len()) {
        (Some(begin), 0) => Err(CommandError::refused(
            "absent",
            format!(
                "no visible call of Session {session} has an id that begins with {}",
                escape(begin)
            ),
        )
        .hint(format!(
            "svc evidence inventory {}",
            positional(inventory.session_id.as_str())
        ))),
        (Some(begin), 2..) => Err(CommandError::refused(
            "ambiguous",
            format!(
                "{} calls have ids that begin with {}",
                found.len(),
                escape(begin)
            ),
        )),
        _ => found.iter().map(|id| call_id(id)).collect(),
    }
}

/// The conversation prefixes that have been printed, each as a hash of its messages. A message is
/// printed again if it follows different messages than before.
#[derive(Debug, Default)]
struct PrintedPrefixes(HashSet<u64>);

impl PrintedPrefixes {
    /// Returns how many of a call's first messages have already been printed.
    fn printed(&mut self, manifest: &Manifest) -> usize {
        let mut begin = 0_u64;
        let mut printed = None;
        for (place, message) in manifest.messages.iter().enumerate() {
            let Some(digest) = &message.digest else {
                return 0;
            };
            let mut hasher = DefaultHasher::new();
            (begin, digest).hash(&mut hasher);
            begin = hasher.finish();
            // A model's answer is always new, even if its text repeats.
            let is_new = self.0.insert(begin) || message.side == Side::Output;
            if is_new && printed.is_none() {
                printed = Some(place);
            }
        }
        printed.unwrap_or(manifest.messages.len())
    }
}

struct Printer<'o> {
    output: &'o mut Output,
    /// What has been printed, unless everything is to be printed.
    seen: Option<PrintedPrefixes>,
    is_first: bool,
}

impl Printer<'_> {
    /// Prints a call, and returns how many of its parts cannot be shown.
    async fn call(
        &mut self,
        source: &mut TranscriptRoutes<'_>,
        call: &InferenceCallId,
    ) -> Result<usize, CallFailure> {
        let manifest = source.manifest(call).await?;
        let printed = self.seen.as_mut().map_or(0, |seen| seen.printed(&manifest));
        let new = &manifest.messages[printed..];
        let references = new.iter().flat_map(|message| &message.parts);
        let references: Vec<Reference> = references.map(|part| part.reference.clone()).collect();
        self.text(&heading(&manifest, printed))?;
        let mut rest = &references[..];
        let mut left = 0;
        while !rest.is_empty() {
            let mut parts = source.parts(rest.to_vec());
            while let Some((next, after)) = rest.split_first() {
                match parts.next().await {
                    Some(Ok(part)) if self.output.is_for_people() => {
                        self.text(&format!("\n{}", item_block(&part)))?;
                    }
                    Some(Ok(part)) => self.output.value(&part, |_| String::new())?,
                    // The rest is read by another stream.
                    Some(Err(error)) if is_of_part(&error) => {
                        self.refused(&format!("part {}", reference(next)), &error);
                        left += 1;
                        rest = after;
                        break;
                    }
                    Some(Err(error)) => return Err(error.into()),
                    None => return Ok(left),
                }
                rest = after;
            }
        }
        Ok(left)
    }

    /// Warns that a call or a part is left out.
    fn refused(&mut self, what: &str, error: &Error) {
        self.output.caveat(&format!("{what} is not shown: {error}"));
    }

    fn text(&mut self, text: &str) -> Result<(), CommandError> {
        if !self.output.is_for_people() {
            return Ok(());
        }
        let text = if std::mem::take(&mut self.is_first) {
            text.trim_start_matches('\n')
        } else {
            text
        };
        self.output.text(text)
    }
}

/// Returns the heading above the parts of a call.
fn heading(manifest: &Manifest, printed: usize) -> String {
    let CallSummary {
        inference_call_id,
        observed_at,
        model_provider,
        model,
        ..
    } = &manifest.call;
    let model = escape(&shown_model(model_provider.as_deref(), model.as_deref()));
    let mut text = format!("\ncall {inference_call_id}  {observed_at}  {model}\n");
    text.extend(left_out(manifest));
    text.extend(erased(manifest));
    if printed > 0 {
        text.extend([&printed.to_string(), " messages as above\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    fn manifest(messages: &[(&str, &str)]) -> Manifest {
        let messages: Vec<String> = messages
            .iter()
            .map(|(side, digest)| {
                format!(
                    r#"{{"side":"{side}","message_index":0,"role":"r","finish_reason":null,"parts":[],"digest":"{digest}"}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"schema_version":1,"session_id":"s","quarantine_revision":0,"call":{{
            "inference_call_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","observed_at":"2026-01-15T09:30:00Z",
            "model_provider":null,"model":"m\u001b"}},"messages":[{}],"left_out":{{"unsupported_content":2}}}}"#,
            messages.join(",")
        );
        json::from_slice(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_repeated_history_is_printed_once() {
        let mut seen = PrintedPrefixes::default();
        let mut printed = |messages: &[(&str, &str)]| seen.printed(&manifest(messages));
        let (input, output) = ("input", "output");
        assert_eq!(printed(&[(input, "a"), (output, "b")]), 0);
        assert_eq!(
            printed(&[(input, "a"), (input, "b"), (input, "c"), (output, "d")]),
            2
        );
        // Another conversation of the Session begins with the same messages.
        assert_eq!(printed(&[(input, "a"), (input, "x"), (output, "y")]), 1);
        // The same words in another place are printed again, and so is the same answer.
        assert_eq!(printed(&[(input, "b"), (output, "b")]), 0);
        assert_eq!(printed(&[(input, "a"), (output, "b")]), 1);
    }

    #[test]
    fn the_heading_of_a_call_counts_what_the_capture_left_out() {
        assert_eq!(
            heading(&manifest(&[]), 3),
            "\ncall f8d5f475-40a1-5ebb-9796-b05b24001822  2026-01-15T09:30:00Z  -/m\\u{1b}\n\
             left out by the capture: 2 of a kind that is not kept (images, files, searches)\n\
             3 messages as above\n"
        );
    }

    #[test]
    fn a_call_is_selected_by_a_prefix_of_its_id() {
        let call = |id: &str| {
            format!(
                r#"{{"inference_call_id":"{id}","observed_at":"2026-01-15T09:30:00Z","model_provider":null,"model":null}}"#
            )
        };
        let inventory = |calls: &[String]| -> Inventory {
            let text = format!(
                r#"{{"schema_version":1,"session_id":"s","quarantine_revision":0,"found":true,
                "visible_inference_calls":2,"quarantined_inference_calls":0,"calls":[{}],
                "capture_completeness":"unknown"}}"#,
                calls.join(",")
            );
            json::from_slice(text.as_bytes()).unwrap()
        };
        let both = [
            call("f8d5f475-40a1-5ebb-9796-b05b24001822"),
            call("f8d5f476-40a1-5ebb-9796-b05b24001822"),
        ];
        let found = |begin| named(&inventory(&both), begin).map(|found| found.len());
        assert_eq!(found(Some("f8d5f475")).unwrap(), 1);
        assert_eq!(found(None).unwrap(), 2);
        assert_eq!(found(Some("f8d5")).unwrap_err().code(), "ambiguous");
        assert_eq!(found(Some("a")).unwrap_err().code(), "absent");
        assert_eq!(named(&inventory(&[]), None).unwrap().len(), 0);
    }
}
