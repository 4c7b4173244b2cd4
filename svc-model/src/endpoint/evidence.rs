use super::{Access, Explanation, Tally};
use crate::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use crate::limit;
use crate::problem::{Decline, Problem};

/// What declines a whole read of evidence.
pub(super) const DECLINED: Explanation = Explanation {
    description: "The whole read is declined with a reason: an unavailable fact, a bound that would be \
                  exceeded, or a number that is not finite. There is no partial answer.",
    problems: &[(
        "declined",
        Problem::Declined(Decline::EvidenceResponseLimit {
            limit: limit::EVIDENCE_REPLY_BYTES_MAX as u64,
        }),
    )],
};

/// Compares the parts that were requested with those that were returned.
pub(super) fn tally(request: &EvidenceReadRequest, reply: &EvidenceRead) -> Tally {
    Tally {
        requested: request.references.len(),
        returned: reply.items.len(),
    }
}

endpoint! {
    EvidenceInventory: GET "/query/evidence" as "evidenceInventory" for Access::Operator,
    InventoryRequest => Inventory,
    "List the visible calls of a Session." {
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    EvidenceManifest: GET "/query/evidence/manifest" as "evidenceManifest" for Access::Operator,
    ManifestRequest => Manifest,
    "List the messages and parts of a call, without their content." {
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    EvidenceReading: POST "/query/evidence/read" as "evidenceRead" for Access::Operator,
    EvidenceReadRequest => EvidenceRead,
    "Read exact parts, complete and in the order of the request." {
        const BODY_BYTES_MAX: usize = limit::EVIDENCE_READ_BODY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(DECLINED);

        fn tally(request: &EvidenceReadRequest, reply: &EvidenceRead) -> Option<Tally> {
            Some(tally(request, reply))
        }
    }
}
