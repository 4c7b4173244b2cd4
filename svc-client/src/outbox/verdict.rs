use crate::ErrorKind;

/// What a failure means for the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryVerdict {
    /// It may succeed later.
    Later,
    /// It will never succeed, but other deliveries may.
    Refused,
    /// No delivery will succeed until a person acts.
    Stop,
}

impl DeliveryVerdict {
    #[expect(clippy::match_same_arms, reason = "each case has a reason of its own")]
    pub(super) fn of(kind: &ErrorKind) -> Self {
        match kind {
            // The service did not answer, was not ready, or did not receive all of the delivery.
            ErrorKind::Connect
            | ErrorKind::TimedOut
            | ErrorKind::Transport
            | ErrorKind::BodyIncomplete
            | ErrorKind::Busy
            | ErrorKind::Deadline
            | ErrorKind::StoreUnavailable
            | ErrorKind::SearchUnavailable
            | ErrorKind::Unavailable { .. } => Self::Later,
            // A success without a receipt came from something else, such as a captive portal or a
            // proxy.
            ErrorKind::Unreadable
            | ErrorKind::Incomplete { .. }
            | ErrorKind::CursorRepeated
            | ErrorKind::ReplyTooLarge { .. } => Self::Later,
            // What the calls continue may still arrive.
            ErrorKind::EarlierCallsMissing => Self::Later,
            ErrorKind::Unwritable
            | ErrorKind::Malformed
            | ErrorKind::UnsupportedProvider
            | ErrorKind::Conflict(_)
            | ErrorKind::Declined(_)
            | ErrorKind::SessionBound(_)
            | ErrorKind::ReportEvidence
            | ErrorKind::Oversize
            | ErrorKind::TooLarge
            | ErrorKind::Invalid(_)
            | ErrorKind::Query(_) => Self::Refused,
            // The token, the URL or the service has to be changed.
            ErrorKind::Unaddressable
            | ErrorKind::Unauthorized
            | ErrorKind::Forbidden(_)
            | ErrorKind::NotFound
            | ErrorKind::RetrievalDisabled
            | ErrorKind::SearchDisabled
            | ErrorKind::Redirected { .. } => Self::Stop,
            ErrorKind::Unrecognised { status, .. } => match status {
                // 425 asks for a later retry, as 408 does.
                200..=299 | 408 | 425 | 500..=599 => Self::Later,
                409 => Self::Refused,
                _ => Self::Stop,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal;

    #[test]
    fn every_status_has_its_verdict() {
        for (verdict, statuses) in [
            (
                DeliveryVerdict::Later,
                &[201, 204, 408, 425, 429, 500, 501, 502, 503, 504, 507, 599][..],
            ),
            (DeliveryVerdict::Refused, &[400, 409, 413, 422]),
            (
                DeliveryVerdict::Stop,
                &[
                    301, 302, 303, 304, 307, 308, 401, 402, 403, 404, 405, 410, 418, 451,
                ],
            ),
        ] {
            for status in statuses {
                let kind = refusal::kind(*status, b"");
                assert_eq!(DeliveryVerdict::of(&kind), verdict, "{status}");
            }
        }
    }

    #[test]
    fn a_delivery_without_a_receipt_is_tried_again_later() {
        for kind in [
            ErrorKind::Connect,
            ErrorKind::TimedOut,
            ErrorKind::Transport,
            ErrorKind::BodyIncomplete,
            ErrorKind::Unreadable,
            ErrorKind::ReplyTooLarge { bytes_max: 1 },
        ] {
            assert_eq!(
                DeliveryVerdict::of(&kind),
                DeliveryVerdict::Later,
                "{kind:?}"
            );
        }
    }
}
