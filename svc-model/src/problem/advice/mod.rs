//! What to do about a problem. The reference of errors, the console, the tools for agents and the
//! shell all take their advice from here.
//!
//! The advice differs by reader, because each of them can do something different: the author of a
//! client changes the request, a reader of the console goes to another page, and an agent can only
//! ask another question.

mod decline;
mod query;

use super::{Code, Problem, QueryFault, ReportBound, RequiredAuthority};

/// What to do about a problem: a sentence for each reader, with commands in backticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    client: &'static str,
    console: &'static str,
    agent: &'static str,
    shell: Option<&'static str>,
}

impl Advice {
    /// Nothing can be done; the reader has to continue without the answer.
    pub const NONE: Self = Self {
        client: "Nothing can be done.",
        console: "Go back and try again.",
        agent: "Do not repeat the same call; continue without it.",
        shell: None,
    };

    /// The same request may succeed later.
    pub const LATER: Self = to_client("Send the same request again later.")
        .to_agent("Wait a moment and ask again; if it persists, continue without it.")
        .in_shell("Try again later.");

    /// The token does not allow the request.
    pub const DENIED: Self = to_client("Use a token that allows the request.")
        .in_console("Sign in with the operator's token.")
        .to_agent(
            "The token does not allow this. Continue without it, and tell the person who set up \
             this server.",
        );

    const fn in_console(self, console: &'static str) -> Self {
        Self { console, ..self }
    }

    const fn to_agent(self, agent: &'static str) -> Self {
        Self { agent, ..self }
    }

    /// Replaces the advice to a user of the shell.
    #[must_use]
    pub const fn in_shell(self, shell: &'static str) -> Self {
        Self {
            shell: Some(shell),
            ..self
        }
    }

    /// Gives a user of the shell the same advice as the author of a client.
    const fn shared_with_shell(self) -> Self {
        self.in_shell(self.client)
    }

    /// Replaces the advice to the author of a client.
    const fn but_to_client(self, client: &'static str) -> Self {
        Self { client, ..self }
    }

    /// Returns the advice to the author of a client, in Markdown.
    pub const fn client(self) -> &'static str {
        self.client
    }

    /// Returns the advice to a reader of the console.
    pub fn console(self) -> String {
        plain(self.console)
    }

    /// Returns the advice to an agent.
    pub fn agent(self) -> String {
        plain(self.agent)
    }

    /// Returns the advice to a user of the shell, in the form that follows `hint:`; nothing if the
    /// error itself says enough.
    pub fn shell(self) -> Option<String> {
        let mut text = plain(self.shell?.trim_end_matches('.'));
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Some(text)
    }
}

/// Advises the author of a client. The other readers get the advice of [`Advice::NONE`].
const fn to_client(client: &'static str) -> Advice {
    Advice {
        client,
        ..Advice::NONE
    }
}

/// Gives every reader the same advice.
const fn to_all(sentence: &'static str) -> Advice {
    Advice {
        client: sentence,
        console: sentence,
        agent: sentence,
        shell: Some(sentence),
    }
}

fn plain(sentence: &str) -> String {
    sentence.replace('`', "")
}

impl Problem {
    /// Returns what to do about the problem. A problem without advice does not compile.
    pub const fn advice(&self) -> Advice {
        const OVERVIEW: &str = "Go back to the overview.";
        const CORRECT: &str = "Correct the input and try again.";
        match self {
            Self::NotFound => to_client(
                "Check the path and the URL of the service. The documentation is served only with \
                 `SVC_ENABLE_DOCS`.",
            )
            .in_console(OVERVIEW)
            .in_shell(
                "Check that this is the URL of the service, and that the service is new enough.",
            ),
            Self::MethodNotAllowed { .. } => {
                to_client("Use a method that `Allow` lists.").in_console(OVERVIEW)
            }
            Self::MalformedRequest => {
                to_client("Send valid HTTP/1.1, with one `Host` and one `Authorization`.")
                    .in_console(CORRECT)
            }
            Self::HeadTooLarge => to_client("Send a shorter URL or fewer headers."),
            Self::BodyTooLarge => to_client(
                "Send less in one request. `openapi.json` has the cap of each route as \
                 `x-body-bytes-max`.",
            ),
            Self::TooManyValues => to_client("Split the request. None of it was stored."),
            Self::BodyIncomplete | Self::BodyTimeout => {
                Advice::LATER.but_to_client("Send the request again. None of it was used.")
            }
            Self::Unauthorized => Advice::DENIED
                .but_to_client(
                    "Send a configured token as `Authorization: Bearer TOKEN`; `svc me` shows the \
                     client and authority of a token.",
                )
                .in_shell("The token comes from `SVC_TOKEN`; is it for this service?"),
            Self::InvalidSignature => to_client(
                "Set the forge's webhook secret to `SVC_FORGE_WEBHOOK_SECRET`, and send the body \
                 exactly as it was signed.",
            ),
            Self::Forbidden(authority) => Advice::DENIED
                .but_to_client(match authority {
                    RequiredAuthority::Ingest => "Use an ingest token, or the operator's.",
                    RequiredAuthority::Operator => "Use the operator's token.",
                    RequiredAuthority::Retrieval => "Use the retrieval token, or the operator's.",
                })
                .in_shell("To see what the token allows: `svc me`."),
            Self::OutsideGrant => Advice::DENIED
                .but_to_client(
                    "Ask for a granted Session; `svc me` lists them. The operator's token searches \
                     only `SVC_RETRIEVAL_SESSION_IDS`; it reads any Session.",
                )
                .to_agent(
                    "You may not read this Session, whether or not it exists. list_sessions names \
                     those that you may. An operator searches any Session with search_evidence.",
                )
                .in_shell(
                    "The operator's token searches only `SVC_RETRIEVAL_SESSION_IDS`, but reads any \
                     Session: `svc transcript SESSION`. For another token, to see the granted \
                     Sessions: `svc me`.",
                ),
            Self::RetrievalDisabled => to_client(
                "Name a Session if the token may read several. The operator's token searches only \
                 `SVC_RETRIEVAL_SESSION_IDS`; without them, use a token that was granted Sessions.",
            )
            .in_console(OVERVIEW)
            .to_agent(
                "No Session is granted to this tool: with an operator's token it searches only \
                 SVC_RETRIEVAL_SESSION_IDS, and none are set. Call search_evidence, which searches \
                 all that you may read, or continue without earlier evidence, and tell the person \
                 who runs the service.",
            )
            .in_shell(
                "Name a Session: `--session SESSION`. The operator's token searches only \
                 `SVC_RETRIEVAL_SESSION_IDS`.",
            ),
            Self::SearchDisabled => search_disabled(),
            Self::SearchUnavailable => search_unavailable(),
            Self::MalformedJson => to_client("Send JSON."),
            Self::FormBody => to_client(
                "If a webhook sent a form: set its content type to `application/json` at the \
                 forge, and redeliver. The log of the service names this cause.",
            ),
            Self::BodyNotObject | Self::LogsNotObject => to_client("Send one JSON object."),
            Self::MalformedProtobuf => to_client(
                "Send the OTLP message of the route, or JSON. Sending the same bytes again does \
                 not help.",
            ),
            Self::MalformedEncoding | Self::UnsupportedEncoding => to_client(
                "Send the body uncompressed or as gzip, and name the encoding in \
                 `Content-Encoding`.",
            ),
            Self::UnsupportedProvider(_) => to_client(
                "Send the payload of a supported gateway, or your own calls as `gateway_a`.",
            )
            .in_console(CORRECT),
            Self::Invalid(_) => to_client(
                "Correct every listed field: `loc` is its path, `type` the kind of violation.",
            )
            .in_console(CORRECT)
            .to_agent("Correct the named arguments and call the tool again."),
            Self::Query(fault) => query::advice(*fault),
            Self::Conflict(code) => of_code(*code),
            Self::Declined(decline) => decline::advice(decline),
            Self::SessionBound(_) => to_client(
                "The Session is too large for this read; there is no partial answer. Ask for its \
                 inventory, or find its calls by words.",
            )
            .in_console(
                "The Session is too large to show, and partial answers are never shown. Its calls \
                 can be opened one by one.",
            )
            .to_agent(
                "There are no partial answers, and this Session is too large for one. Find its parts \
                 with search_evidence and its session_id, and open them with open_evidence.",
            )
            .in_shell(
                "To find its calls: `svc context retrieve WORDS --session SESSION`; to list up to \
                 1,000: `svc evidence inventory SESSION`.",
            ),
            Self::ReportBound(ReportBound::Evidence) => oversize()
                .but_to_client(SHORTER_REPORT)
                .to_agent(NARROWER)
                .in_shell("Use fewer days or an earlier end: `--since-days 7`, `--as-of 30d`."),
            Self::ReportBound(ReportBound::Reply) => oversize().but_to_client(SHORTER_REPORT),
            Self::ReplyTooLarge => oversize(),
            Self::CapacityExceeded => Advice::LATER
                .but_to_client("Send the request again after `Retry-After` seconds.")
                .in_console(
                    "All read slots are in use. Wait a moment and reload; if it happens often, \
                     raise `SVC_READ_SLOTS`.",
                ),
            Self::DeadlineExceeded => Advice::LATER
                .but_to_client("Ask again, or ask for less.")
                .in_console(
                    "It would take too long here. Ask for less: fewer days, or one repository. The \
                     shell has more time: `svc report`.",
                ),
            Self::StoreUnavailable => Advice::LATER
                .but_to_client(
                    "Send the same request again later, if that is harmless: see above. If the \
                     problem persists, check the server's log and the database.",
                )
                .in_console(
                    "The database does not answer, or the mirrors cannot be read. Check both and \
                     reload; `svc doctor` finds the cause.",
                ),
        }
    }
}

const SHORTER_REPORT: &str = "Use fewer days or an earlier end. There is no partial report.";
const NARROWER: &str =
    "There are no partial answers. Ask for less: another Session, or a smaller time range.";
const FULL_IDENTITY: &str =
    "Name the repository by repository_provider, repository_host and repository_id together.";
const FEWER_REFERENCES: &str = "Ask for less: fewer references, a smaller time range, or without \
                                explain. A person can read the whole with the `svc` command.";

/// Returns the advice for a reply that would be too large.
const fn oversize() -> Advice {
    to_client("Ask for less: fewer rows, or a narrower query.")
        .in_console(
            "The answer would be too large, and partial answers are never shown. Ask for less: \
             fewer days, an earlier end, one repository. The shell reads more: `svc report`.",
        )
        .to_agent(FEWER_REFERENCES)
}

const fn search_disabled() -> Advice {
    to_client("The server keeps no search index: `SVC_SEARCH_PATH` is `off`.")
        .to_agent(
            "Search is switched off on this server. Find a Session with list_sessions, by commit, \
             file or time, and open it with open_evidence, or continue without earlier evidence, \
             and tell the person who runs the service.",
        )
        .in_shell("Without an index: `svc sessions`, `svc context retrieve`.")
}

const fn search_unavailable() -> Advice {
    to_client(
        "Send the request again later. The log of the server says why its search index cannot be \
         read; deleting the file is safe, because the server builds it again.",
    )
}

const fn of_code(code: Code) -> Advice {
    match code {
        Code::InferenceCallIdentityConflict => {
            to_client("Give each call unique ids; a call that is sent again keeps all of its ids.")
        }
        Code::RepositoryIdentityConflict => {
            to_client("Use another run id or key for another repository.")
        }
        Code::DatabaseUnavailable => Advice::LATER,
        Code::SearchDisabled => search_disabled(),
        Code::SearchUnavailable => search_unavailable(),
        Code::UnknownPriceFormat => query::advice(QueryFault::UnknownPriceFormat),
        Code::NoModels => query::advice(QueryFault::NoModels),
        Code::PriceTablesFull => query::advice(QueryFault::PriceTablesFull),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_worded_for_each_reader() {
        let advice = Problem::Query(QueryFault::MalformedSha).advice();
        assert_eq!(
            advice.client(),
            "Give the full commit id: `git rev-parse COMMIT`."
        );
        let plain = "Give the full commit id: git rev-parse COMMIT.";
        assert_eq!(
            (advice.console().as_str(), advice.agent().as_str()),
            (plain, plain)
        );
        assert_eq!(
            advice.shell().as_deref(),
            Some("give the full commit id: git rev-parse COMMIT")
        );
    }
}
