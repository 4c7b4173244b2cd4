use std::collections::BTreeSet;

use anstyle::Style;
use clap::Args;
use serde::Serialize;
use svc_engine::clock::Clock;
use svc_engine::search::{SearchFile, SearchPathError, request_rebuild};
use svc_model::context::MaxBytes;
use svc_model::endpoint::Search as SearchRoute;
use svc_model::id::{IdentityError, UserId};
use svc_model::limit::{
    CONTEXT_REPLY_BYTES_HIGH, CONTEXT_REPLY_BYTES_LOW, SEARCH_SESSIONS_DEFAULT, SEARCH_SESSIONS_MAX,
};
use svc_model::search::{
    FilePath, SearchFilters, SearchKind, SearchLimit, SearchPart, SearchQuery, SearchRepository,
    SearchRequest, SearchResult, SearchSession, SearchWord,
};
use svc_model::time::Instant;
use svc_view::{NOTHING_FOUND, SHELL, Snippet, found};

use super::context::session_id;
use super::moment::optional_moment;
use super::one_of::one_of;
use super::repository::RepositoryOptions;
use super::store;
use super::{revision, service};
use crate::error::{CommandError, chain};
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape, positional, quote, reference, relative};

/// The characters of an excerpt.
const EXCERPT_CHARACTERS_MAX: usize = 300;
/// How words of the query stand out on a terminal.
const MATCH: Style = Style::new().bold();

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What to search for: a question, an error message, names in code. Rare words count most.
    #[arg(required_unless_present = "rebuild", value_name = "WORDS")]
    query: Vec<String>,

    /// Delete the search index of this machine, and let its server build it anew. This is always
    /// safe, and only needed if the doctor says so.
    #[arg(long, exclusive = true)]
    rebuild: bool,

    #[command(flatten)]
    filters: Filters,

    /// The maximum number of Sessions.
    #[arg(long, value_name = "NUMBER", default_value_t = SEARCH_SESSIONS_DEFAULT,
          value_parser = clap::value_parser!(u64).range(1..=SEARCH_SESSIONS_MAX))]
    limit: u64,

    /// The maximum size of the reply in bytes.
    #[arg(long, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(CONTEXT_REPLY_BYTES_LOW..=CONTEXT_REPLY_BYTES_HIGH))]
    max_bytes: Option<u64>,

    #[command(flatten)]
    service: ServiceOptions,
}

/// What is searched. Everything that is given must hold.
#[derive(Debug, Default, Args)]
struct Filters {
    /// Only this Session.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    repository: RepositoryOptions,

    /// Only Sessions that were observed at this commit: its full id, or inside a clone any name
    /// that git knows, such as HEAD.
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,

    /// Only Sessions that worked on the file with this path, or with this end of a path.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    /// Only Sessions of this user, exactly.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Only calls of this model, exactly.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Only calls of this agent, or Sessions whose decisions name it.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only calls observed at or after this moment: RFC 3339 with an offset, a date, or an age such
    /// as 7d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,

    /// Only calls observed before this moment.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,

    /// Only messages with this role, exactly, such as user or assistant.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,

    /// Only parts of this kind. Reasoning is searched only if it is asked for.
    #[arg(long, value_parser = one_of(SearchKind::ALL, SearchKind::as_str))]
    kind: Option<SearchKind>,
}

impl Search {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        if self.rebuild {
            return rebuild(output);
        }
        let now = Clock::system().now();
        let request = self.request(now)?;
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<SearchRoute>(&request).await?) })?;
        output.reply(&reply, |result| render(result, request.query.words(), now))?;
        output.next(&self.service, &next(&reply.value, &request));
        Ok(())
    }

    fn request(&self, now: Instant) -> Result<SearchRequest, CommandError> {
        let query = SearchQuery::new(&self.query.join(" "));
        let query = query.map_err(|rule| CommandError::argument("the query", rule))?;
        Ok(SearchRequest {
            max_bytes: self.max_bytes.and_then(MaxBytes::new).unwrap_or_default(),
            limit: SearchLimit::new(self.limit).unwrap_or_default(),
            filters: self.filters.read(now)?,
            ..SearchRequest::new(query)
        })
    }
}

impl Filters {
    fn read(&self, now: Instant) -> Result<SearchFilters, CommandError> {
        let commit = self.commit.as_deref();
        let since = optional_moment("--since", self.since.as_deref(), now)?;
        let until = optional_moment("--until", self.until.as_deref(), now)?;
        if let (Some(since), Some(until)) = (since, until)
            && until < since
        {
            return Err(CommandError::misuse(
                "--until",
                "must not be before --since",
            ));
        }
        Ok(SearchFilters {
            session_id: self.session.as_deref().map(session_id).transpose()?,
            repository: self.repository()?,
            commit: commit
                .map(|commit| revision::commit("--commit", commit))
                .transpose()?,
            file: text("--file", self.file.as_deref(), FilePath::new)?,
            user: text("--user", self.user.as_deref(), UserId::new)?,
            model: text("--model", self.model.as_deref(), SearchWord::new)?,
            agent: text("--agent", self.agent.as_deref(), SearchWord::new)?,
            since,
            until,
            role: text("--role", self.role.as_deref(), SearchWord::new)?,
            kind: self.kind,
        })
    }

    fn repository(&self) -> Result<Option<SearchRepository>, CommandError> {
        let selector = self.repository.selector()?;
        match (selector.repo, selector.identity) {
            (Some(_), Some(_)) => Err(CommandError::argument(
                "--repo",
                "must be the only option that names the repository",
            )),
            (Some(name), None) => Ok(Some(SearchRepository::Named(name))),
            (None, Some(identity)) => Ok(Some(SearchRepository::Identified(identity))),
            (None, None) => Ok(None),
        }
    }
}

/// What became of an index, for programs.
#[derive(Debug, Serialize)]
struct RebuiltIndex {
    path: String,
    /// `deleted`, or `requested` if a server uses it.
    index: &'static str,
}

/// Deletes the index of this machine, or asks the server that uses it to.
fn rebuild(output: &mut Output) -> Result<(), CommandError> {
    let settings = store::settings(&StoreOptions::default())?;
    let Some(path) = settings.search.path() else {
        return Err(CommandError::refused(
            "search_disabled",
            "this machine keeps no search index: SVC_SEARCH_PATH is off",
        ));
    };
    let failed = |error: &dyn std::error::Error| {
        CommandError::refused("search_unavailable", chain(error))
            .hint("run it as the user of the server; or stop the server and remove the file")
    };
    let index = match SearchFile::lock(path) {
        Ok(file) => {
            file.remove().map_err(|error| failed(&error))?;
            "deleted"
        }
        Err(SearchPathError::InUse { .. }) => {
            request_rebuild(path).map_err(|error| failed(&error))?;
            "requested"
        }
        Err(error) => return Err(failed(&error)),
    };
    let rebuilt = RebuiltIndex {
        path: path.display().to_string(),
        index,
    };
    output.value(&rebuilt, |rebuilt| {
        let path = escape(&rebuilt.path);
        match rebuilt.index {
            "deleted" => format!("deleted {path}; the next server builds it anew\n"),
            _ => format!("the server that uses {path} builds it anew; watch it: svc capture\n"),
        }
    })
}

/// Reads the text of an option.
fn text<T>(
    option: &str,
    given: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, IdentityError>,
) -> Result<Option<T>, CommandError> {
    let read = given.map(read).transpose();
    read.map_err(|rule| CommandError::argument(option, rule))
}

fn render(result: &SearchResult, words: &BTreeSet<String>, now: Instant) -> String {
    let mut text = SHELL.found_sessions(result) + "\n";
    for bound in SHELL.search_bounds(result) {
        text.extend([&bound, "\n"]);
    }
    if let Some(skipped) = SHELL.search_skipped(result) {
        text.extend(["not shown: ", &skipped, "\n"]);
    }
    if result.items.is_empty() {
        text.extend([NOTHING_FOUND, "\n"]);
    }
    let mut shown = BTreeSet::new();
    for session in &result.items {
        text.extend(["\n", &heading(session, now), "\n"]);
        for part in &session.parts {
            text += &block(part, words, &mut shown);
        }
    }
    text
}

/// Returns the line of a Session: its id, its age, its users and its title.
fn heading(session: &SearchSession, now: Instant) -> String {
    let users = session.user_ids.as_deref().unwrap_or_default();
    let mut words = vec![
        escape(session.session_id.as_str()),
        relative(session.last_observed_at, now),
    ];
    if !users.is_empty() {
        words.push(SHELL.list(users.iter().map(UserId::as_str)));
    }
    words.extend(session.title.as_deref().map(escape));
    words.join("  ")
}

/// Returns the excerpt of a part, under a line that says where it is. An excerpt that was printed
/// before is not repeated.
fn block(part: &SearchPart, words: &BTreeSet<String>, shown: &mut BTreeSet<String>) -> String {
    let excerpt = found(part, words, EXCERPT_CHARACTERS_MAX);
    let place = reference(&part.reference);
    let speaker = SHELL.speaker(part);
    let excerpt = if shown.insert(excerpt.text.clone()) {
        marked(&excerpt)
    } else {
        "(the same text as above)".to_owned()
    };
    format!("  {place}  {speaker}\n    {excerpt}\n")
}

/// Returns an excerpt on one line, escaped, with what matches in bold.
fn marked(excerpt: &Snippet) -> String {
    let pieces = excerpt.pieces().map(|(piece, matches)| {
        let piece = escape(piece);
        if matches {
            format!("{MATCH}{piece}{MATCH:#}")
        } else {
            piece
        }
    });
    pieces.collect()
}

/// Returns the commands to suggest next: what was said around the best part, and that part as a
/// whole. If nothing was found, suggests the same search of everything.
fn next(result: &SearchResult, request: &SearchRequest) -> Vec<String> {
    let Some((session, part)) = best(result) else {
        let wider = format!("svc search {}", positional(request.query.as_str()));
        return if request.filters.is_empty() {
            Vec::new()
        } else {
            vec![wider]
        };
    };
    let id = positional(session.session_id.as_str());
    let call = quote(part.reference.inference_call_id.as_str());
    vec![
        format!("svc transcript {id} {call}"),
        format!(
            "svc evidence read {id} {}",
            quote(&reference(&part.reference))
        ),
    ]
}

fn best(result: &SearchResult) -> Option<(&SearchSession, &SearchPart)> {
    let session = result.items.first()?;
    Some((session, session.parts.first()?))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use svc_model::json;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        search: Search,
    }

    fn request(line: &str) -> Result<SearchRequest, CommandError> {
        let words = std::iter::once("search").chain(line.split_whitespace());
        let search = Line::try_parse_from(words).unwrap().search;
        search.request(now())
    }

    fn now() -> Instant {
        Instant::parse("2026-01-08T00:00:00Z").unwrap()
    }

    fn part(id: u32, more: &str) -> String {
        format!(
            r#"{{"score":1000,"reference":{{"inference_call_id":"c-{id}","side":"output","message_index":0,
            "part_index":{id}}},"observed_at":"2026-01-07T23:00:00Z","role":"assistant","finish_reason":null,{more}}}"#
        )
    }

    fn text(id: u32, content: &str) -> String {
        part(
            id,
            &format!(
                r#""type":"text","whole":true,"part":{{"type":"text","content":"{content}"}}"#
            ),
        )
    }

    fn session(id: &str, more: &str, parts: &[String]) -> String {
        format!(
            r#"{{"session_id":"{id}",{more}"score":1000,"matched_parts":1,"first_observed_at":"2026-01-07T22:00:00Z",
            "last_observed_at":"2026-01-07T23:00:00Z","parts":[{}]}}"#,
            parts.join(",")
        )
    }

    fn result(status: &str, skipped: u64, items: &[String]) -> SearchResult {
        let text = format!(
            r#"{{"schema_version":1,"policy_version":2,"quarantine_revision":0,
            "capture_completeness":"unknown","status":"{status}","indexed_up_to":"2026-01-07T23:59:59Z",
            "index_complete":true,"coverage":{{"sessions":40,"indexed_parts":9,"candidates":3,"all_scored":true}},
            "skipped":{{"withdrawn":0,"non_finite_number":0,"session_limit":{skipped},"part_limit":0,"response_budget":0}},
            "items":[{}]}}"#,
            items.join(",")
        );
        json::from_slice(text.as_bytes()).unwrap()
    }

    #[test]
    fn every_option_is_a_filter() {
        let sha = "0123456789012345678901234567890123456789";
        let asked = request(&format!(
            "why retry --session s --repo own/app --commit {sha} --file svc/pager.rs --user ann \
             --model m --agent codex --since 7d --until 2026-01-08 --role user --kind tool_result \
             --limit 20 --max-bytes 4096"
        ))
        .unwrap();
        assert_eq!(asked.query.as_str(), "why retry");
        assert_eq!((asked.limit.get(), asked.max_bytes.get()), (20, 4096));
        let written = json::to_vec(&asked.filters, usize::MAX).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            format!(
                r#"{{"session_id":"s","repository":"own/app","commit":"{sha}","file":"svc/pager.rs","user":"ann","model":"m","agent":"codex","since":"2026-01-01T00:00:00Z","until":"2026-01-08T00:00:00Z","role":"user","kind":"tool_result"}}"#
            )
        );
        let identified = request("x --repo github/github.com/9").unwrap();
        assert!(matches!(
            identified.filters.repository,
            Some(SearchRepository::Identified(_))
        ));
        assert!(request("pager").unwrap().filters.is_empty());
    }

    #[test]
    fn a_search_that_cannot_be_asked_is_refused_before_it_is_sent() {
        for wrong in [
            "the",
            "x --since 1d --until 2d",
            "x --repo own",
            "x --user \0",
            "x --commit none",
            "x --repo own/app --repository-provider github --repository-host github.com --repository-id 9",
        ] {
            assert_eq!(
                request(wrong).unwrap_err().code(),
                "invalid_argument",
                "{wrong}"
            );
        }
    }

    #[test]
    fn sessions_are_headings_over_excerpts_with_what_matches_in_bold() {
        let parts = [
            text(1, "the half-open\\nwindow of\\u001b the pager"),
            text(2, "other"),
        ];
        let long = part(
            3,
            r#""type":"tool_call","tool_name":"Edit","whole":false,"excerpt":{"text":"a window b","start":9,"end":19,"total":40}"#,
        );
        let first = session(
            "s-1",
            r#""title":"Fix\u001b it","user_ids":["ann"],"#,
            &parts,
        );
        let second = session("s-2", "", &[long, text(4, "other")]);
        let result = result("matched", 3, &[first, second]);
        let request = request("windows").unwrap();
        assert_eq!(
            render(&result, request.query.words(), now()),
            "2 of 40 Sessions, best first\n\
             Everything captured up to 2026-01-07 23:59:59 UTC was searched.\n\
             not shown: 3 further Sessions\n\n\
             s-1  1h ago  ann  Fix\\u{1b} it\n  \
               c-1:output:0:1  assistant\n    \
                 the half-open \u{1b}[1mwindow\u{1b}[0m of\\u{1b} the pager\n  \
               c-2:output:0:2  assistant\n    other\n\n\
             s-2  1h ago\n  \
               c-3:output:0:3  assistant calls Edit\n    \
                 …a \u{1b}[1mwindow\u{1b}[0m b…\n  \
               c-4:output:0:4  assistant\n    (the same text as above)\n"
        );
        assert_eq!(
            next(&result, &request),
            [
                "svc transcript s-1 c-1",
                "svc evidence read s-1 c-1:output:0:1"
            ]
        );
    }

    #[test]
    fn nothing_found_is_an_answer_that_says_what_was_searched() {
        let nothing = result("no_match", 0, &[]);
        let wide = request("half open").unwrap();
        let shown = render(&nothing, wide.query.words(), now());
        assert!(
            shown.starts_with("no Session matches; 40 were searched\n"),
            "{shown}"
        );
        assert!(shown.ends_with(&format!("{NOTHING_FOUND}\n")), "{shown}");
        assert!(next(&nothing, &wide).is_empty());
        let narrow = request("half open --agent codex").unwrap();
        assert_eq!(next(&nothing, &narrow), ["svc search 'half open'"]);
    }
}
