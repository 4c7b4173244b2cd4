use svc_client::model::problem::RequiredAuthority;
use svc_client::{Client, Denial, Error, ErrorKind, RawReply};
use svc_model::endpoint::{Endpoint, EvidenceReading, GrantRead};
use svc_model::evidence::{EvidenceRead, EvidenceReadRequest};

/// Asks the operators' route, or, with any other token, the route that reads within the grant.
pub(crate) async fn ask<Everywhere, Granted>(
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

/// Reads parts.
pub(crate) async fn read(
    client: &Client,
    request: &EvidenceReadRequest,
) -> Result<RawReply<EvidenceRead>, Error> {
    ask::<EvidenceReading, GrantRead>(client, request).await
}
