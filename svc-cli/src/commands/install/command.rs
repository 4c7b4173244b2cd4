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
    /// The source of evidence; or, as mcp-AGENT, the agent that may ask for it.
    #[arg(value_parser = source_parser())]
    source: Source,

    /// Only print: the hooks of git-hooks too. Everything else is printed anyway.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A snippet, as a program reads it.
#[derive(Debug, Serialize)]
struct Printed {
    source: &'static str,
    place: &'static str,
    language: &'static str,
    snippet: String,
    notes: &'static [&'static str],
    /// What goes into AGENTS.md or CLAUDE.md, for an agent that may ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    paragraph: Option<&'static str>,
}

/// What is installed.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// What a person adds to a configuration.
    Snippet(Snippet),
    /// The hooks of the repository that the program is called in.
    GitHooks,
}

const GIT_HOOKS: &str = "git-hooks";

fn source_parser() -> impl clap::builder::TypedValueParser<Value = Source> {
    let snippets = snippet::ALL
        .iter()
        .chain(snippet::AGENTS)
        .map(|snippet| snippet.source);
    PossibleValuesParser::new(snippets.chain([GIT_HOOKS])).try_map(|source| match &*source {
        GIT_HOOKS => Ok(Source::GitHooks),
        source => snippet::of(source)
            .map(Source::Snippet)
            .ok_or("no such source"),
    })
}

impl Install {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let snippet = match self.source {
            Source::Snippet(snippet) => snippet,
            Source::GitHooks if self.print => return git_hooks::print(output),
            Source::GitHooks => return git_hooks::install(output),
        };
        let Snippet {
            source,
            place,
            language,
            notes,
            ..
        } = snippet;
        let paragraph = snippet.asks().then_some(snippet::PARAGRAPH);
        let printed = Printed {
            source,
            place,
            language,
            snippet: snippet.text(&service::checked_url(&self.service)?),
            notes,
            paragraph,
        };
        output.value(&printed, |printed| match printed.paragraph {
            None => printed.snippet.clone(),
            Some(paragraph) => format!("{}\n{paragraph}", printed.snippet),
        })?;
        if paragraph.is_some() {
            output.note(&format!(
                "the first line goes into {place}, the rest into AGENTS.md or CLAUDE.md"
            ));
        } else {
            output.note(&format!("it goes into {place}"));
        }
        for note in notes {
            output.note(note);
        }
        Ok(())
    }
}
