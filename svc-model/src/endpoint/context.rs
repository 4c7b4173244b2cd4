use super::evidence::{DECLINED, tally};
use super::{Access, Explanation, Grant, Tally};
use crate::context::{
    ContextDiscoveryRequest, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    DiscoveryResult,
};
use crate::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use crate::limit;

endpoint! {
    ContextRetrieval: POST "/query/context" as "context" for Access::Context(Grant::Single),
    ContextRetrievalRequest => ContextResult,
    "Find the parts of the one configured Session that match a query." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    Discovery: POST "/query/context/discover" as "contextDiscover" for Access::Context(Grant::Configured),
    ContextDiscoveryRequest => DiscoveryResult,
    "Find the Sessions of the grant that match a query or made a commit." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    Selected: POST "/query/context/selected" as "contextSelected" for Access::Context(Grant::Configured),
    ContextSelectedRequest => ContextResult,
    "Find the parts of one Session of the grant that match a query." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    GrantInventory: GET "/query/context/evidence" as "contextInventory" for Access::Context(Grant::Configured),
    InventoryRequest => Inventory,
    "List the visible calls of a Session of the grant." {
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    GrantManifest: GET "/query/context/evidence/manifest" as "contextManifest" for Access::Context(Grant::Configured),
    ManifestRequest => Manifest,
    "List the messages and parts of a call of the grant." {
        const CONFLICT: Option<Explanation> = Some(DECLINED);
    }
}

endpoint! {
    GrantRead: POST "/query/context/evidence/read" as "contextRead" for Access::Context(Grant::Configured),
    EvidenceReadRequest => EvidenceRead,
    "Read exact parts of a Session of the grant, reasoning included." {
        const BODY_BYTES_MAX: usize = limit::EVIDENCE_READ_BODY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(DECLINED);

        fn tally(request: &EvidenceReadRequest, reply: &EvidenceRead) -> Option<Tally> {
            Some(tally(request, reply))
        }
    }
}
