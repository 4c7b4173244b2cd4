//! Permanent removal of captured content, and its log.

mod carry_out;
mod log;
mod search_index;

use clap::{Args, Subcommand};
use serde::{Serialize, Serializer};
use svc_engine::clock::Clock;
use svc_engine::store::{ErasedFacts, ErasureSubject};
use svc_model::id::{SessionId, UserId};
use svc_model::time::Instant;

use self::carry_out::ErasureOptions;
pub(super) use self::carry_out::NOT_REWRITTEN;
use self::log::Log;
use super::moment::moment;
use super::place::{DefaultPlace, OpenedLedger, StoreOrService};
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape, long_option, quote};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Erase {
    #[command(subcommand)]
    command: Option<EraseCommand>,

    /// Erase the content of this Session
    #[arg(long, value_name = "SESSION", conflicts_with = "user")]
    session: Option<String>,

    /// Erase the content of facts that name this user, or that name nobody in a Session that names
    /// nobody else
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    #[command(flatten)]
    how: ErasureOptions,
}

#[derive(Debug, Subcommand)]
enum EraseCommand {
    /// List the erasures, oldest first: when, who and why
    Log(Log),
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Erase the content of facts captured before this time: an age such as 90d, a date, or RFC
    /// 3339 with an offset
    #[arg(long, value_name = "MOMENT", allow_hyphen_values = true)]
    older_than: String,

    #[command(flatten)]
    how: ErasureOptions,
}

impl Erase {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let (subject, again) = match (&self.command, &self.session, &self.user) {
            (Some(EraseCommand::Log(log)), ..) => return log.run(output),
            (None, Some(session), _) => {
                let id = SessionId::new(session)
                    .map_err(|rule| CommandError::argument("--session", rule))?;
                let again = format!("svc erase{}", long_option("session", session));
                (ErasureSubject::Session(id), again)
            }
            (None, None, Some(user)) => {
                let id =
                    UserId::new(user).map_err(|rule| CommandError::argument("--user", rule))?;
                let again = format!("svc erase{}", long_option("user", user));
                (ErasureSubject::User(id), again)
            }
            (None, None, None) => {
                return Err(CommandError::refused(
                    "invalid_argument",
                    "--session or --user is required",
                )
                .hint("name a Session or a user: --session SESSION, --user NAME")
                .hint("by age: svc gc --older-than 90d"));
            }
        };
        self.how.run(&subject, &again, output)
    }
}

impl Gc {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let before = moment("--older-than", &self.older_than, now)?;
        if before > now {
            return Err(CommandError::argument(
                "--older-than",
                "must be in the past",
            ));
        }
        let again = format!("svc gc --older-than {}", quote(&self.older_than));
        self.how
            .run(&ErasureSubject::OlderThan(before), &again, output)
    }
}

/// Opens the store, because content is erased only there.
fn store(
    options: &StoreOptions,
    output: &mut Output,
) -> Result<(OpenedLedger, String), CommandError> {
    let place = StoreOrService::find(
        &ServiceOptions::default(),
        options,
        DefaultPlace::Store,
        output,
    )?;
    let shown = place.shown();
    match place {
        StoreOrService::Store(opened) => {
            let shown = format!("{shown}, organization {}", opened.org_id);
            Ok((opened, shown))
        }
        StoreOrService::Service(_) => Err(CommandError::refused(
            "needs_the_store",
            format!("content can be erased only with direct access to the store, and this shell uses {shown}"),
        )
        .hint("on the machine of the store: --database-url URL, or SVC_DATABASE_URL")),
    }
}

/// The subject of an erasure, for programs. One of the three is present.
#[derive(Debug, Default, Serialize)]
struct Subject {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    older_than: Option<Instant>,
}

impl From<&ErasureSubject> for Subject {
    fn from(subject: &ErasureSubject) -> Self {
        let mut named = Self::default();
        match subject {
            ErasureSubject::Session(id) => named.session_id = Some(id.clone()),
            ErasureSubject::User(id) => named.user_id = Some(id.clone()),
            ErasureSubject::OlderThan(moment) => named.older_than = Some(*moment),
        }
        named
    }
}

/// Returns the subject of an erasure, for people.
fn named(subject: &ErasureSubject) -> String {
    match subject {
        ErasureSubject::Session(id) => format!("Session {}", escape(id.as_str())),
        ErasureSubject::User(id) => format!("user {}", escape(id.as_str())),
        ErasureSubject::OlderThan(moment) => format!("before {moment}"),
    }
}

/// Writes counts of facts by kind, for programs.
fn by_kind<S: Serializer>(facts: &ErasedFacts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(facts.iter().map(|(kind, count)| (kind.as_str(), count)))
}
