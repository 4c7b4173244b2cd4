use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;

use super::snippet::{self, Snippet};
use crate::cli::ServiceOptions;
use crate::commands::service;
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The source of evidence.
    #[arg(value_parser = source_parser())]
    source: Snippet,

    /// Print what is to be added. No file is changed.
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
}

fn source_parser() -> impl clap::builder::TypedValueParser<Value = Snippet> {
    PossibleValuesParser::new(snippet::ALL.iter().map(|snippet| snippet.source))
        .try_map(|source| snippet::of(&source).ok_or("no such source"))
}

impl Install {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let Snippet {
            source,
            place,
            language,
            notes,
            ..
        } = self.source;
        if !self.print {
            return Err(CommandError::refused(
                "print_only",
                format!("{source} is told by {place}, and svc changes no file of yours"),
            )
            .hint(format!(
                "see what is to be added there: svc install {source} --print"
            )));
        }
        let printed = Printed {
            source,
            place,
            language,
            snippet: self.source.text(&service::checked_url(&self.service)?),
            notes,
        };
        output.value(&printed, |printed| printed.snippet.clone())?;
        output.note(&format!("it goes into {place}"));
        for note in notes {
            output.note(note);
        }
        Ok(())
    }
}
