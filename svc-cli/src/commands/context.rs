use std::fmt::Write as _;

use clap::{ArgGroup, Args, Subcommand};
use svc_client::{Client, ErrorKind};
use svc_engine::fact::Lifetime;
use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    DiscoveryResult, MaxBytes, Query,
};
use svc_model::endpoint::{ContextRetrieval, Discovery, Selected};
use svc_model::id::SessionId;
use svc_model::limit::{CONTEXT_REPLY_BYTES_HIGH, CONTEXT_REPLY_BYTES_LOW};
use svc_model::repository::{
    CommitAnchor, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryProvider,
};
use svc_model::version::Version1;

use super::{repository, revision, service};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{
    Output, Table, escape, item_block, long_option, part_line, positional, quote, reference,
};

/// The characters of a preview that a table shows.
const PREVIEW_CHARACTERS_MAX: usize = 60;

#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// Find the parts of one Session that answer a query.
    Retrieve(Retrieve),
    /// Find the Sessions that answer a query or made a commit.
    Discover(Discover),
}

/// The query and the size of the reply.
#[derive(Debug, Args)]
struct Keywords {
    /// Keywords, English or code.
    #[arg(required = true, value_name = "KEYWORD")]
    query: Vec<String>,

    /// The maximum size of the reply in bytes.
    #[arg(long, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(CONTEXT_REPLY_BYTES_LOW..=CONTEXT_REPLY_BYTES_HIGH))]
    max_bytes: Option<u64>,
}

impl Keywords {
    fn query(&self) -> Result<Query, CommandError> {
        Query::new(&self.query.join(" ")).map_err(|rule| CommandError::argument("the query", rule))
    }

    fn max_bytes(&self) -> MaxBytes {
        self.max_bytes.and_then(MaxBytes::new).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Retrieve {
    #[command(flatten)]
    keywords: Keywords,

    /// The Session; by default the one that the service is configured with.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    service: ServiceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Discover {
    #[command(flatten)]
    keywords: Keywords,

    #[command(flatten)]
    commit: CommitOptions,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A commit whose Sessions come first.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("identified").args(["repo", "repository_id"])))]
struct CommitOptions {
    /// A commit whose Sessions come first: its full id, or inside a clone any name that git knows,
    /// such as HEAD.
    #[arg(long = "commit", value_name = "COMMIT", requires = "identified")]
    sha: Option<String>,

    /// The repository of the commit, by its number at the forge: github/github.com/42.
    #[arg(long, value_name = "PROVIDER/HOST/ID", requires = "sha")]
    repo: Option<String>,

    /// The same as three options: the forge's number of the repository.
    #[arg(long, value_name = "ID", requires = "sha", hide_short_help = true)]
    repository_id: Option<String>,

    /// The host of the forge.
    #[arg(
        long,
        value_name = "HOST",
        requires = "sha",
        default_value = "github.com",
        hide_short_help = true
    )]
    repository_host: String,

    /// The kind of forge.
    #[arg(
        long,
        value_name = "PROVIDER",
        requires = "sha",
        default_value = "github",
        hide_short_help = true
    )]
    repository_provider: String,
}

impl CommitOptions {
    fn anchor(&self) -> Result<Option<CommitAnchor>, CommandError> {
        let Some(sha) = &self.sha else {
            return Ok(None);
        };
        let identity = self.identity()?;
        Ok(Some(CommitAnchor {
            repository_provider: identity.repository_provider,
            repository_host: identity.repository_host,
            repository_id: identity.repository_id,
            commit_sha: revision::commit("--commit", sha)?,
        }))
    }

    fn identity(&self) -> Result<RepositoryIdentity, CommandError> {
        if let Some(repo) = &self.repo {
            let Some(Lifetime::Identified(identity)) = repository::read(repo) else {
                let error = CommandError::argument(
                    "--repo",
                    "must be PROVIDER/HOST/ID here, such as github/github.com/42",
                );
                return Err(error
                    .hint("to get the number of a repository: gh api repos/OWNER/NAME --jq .id"));
            };
            return Ok(identity);
        }
        let provider = RepositoryProvider::from_wire(&self.repository_provider)
            .ok_or_else(|| CommandError::argument("--repository-provider", "must be github"))?;
        let host = RepositoryHost::new(&self.repository_host).ok_or_else(|| {
            CommandError::argument("--repository-host", "must be a DNS host name")
        })?;
        let id = self.repository_id.as_deref().and_then(RepositoryId::new);
        let id = id
            .ok_or_else(|| CommandError::argument("--repository-id", "must be a decimal number"))?;
        Ok(RepositoryIdentity {
            repository_provider: provider,
            repository_host: host,
            repository_id: id,
        })
    }
}

impl Context {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Retrieve(retrieve) => retrieve.run(output),
            Self::Discover(discover) => discover.run(output),
        }
    }
}

impl Retrieve {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let query = self.keywords.query()?;
        let max_bytes = self.keywords.max_bytes();
        let session_id = self.session.as_deref().map(session_id).transpose()?;
        let client = service::client(&self.service)?;
        let is_named = session_id.is_some();
        let reply = service::block_on(async {
            let reply = if let Some(session_id) = session_id {
                let request = ContextSelectedRequest {
                    schema_version: Version1,
                    query,
                    session_id,
                    max_bytes,
                };
                client.call_raw::<Selected>(&request).await
            } else {
                let request = ContextRetrievalRequest {
                    schema_version: Version1,
                    query,
                    max_bytes,
                };
                client.call_raw::<ContextRetrieval>(&request).await
            };
            reply.map_err(|error| refused(error, is_named))
        })?;
        output.reply(&reply, render_result)?;
        output.next(&self.service, &after_result(&reply.value));
        Ok(())
    }
}

impl Discover {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let query = self.keywords.query()?;
        let max_bytes = self.keywords.max_bytes();
        let commit = self.commit.anchor()?;
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            let reply = discover(&client, &query, max_bytes, commit).await;
            reply.map_err(|error| refused(error, true))
        })?;
        output.reply(&reply, render_discovery)?;
        output.next(&self.service, &after_discovery(&reply.value, &query));
        Ok(())
    }
}

/// Returns the refusal of a search. If no Session had to be named, only the operator's token has
/// none to search.
fn refused(error: svc_client::Error, is_named: bool) -> CommandError {
    if !is_named || *error.kind() != ErrorKind::RetrievalDisabled {
        return error.into();
    }
    let reason = "the operator's token searches only SVC_RETRIEVAL_SESSION_IDS, and none are set";
    CommandError::refused(error.kind().code(), reason).hint(
        "search with a token that was granted Sessions (SVC_RETRIEVAL_TOKENS), or read one: svc \
         transcript SESSION",
    )
}

/// Asks which Sessions answer a query.
pub(super) async fn discover(
    client: &Client,
    query: &Query,
    max_bytes: MaxBytes,
    commit: Option<CommitAnchor>,
) -> Result<svc_client::RawReply<DiscoveryResult>, svc_client::Error> {
    let request = ContextDiscoveryRequest {
        schema_version: Version1,
        query: query.clone(),
        max_bytes,
        commit,
    };
    client.call_raw::<Discovery>(&request).await
}

pub(super) fn session_id(text: &str) -> Result<SessionId, CommandError> {
    SessionId::new(text).map_err(|rule| CommandError::misuse("the Session", rule))
}

fn render_result(result: &ContextResult) -> String {
    let coverage = &result.coverage;
    let skipped = &result.skipped;
    let heading = format!(
        "{}: {} of {} parts in {} visible calls of Session {}\n",
        result.status,
        result.items.len(),
        coverage.scanned_parts,
        coverage.visible_inference_calls,
        escape(result.source_session_id.as_str()),
    );
    let left_out = left_out(&[
        ("reasoning", skipped.reasoning_part),
        ("not finite", skipped.non_finite_number),
        ("repeated", skipped.repeated_content),
        ("after the eighth", skipped.item_limit),
        ("too large for --max-bytes", skipped.response_budget),
        ("calls whose content was erased", skipped.content_erased),
    ]);
    let items = result
        .items
        .iter()
        .map(|item| format!("\nscore {}  {}", item.score, item_block(&item.evidence)));
    [heading, left_out].into_iter().chain(items).collect()
}

fn after_result(result: &ContextResult) -> Vec<String> {
    let session = positional(result.source_session_id.as_str());
    let Some(best) = result.items.first() else {
        return vec![format!("svc evidence inventory {session}")];
    };
    let place = &best.evidence.reference;
    vec![
        format!(
            "svc evidence manifest {session} {}",
            quote(place.inference_call_id.as_str())
        ),
        format!("svc evidence read {session} {}", quote(&reference(place))),
    ]
}

pub(super) fn render_discovery(result: &DiscoveryResult) -> String {
    let coverage = &result.coverage;
    let mut text = format!(
        "{}: {} of {} known Sessions ({} authorized), {} of {} parts match\n",
        result.status,
        result.items.len(),
        coverage.found_sessions,
        coverage.authorized_sessions,
        coverage.matched_parts,
        coverage.scanned_parts,
    );
    if let Some(searched) = coverage.searched_sessions {
        let found = coverage.found_sessions;
        // Writing to a string never fails.
        let _ = writeln!(text, "searched the latest {searched} of {found} Sessions");
    }
    let skipped = &result.skipped;
    text.push_str(&left_out(&[
        ("reasoning", skipped.reasoning_part),
        ("not finite", skipped.non_finite_number),
        ("after the eighth", skipped.candidate_limit),
        ("too large for --max-bytes", skipped.response_budget),
        ("calls whose content was erased", skipped.content_erased),
    ]));
    if result.items.is_empty() {
        return text;
    }
    let mut table = Table::new(["session", "score", "parts", "commit", "preview"]).numbers(&[1, 2]);
    for candidate in &result.items {
        let preview = candidate.preview.as_ref();
        table.row([
            escape(candidate.session_id.as_str()),
            candidate.score.to_string(),
            candidate.matched_parts.to_string(),
            candidate.commit_match.as_ref().map_or_else(
                || "-".to_owned(),
                |linked| match &linked.source {
                    Some(source) => format!("yes, from {source}"),
                    None => "yes".to_owned(),
                },
            ),
            preview.map_or_else(
                || "-".to_owned(),
                |item| part_line(&item.part, PREVIEW_CHARACTERS_MAX),
            ),
        ]);
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}

fn after_discovery(result: &DiscoveryResult, query: &Query) -> Vec<String> {
    let Some(best) = result.items.first() else {
        return Vec::new();
    };
    let session = long_option("session", best.session_id.as_str());
    let query = positional(query.as_str());
    vec![format!("svc context retrieve{session} {query}")]
}

/// Returns a line that lists what was left out, or an empty text.
fn left_out(counts: &[(&str, u64)]) -> String {
    let counts: Vec<_> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    if counts.is_empty() {
        return String::new();
    }
    format!("left out: {}\n", counts.join(", "))
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    const ITEM: &str = r#"{"reference":{"inference_call_id":"c-1","side":"input","message_index":2,"part_index":0},"observed_at":"2026-01-15T09:30:00Z","role":"user","finish_reason":null,"part":{"type":"text","content":"the window\nis half-open"}}"#;

    #[test]
    fn a_result_shows_its_parts_and_how_to_read_on() {
        let result = format!(
            r#"{{"schema_version":1,"policy_version":1,"source_session_id":"fix it","quarantine_revision":0,"status":"matched","capture_completeness":"unknown","coverage":{{"visible_inference_calls":1,"quarantined_inference_calls":0,"scanned_parts":5,"complete_visible_scan":true}},"skipped":{{"reasoning_part":1,"non_finite_number":0,"no_match":2,"repeated_content":1,"item_limit":0,"response_budget":0}},"items":[{{"score":2,"evidence":{ITEM}}}]}}"#
        );
        let result = json::from_slice(result.as_bytes()).unwrap();
        assert_eq!(
            render_result(&result),
            "matched: 1 of 5 parts in 1 visible calls of Session fix it\n\
             left out: 1 reasoning, 1 repeated\n\n\
             score 2  c-1:input:2:0  2026-01-15T09:30:00Z\n  user\n    the window\n    is half-open\n"
        );
        assert_eq!(
            after_result(&result),
            [
                "svc evidence manifest 'fix it' c-1",
                "svc evidence read 'fix it' c-1:input:2:0"
            ]
        );
    }

    #[test]
    fn a_discovery_is_a_table() {
        let result = format!(
            r#"{{"schema_version":1,"policy_version":1,"quarantine_revision":0,"capture_completeness":"unknown","commit":null,"status":"matched","coverage":{{"authorized_sessions":3,"found_sessions":2,"visible_inference_calls":3,"quarantined_inference_calls":0,"scanned_parts":9,"matched_parts":2,"complete_visible_scan":true}},"skipped":{{"reasoning_part":0,"non_finite_number":0,"unmatched_part":7,"unmatched_session":0,"candidate_limit":0,"response_budget":0}},"items":[{{"session_id":"b","score":0,"matched_parts":0,"preview":null,"commit_match":{{"observation_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","source_push_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","captured_at":"2026-01-15T09:30:00Z"}}}},{{"session_id":"fix/pager","score":12,"matched_parts":2,"preview":{ITEM},"commit_match":null}}]}}"#
        );
        let result = json::from_slice(result.as_bytes()).unwrap();
        assert_eq!(
            render_discovery(&result),
            "matched: 2 of 2 known Sessions (3 authorized), 2 of 9 parts match\n\n\
             session    score  parts  commit  preview\n\
             b              0      0  yes     -\n\
             fix/pager     12      2  -       the window is half-open\n"
        );
        let query = Query::new("half-open window").unwrap();
        assert_eq!(
            after_discovery(&result, &query),
            ["svc context retrieve --session b 'half-open window'"]
        );
    }
}
