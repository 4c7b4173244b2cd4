use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;

use super::snippet::{self, Snippet};
use crate::commands::{git_hooks, service};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, quote};

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The source of evidence; or mcp-AGENT for an agent that reads it.
    #[arg(value_parser = source_parser())]
    source: InstallSource,

    /// For claude-code: also send what was asked and answered, which makes model calls of it.
    #[arg(long)]
    calls: bool,

    /// For AGENT-transcripts: the folder whose Sessions are sent; may be repeated.
    #[arg(long, value_name = "DIR")]
    cwd: Vec<PathBuf>,

    /// Print the git hooks instead of installing them. Every other source is only printed anyway.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A snippet, for programs.
#[derive(Debug, Serialize)]
struct PrintedSnippet {
    source: &'static str,
    place: &'static str,
    language: &'static str,
    snippet: String,
    notes: Vec<String>,
    /// The paragraph for AGENTS.md or CLAUDE.md, for an agent that reads evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    paragraph: Option<&'static str>,
}

/// What to install.
#[derive(Clone, Copy, Debug)]
enum InstallSource {
    /// A snippet that a person adds to a configuration.
    Snippet(Snippet),
    /// The hooks of the current repository.
    GitHooks,
}

const GIT_HOOKS: &str = "git-hooks";

fn source_parser() -> impl clap::builder::TypedValueParser<Value = InstallSource> {
    let snippets = snippet::ALL
        .iter()
        .chain(snippet::AGENTS)
        .chain(snippet::TRANSCRIPTS)
        .map(|snippet| snippet.source)
        .filter(|source| !source.contains(' '));
    PossibleValuesParser::new(snippets.chain([GIT_HOOKS])).try_map(|source| match &*source {
        GIT_HOOKS => Ok(InstallSource::GitHooks),
        source => snippet::of(source)
            .map(InstallSource::Snippet)
            .ok_or("no such source"),
    })
}

impl Install {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let snippet = match self.source {
            InstallSource::Snippet(snippet) if self.calls => snippet::with_calls(snippet.source)
                .ok_or_else(|| {
                    let source = snippet.source;
                    CommandError::misuse("--calls", format!("is for claude-code, not {source}"))
                })?,
            InstallSource::Snippet(snippet) => snippet,
            InstallSource::GitHooks if self.print => return git_hooks::print(output),
            InstallSource::GitHooks => return git_hooks::install(output),
        };
        let hook_options = self.hook_options(snippet)?;
        let Snippet {
            source,
            place,
            language,
            ..
        } = snippet;
        let paragraph = snippet.asks().then_some(snippet::PARAGRAPH);
        let client = service::anonymous(&self.service)?;
        let url = client.url();
        let printed = PrintedSnippet {
            source,
            place,
            language,
            snippet: match &hook_options {
                Some(options) => snippet.text_with(options),
                None => snippet.text(url),
            },
            notes: snippet.notes(url),
            paragraph,
        };
        output.value(&printed, |printed| match printed.paragraph {
            None => printed.snippet.clone(),
            Some(paragraph) => format!("{}\n{paragraph}", printed.snippet),
        })?;
        if paragraph.is_some() {
            output.note(&format!(
                "put the first line into {place}, the rest into AGENTS.md or CLAUDE.md"
            ));
        } else {
            output.note(&format!("put it into {place}"));
        }
        for note in &printed.notes {
            output.note(note);
        }
        if client.is_loopback() && snippet.is_elsewhere() {
            output.warning(&format!(
                "{url} can only be reached from this machine; if {source} runs elsewhere, give the \
                 service's address there: svc install {source} --url URL"
            ));
        }
        Ok(())
    }

    /// Returns the options of the hooks that read transcripts, if the snippet has such hooks. Their
    /// folders are written out, because a hook runs wherever the agent works.
    fn hook_options(&self, snippet: Snippet) -> Result<Option<String>, CommandError> {
        if !snippet.reads_transcripts() {
            if self.cwd.is_empty() {
                return Ok(None);
            }
            return Err(CommandError::misuse("--cwd", "is for AGENT-transcripts"));
        }
        if self.cwd.is_empty() {
            let rule = "must name the folder whose Sessions are sent";
            return Err(CommandError::misuse("--cwd", rule));
        }
        let folders: Result<Vec<_>, _> =
            self.cwd.iter().map(|folder| hook_folder(folder)).collect();
        let url = self.service.repeated();
        Ok(Some(format!("{}{url}", folders?.join(" "))))
    }
}

fn hook_folder(folder: &Path) -> Result<String, CommandError> {
    let folder = std::path::absolute(folder)?;
    let folder = folder
        .to_str()
        .ok_or_else(|| CommandError::misuse("--cwd", "must be a path that JSON can contain"))?;
    Ok(format!("--cwd {}", quote(folder)))
}
