//! Inventories, manifests and exact reads.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};
use svc_engine_store::{CallRow, CallSide, Snapshot, StoreError};
use svc_model::endpoint::{
    EvidenceInventory, EvidenceManifest, EvidenceReading, GrantInventory, GrantManifest, GrantRead,
};
use svc_model::evidence::{
    CallSummary, CaptureCompleteness, EvidenceRead, EvidenceReadItem, EvidenceReadRequest,
    Inventory, InventoryRequest, Manifest, ManifestMessage, ManifestPart, ManifestRequest, Message,
    Part, Reference, Side,
};
use svc_model::facts::FactTable;
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::json::{self, Text};
use svc_model::limit::{EVIDENCE_CALLS_MAX, EVIDENCE_SOURCE_BYTES_MAX};
use svc_model::problem::Decline;
use svc_model::usage::CallUsage;
use svc_model::version::Version1;

use super::ContentCache;
use super::answer::{AdmissionKind, Answer, ReadContext};
use crate::error::Error;

fn check_source(bytes: u64) -> Result<(), Decline> {
    if bytes > EVIDENCE_SOURCE_BYTES_MAX {
        return Err(Decline::EvidenceSourceLimit {
            bytes,
            limit: EVIDENCE_SOURCE_BYTES_MAX,
        });
    }
    Ok(())
}

/// Returns the visible calls of a Session.
///
/// # Errors
///
/// Declined if there are too many calls or their metadata is too large.
pub fn inventory(
    snapshot: &mut Snapshot<'_>,
    request: InventoryRequest,
) -> Result<Inventory, Error> {
    let session_id = request.session_id;
    let quarantine_revision = snapshot.quarantine_revision()?;
    let found = snapshot.session_known(&session_id)?;
    let counts = snapshot.session_fact_count(&session_id, FactTable::InferenceCalls)?;
    if counts.visible > EVIDENCE_CALLS_MAX {
        return Err(Decline::EvidenceInventoryLimit {
            count: counts.visible,
            limit: EVIDENCE_CALLS_MAX,
        }
        .into());
    }
    check_source(snapshot.call_measure(&session_id)?.metadata_bytes)?;
    let mut calls = snapshot.call_summaries(&session_id)?;
    let erased = snapshot.erased_calls(&session_id)?;
    for call in &mut calls {
        call.content_erased_at = erased.get(&call.inference_call_id).copied();
    }
    Ok(Inventory {
        schema_version: Version1,
        quarantine_revision,
        found,
        visible_inference_calls: counts.visible,
        quarantined_inference_calls: counts.total - counts.visible,
        calls,
        capture_completeness: CaptureCompleteness::Unknown.into(),
        session_id,
    })
}

/// Returns the structure of a call.
///
/// # Errors
///
/// Declined if the call is not visible in this Session or is too large.
pub fn manifest(
    snapshot: &mut Snapshot<'_>,
    cache: &ContentCache,
    request: ManifestRequest,
) -> Result<Manifest, Error> {
    let quarantine_revision = snapshot.quarantine_revision()?;
    let mut call = snapshot
        .call(&request.session_id, &request.inference_call_id)?
        .ok_or(Decline::EvidenceUnavailable {
            reference_index: None,
        })?;
    let erased = snapshot.erased_calls(&request.session_id)?;
    let summary = &mut call.summary;
    summary.content_erased_at = erased.get(&summary.inference_call_id).copied();
    let text_bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len) as u64;
    check_source(
        request.inference_call_id.as_str().len() as u64
            + text_bytes(&summary.model_provider)
            + text_bytes(&summary.model)
            + call.input.byte_count
            + call.output.byte_count,
    )?;
    let ids = call
        .input
        .contents
        .iter()
        .chain(&call.output.contents)
        .copied();
    let contents = cache.load(snapshot, ids)?;
    let mut messages = Vec::with_capacity(call.input.contents.len() + call.output.contents.len());
    for (side, columns) in [(Side::Input, &call.input), (Side::Output, &call.output)] {
        for (message_index, id) in (0_u64..).zip(&columns.contents) {
            let message = &contents[id].message;
            let parts = (0_u64..)
                .zip(&message.parts)
                .map(|(part_index, part)| ManifestPart {
                    part_type: part.part_type().into(),
                    reference: Reference {
                        inference_call_id: request.inference_call_id.clone(),
                        side: side.into(),
                        message_index,
                        part_index,
                    },
                    sent_arguments: sent_arguments(part, request.explain),
                })
                .collect();
            messages.push(ManifestMessage {
                side: side.into(),
                message_index,
                role: message.role.clone(),
                finish_reason: message.finish_reason.clone(),
                parts,
                digest: request.explain.then(|| digest(message)).transpose()?,
            });
        }
    }
    Ok(Manifest {
        schema_version: Version1,
        session_id: request.session_id,
        quarantine_revision,
        call: shown(call.summary, request.explain),
        messages,
        left_out: request.explain.then_some(call.left_out),
        input_unpaired: call.input_unpaired.filter(|_| request.explain),
    })
}

/// Returns the metadata of a call for its manifest. The provider's ids stand in one that explains,
/// unless a gateway said nothing more of the call than its tokens.
fn shown(mut call: CallSummary, explain: bool) -> CallSummary {
    let is_plain = call.capture_source.is_none() && call.usage == CallUsage::default();
    if !explain || is_plain {
        call.response_id = None;
        call.request_id = None;
    }
    call
}

fn sent_arguments(part: &Part, explain: bool) -> Option<Text> {
    part.sent_arguments().filter(|_| explain).cloned()
}

/// Length of a digest, in hexadecimal digits.
const DIGEST_CHARACTERS: usize = 32;

/// Returns a digest that only equal messages share, whatever numbers they contain. It excludes the
/// finish reason, which a client omits when it sends an answer again.
fn digest(message: &Message) -> Result<String, StoreError> {
    let value = json::to_value(&(&message.role, &message.parts));
    let canonical = value.map_err(|_| CORRUPT)?.to_canonical();
    let mut digits = String::with_capacity(2 * DIGEST_CHARACTERS);
    for byte in Sha256::digest(&canonical) {
        use std::fmt::Write as _;
        write!(digits, "{byte:02x}").expect("writing to a string cannot fail");
    }
    digits.truncate(DIGEST_CHARACTERS);
    Ok(digits)
}

const CORRUPT: StoreError = StoreError::Corrupt {
    table: "content",
    what: "a message that is not JSON",
};

/// Returns exact parts, all or none.
///
/// # Errors
///
/// Declined if their columns are too large, or if a part is absent, erased, or contains a number
/// that is not finite.
pub fn read(
    snapshot: &mut Snapshot<'_>,
    cache: &ContentCache,
    request: EvidenceReadRequest,
) -> Result<EvidenceRead, Error> {
    let quarantine_revision = snapshot.quarantine_revision()?;
    let mut calls: HashMap<&InferenceCallId, Option<CallRow>> = HashMap::new();
    for reference in &request.references {
        let id = &reference.inference_call_id;
        if !calls.contains_key(id) {
            calls.insert(id, snapshot.call(&request.session_id, id)?);
        }
    }
    check_source(source_bytes(&request.references, &calls))?;
    let located = request
        .references
        .iter()
        .enumerate()
        .map(|(index, reference)| {
            let call = calls[&reference.inference_call_id].as_ref().ok_or(
                Decline::EvidenceUnavailable {
                    reference_index: Some(index as u64),
                },
            )?;
            let content = usize::try_from(reference.message_index)
                .ok()
                .zip(reference.side.known())
                .and_then(|(message, each)| side(call, *each).contents.get(message));
            Ok((call, content.copied()))
        })
        .collect::<Vec<Result<_, Decline>>>();
    let ids = located.iter().filter_map(|place| place.as_ref().ok()?.1);
    let contents = cache.load(snapshot, ids)?;
    let erased = snapshot.erased_calls(&request.session_id)?;
    let mut items = Vec::with_capacity(request.references.len());
    for (index, (reference, place)) in request.references.iter().zip(located).enumerate() {
        let (call, content) = place?;
        let found = content.and_then(|id| {
            let message = &contents[&id].message;
            let part = message
                .parts
                .get(usize::try_from(reference.part_index).ok()?)?;
            Some((message, part))
        });
        let reference_index = index as u64;
        let (message, part) =
            found.ok_or(if erased.contains_key(&call.summary.inference_call_id) {
                Decline::ContentErased { reference_index }
            } else {
                Decline::EvidencePartAbsent { reference_index }
            })?;
        items.push(EvidenceReadItem {
            reference: reference.clone(),
            observed_at: call.summary.observed_at,
            role: message.role.clone(),
            finish_reason: message.finish_reason.clone(),
            part: part.clone().into(),
            sent_arguments: sent_arguments(part, request.explain),
        });
    }
    if items
        .iter()
        .any(|item| !item.part.is_known_and(Part::is_finite))
    {
        return Err(Decline::NonFiniteNumber.into());
    }
    Ok(EvidenceRead {
        schema_version: Version1,
        session_id: request.session_id,
        quarantine_revision,
        items,
    })
}

const fn side(call: &CallRow, side: Side) -> &CallSide {
    match side {
        Side::Input => &call.input,
        Side::Output => &call.output,
    }
}

/// Returns the canonical bytes of the referenced columns: the id of each visible call, and each
/// referenced side once.
fn source_bytes(
    references: &[Reference],
    calls: &HashMap<&InferenceCallId, Option<CallRow>>,
) -> u64 {
    let mut bytes = 0;
    for (id, call) in calls {
        let Some(call) = call else { continue };
        bytes += id.as_str().len() as u64;
        for each in [Side::Input, Side::Output] {
            let named = |reference: &Reference| {
                reference.side == each && reference.inference_call_id == **id
            };
            if references.iter().any(named) {
                bytes += side(call, each).byte_count;
            }
        }
    }
    bytes
}

/// Answers a route of operators and its twin of retrieval tokens by the same read.
macro_rules! answers {
    ($($endpoint:ident)+ => |$reading:ident, $request:ident| $answer:expr) => {
        $(impl Answer for $endpoint {
            const ADMISSION: AdmissionKind = AdmissionKind::Slot;

            fn session(request: &Self::Request) -> Option<&SessionId> {
                Some(&request.session_id)
            }

            fn answer(
                $reading: &mut ReadContext<'_, '_>,
                $request: Self::Request,
            ) -> Result<Self::Reply, Error> {
                $answer
            }
        })+
    };
}

answers! { EvidenceInventory GrantInventory => |reading, request| inventory(reading.snapshot, request) }
answers! { EvidenceManifest GrantManifest => |reading, request| {
    let content = reading.content()?;
    manifest(reading.snapshot, &content, request)
} }
answers! { EvidenceReading GrantRead => |reading, request| {
    let content = reading.content()?;
    read(reading.snapshot, &content, request)
} }

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    fn result(json: &str, finish_reason: Option<&str>) -> Message {
        Message {
            role: "tool".into(),
            parts: vec![Part::ToolCallResponse {
                id: "c".to_owned(),
                result: Json::parse(json.as_bytes()).unwrap(),
            }],
            finish_reason: finish_reason.map(Into::into),
        }
    }

    #[test]
    fn digests_of_different_messages_differ_for_any_numbers() {
        let of = |json| digest(&result(json, None)).unwrap();
        let all = ["1", "2", "NaN", "[NaN,1]", "Infinity", "1e400"].map(of);
        for (index, digest) in all.iter().enumerate() {
            assert_eq!(digest.len(), DIGEST_CHARACTERS);
            assert!(!all[..index].contains(digest), "{index}");
        }
        let stopped = digest(&result("1", Some("stop"))).unwrap();
        assert_eq!(stopped, all[0], "the finish reason does not count");
    }
}
