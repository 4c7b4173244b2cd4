use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;

use super::snippet::{self, Snippet};
use crate::commands::{git_hooks, service};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The source of evidence; or mcp-AGENT for an agent that reads it.
    #[arg(value_parser = source_parser())]
    source: InstallSource,

    /// For claude-code: also send what was asked and answered, which makes model calls of it.
    #[arg(long)]
    calls: bool,

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
            snippet: snippet.text(url),
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
}
