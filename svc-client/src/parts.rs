use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use svc_model::endpoint::Endpoint;
use svc_model::evidence::{EvidenceRead, EvidenceReadItem, EvidenceReadRequest, Reference};
use svc_model::id::SessionId;
use svc_model::limit::EVIDENCE_REFERENCES_MAX;
use svc_model::problem::Decline;

use crate::evidence::read;
use crate::{Client, Error, ErrorKind};

/// A stream of exact parts, in the requested order; see
/// [`Evidence::parts`](crate::Evidence::parts). It ends after the first error, which is that of
/// the part that would come next.
pub struct PartStream(Pin<Box<dyn Stream<Item = Result<EvidenceReadItem, Error>> + Send>>);

/// The parts that are still to be read, and how.
struct PartsRest {
    client: Client,
    session_id: SessionId,
    rest: VecDeque<Reference>,
    /// The maximum number of parts for the next request.
    at_once: usize,
}

impl PartsRest {
    /// Returns the next part, or the error that ends the stream; nothing after that.
    fn next(&self) -> Vec<Reference> {
        let mut seen = BTreeSet::new();
        let call = self.rest.front().map(|first| &first.inference_call_id);
        let next = self.rest.iter().take(self.at_once);
        next.take_while(|reference| {
            Some(&reference.inference_call_id) == call && seen.insert(*reference)
        })
        .cloned()
        .collect()
    }
}

/// Returns whether a request for fewer parts may succeed.
fn fewer_may_succeed(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Oversize
            | ErrorKind::ReplyTooLarge { .. }
            | ErrorKind::Declined(
                Decline::EvidenceResponseLimit { .. }
                    | Decline::EvidenceSourceLimit { .. }
                    | Decline::NonFiniteNumber
            )
    )
}

impl PartStream {
    /// Reads parts through a route. If a reply would be too large, or one of its parts cannot be
    /// written, half as many parts are requested.
    pub(crate) fn by<E>(
        client: &Client,
        session_id: &SessionId,
        references: impl IntoIterator<Item = Reference>,
    ) -> Self
    where
        E: Endpoint<Request = EvidenceReadRequest, Reply = EvidenceRead>,
    {
        let reading = PartsRest {
            client: client.clone(),
            session_id: session_id.clone(),
            rest: references.into_iter().collect(),
            at_once: EVIDENCE_REFERENCES_MAX,
        };
        let pages = stream::try_unfold(reading, |mut reading| async move {
            loop {
                let next = reading.next();
                let count = next.len();
                if count == 0 {
                    return Ok(None);
                }
                match read::<E>(&reading.client, &reading.session_id, next).await {
                    Ok(found) => {
                        reading.rest.drain(..count);
                        reading.at_once = (reading.at_once * 2).min(EVIDENCE_REFERENCES_MAX);
                        let items = stream::iter(found.items.into_iter().map(Ok));
                        return Ok::<_, Error>(Some((items, reading)));
                    }
                    Err(error) if count > 1 && fewer_may_succeed(&error) => {
                        reading.at_once = count.div_ceil(2);
                    }
                    Err(error) => return Err(error),
                }
            }
        });
        Self(Box::pin(pages.try_flatten()))
    }

    /// Returns the next part or the error; nothing at the end.
    pub async fn next(&mut self) -> Option<Result<EvidenceReadItem, Error>> {
        self.0.next().await
    }

    /// Returns all remaining parts.
    ///
    /// # Errors
    ///
    /// The error of the first request that fails. The parts that were read before it are lost.
    pub async fn collect_all(self) -> Result<Vec<EvidenceReadItem>, Error> {
        self.0.try_collect().await
    }
}

impl Stream for PartStream {
    type Item = Result<EvidenceReadItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for PartStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartStream")
    }
}
