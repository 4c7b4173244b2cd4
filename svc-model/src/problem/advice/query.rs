//! What to do about a query that cannot be answered.

use super::{Advice, FULL_IDENTITY, to_all, to_client};
use crate::problem::QueryFault;

/// Returns what to do about a query that cannot be answered.
pub(super) const fn advice(fault: QueryFault) -> Advice {
    match fault {
        QueryFault::MalformedSha => to_all("Give the full commit id: `git rev-parse COMMIT`."),
        QueryFault::ReversedBounds => {
            to_client("Set `captured_after` to a time before `captured_before`.")
                .in_console(EARLIER_START)
        }
        QueryFault::IncompleteIdentity => repository("Give provider, host and id together."),
        QueryFault::MissingSelector => repository("Name a repository."),
        QueryFault::SelectorConflict => {
            repository("Omit the name or the identity: the repository never had that name.")
        }
        QueryFault::InvalidCursor | QueryFault::InvalidSessionCursor => {
            to_client("Pass `next_cursor` on unchanged.").in_console(FIRST_PAGE)
        }
        QueryFault::CursorMismatch | QueryFault::SessionCursorMismatch => to_client(
            "Start again without a cursor: the query has changed, or facts were quarantined or \
             released since.",
        )
        .in_console(FIRST_PAGE)
        .to_agent("Ask for the first page again, without cursor.")
        .in_shell("Start again without `--cursor`."),
        QueryFault::CohortTooLong => cohort("Use at most 31 days.", "Choose at most 31 days."),
        QueryFault::CohortReversed => cohort(
            "Set `cohort_start` to a time before `cohort_end`.",
            EARLIER_START,
        ),
        QueryFault::CohortAfterBoundary => cohort(
            "Set `cohort_end` to `as_of` or earlier.",
            "Choose an end that is not in the future.",
        ),
        QueryFault::TargetAbsent => {
            to_client("Check the table and the id.").in_console("Go back to the overview.")
        }
        QueryFault::TargetAmbiguous => to_client(LONGER_ID)
            .in_console("Go back to the overview.")
            .shared_with_shell(),
        QueryFault::GrantAbsent => grant(GRANT_IDS).shared_with_shell(),
        QueryFault::GrantAmbiguous => grant(LONGER_ID).in_shell(GRANT_IDS),
        QueryFault::GrantsFull => {
            grant("Remove a grant that is no longer needed: `svc grant remove ID`.")
                .in_shell("To find one to remove: `svc grant list`.")
        }
        QueryFault::RepositoryAbsent => {
            grant("Check the name: a rule needs a repository that a push or a note has named.")
                .in_shell(
                    "For a repository without facts yet, use its number at the forge: `--repo \
             PROVIDER/HOST/ID`, such as `github/github.com/42`.",
                )
        }
        QueryFault::TokenNotRevoked => grant(
            "Nothing to do, unless the server refuses the token: then a restored backup has lost the \
             revocation that it has seen. Revoke the token and restore it.",
        ),
        QueryFault::UnknownPriceFormat => prices(
            "Send LiteLLM's list of models, an object from a model's key to its rates, or the \
             document of models.dev, an object from a provider to its models.",
        ),
        QueryFault::NoModels => prices(
            "Send a file in which a model of text has a price of its input and of its output.",
        ),
        QueryFault::PriceTablesFull => {
            prices("Nothing can be done: a table that reports were made with is never removed.")
        }
    }
}

const EARLIER_START: &str = "Choose a start before the end.";
const FIRST_PAGE: &str =
    "The previous page belongs to another query. Start again from the first page.";
const LONGER_ID: &str = "Give more characters of the id.";
const GRANT_IDS: &str = "To see the ids of grants: `svc grant list --history`.";

/// Returns the advice for a repository that the query names wrongly.
const fn repository(client: &'static str) -> Advice {
    to_client(client)
        .in_console("Name one repository: OWNER/NAME.")
        .to_agent(FULL_IDENTITY)
}

/// Returns the advice for an impossible cohort of a report.
const fn cohort(client: &'static str, console: &'static str) -> Advice {
    to_client(client).in_console(console).to_agent(
        "Give cohort_start before cohort_end, at most 31 days apart, and as_of not before \
         cohort_end.",
    )
}

/// Returns the advice for a file of prices, which is loaded in the shell only.
const fn prices(client: &'static str) -> Advice {
    to_client(client).shared_with_shell()
}

/// Returns the advice for a change of grants, which only the shell makes.
const fn grant(client: &'static str) -> Advice {
    to_client(client).in_console("Grants are changed in the shell: `svc grant`.")
}
