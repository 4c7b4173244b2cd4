//! What to do about a declined read.

use super::{Advice, FEWER_REFERENCES, FULL_IDENTITY, to_client};
use crate::problem::Decline;

/// Returns what to do about a declined read.
pub(super) const fn advice(decline: &Decline) -> Advice {
    match decline {
        Decline::EvidenceUnavailable { .. } => {
            to_client("To see what is visible: `svc evidence inventory SESSION`.")
                .in_console(
                    "It is absent or hidden; which one is not disclosed. The quarantine log lists \
                     what was hidden: `svc quarantine-log`.",
                )
                .to_agent(
                    "It is absent or hidden; which one is not disclosed. Call open_evidence with \
                     only the session_id to see what is available.",
                )
                .shared_with_shell()
        }
        Decline::EvidencePartAbsent { .. } => {
            to_client("To see the parts of the call: `svc evidence manifest SESSION CALL`.")
                .in_console("Go back to the call: it lists its parts.")
                .to_agent(
                    "Call open_evidence with session_id and inference_call_id: it lists the parts \
                     of that call.",
                )
                .shared_with_shell()
        }
        Decline::ContentErased { .. } => {
            to_client("Nothing brings it back; ask an operator why: `svc erase log`.")
                .in_console(
                    "What it said was erased, and nothing brings it back. The log says who did it \
                     and why: `svc erase log`.",
                )
                .to_agent(
                    "What was said in that call was erased for good. Go on without it; other calls \
                     of the Session may say the same: search_evidence with its session_id.",
                )
                .in_shell("To see when and why, on the machine of the store: `svc erase log`.")
        }
        Decline::EvidenceInventoryLimit { .. } => too_large(
            "Select a Session with fewer calls. For a search, an operator can raise \
             `SVC_CONTEXT_MAX_CALLS`.",
        )
        .to_agent(
            "There are more calls than one answer covers. Find those that you need with \
             search_evidence and the session_id, and open each with open_evidence and its \
             inference_call_id.",
        )
        .in_shell(
            "To find its calls: `svc context retrieve WORDS --session SESSION`, whose bound an \
             operator can raise (`SVC_CONTEXT_MAX_CALLS`); on the machine of the store, every call: \
             `svc export --kind inference_calls --content`.",
        ),
        Decline::EvidenceSourceLimit { .. } => too_large(
            "Ask for fewer references in one request. For a search, an operator can raise \
             `SVC_CONTEXT_MAX_SOURCE_BYTES`.",
        )
        .to_agent(
            "If you opened references, open fewer at once, of one call. If you searched, this \
             Session is too long for this search: use search_evidence, or ask the operator to raise \
             SVC_CONTEXT_MAX_SOURCE_BYTES.",
        ),
        Decline::EvidenceResponseLimit { .. } => {
            too_large("Ask for fewer references in one request.").to_agent(FEWER_REFERENCES)
        }
        Decline::RetrievalPartLimit { .. } => too_large(
            "Select a shorter Session, or ask the operator to raise `SVC_CONTEXT_MAX_PARTS`.",
        )
        .to_agent(
            "This is too long for this search: use search_evidence, or ask the operator to raise \
             SVC_CONTEXT_MAX_PARTS.",
        )
        .shared_with_shell(),
        Decline::RetrievalStateLimit { .. } => too_large(
            "Use rarer keywords, or ask the operator to raise `SVC_CONTEXT_MAX_STATE_BYTES`.",
        )
        .to_agent(
            "Too many parts match. Use rarer keywords, or ask the operator to raise \
             SVC_CONTEXT_MAX_STATE_BYTES.",
        )
        .shared_with_shell(),
        Decline::RepositorySelectorAmbiguous => {
            to_client("Name the repository by provider, host and id.")
                .in_console(OTHER_IDENTITY)
                .to_agent(FULL_IDENTITY)
                .in_shell(
                    "Use the repository's number at the forge: `--repo PROVIDER/HOST/ID`, such as \
                     `github/github.com/42`.",
                )
        }
        Decline::RepositoryEvidenceLimit => {
            to_client("Name the repository by provider, host and id, or ask for less.")
                .in_console(OTHER_IDENTITY)
        }
        Decline::NonFiniteNumber => {
            to_client("Leave out this part: it contains a number that JSON cannot express.")
                .in_console(
                    "It contains a number that JSON cannot express, so it cannot be shown here.",
                )
        }
    }
}

const OTHER_IDENTITY: &str = "Several repositories have had this name. Select one by its identity in \
                              the shell: `--repo PROVIDER/HOST/ID`.";

/// Returns the advice for a read of evidence that would be too large.
const fn too_large(client: &'static str) -> Advice {
    to_client(client)
        .in_console(
            "The answer would be too large, and partial answers are never shown. Open a single \
             call from the timeline, or read it in the shell: `svc evidence`.",
        )
        .to_agent(
            "There is too much to search at once. Call search_evidence, or open a call that you \
             know.",
        )
}
