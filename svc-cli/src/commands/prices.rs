//! Price tables of the service.

pub(super) mod check;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use svc_model::endpoint::{PriceLoad, PriceRates, PriceTables};
use svc_model::limit::BODY_BYTES_MAX;
use svc_model::open::Open;
use svc_model::query::ModelName;
use svc_model::request::NoParameters;
use svc_model::spend::{
    LoadedPrices, ModelPrice, ModelPriceRequest, ModelProviderName, PriceFileRequest,
    PriceTableLabel, PriceTableList, PriceTableName, TokenRate, TokenRates, UnpricedReason,
};

use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, clock, escape};

/// The digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;

#[derive(Debug, Subcommand)]
pub(crate) enum Prices {
    /// Load a file of prices, which is then in force.
    ///
    /// The file is LiteLLM's list of models (model_prices_and_context_window.json) or the document of
    /// models.dev (api.json). Earlier tables are kept: a report as of an earlier time is made with the
    /// table of that time.
    Load(Load),
    /// List the price tables, newest first. The first is in force.
    List(List),
    /// Show what the table in force says of a model.
    Show(Show),
    /// List the models of the last 30 days that the table in force lacks.
    Check(check::Check),
}

impl Prices {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Load(load) => load.run(output),
            Self::List(list) => list.run(output),
            Self::Show(show) => show.run(output),
            Self::Check(check) => check.run(output),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// The file.
    file: PathBuf,

    /// A name for the table; by default the name of the file.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Load {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = PriceFileRequest {
            name: Some(self.label()?),
            file: read(&self.file)?,
        };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async { Ok(client.call_raw::<PriceLoad>(&request).await?) })?;
        output.reply(&reply, render_loaded)?;
        output.next(&self.service, &["svc prices list".to_owned()]);
        Ok(())
    }

    fn label(&self) -> Result<PriceTableLabel, CommandError> {
        let of_file = self.file.file_name().unwrap_or_default().to_string_lossy();
        let name = self.name.as_deref().unwrap_or(&of_file);
        PriceTableLabel::new(name).map_err(|rule| CommandError::argument("--name", rule))
    }
}

/// Reads a file that may be sent.
fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let refused = |reason: String| {
        let name = path.display();
        CommandError::refused("io", format!("{name} cannot be read: {reason}"))
    };
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(BODY_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| refused(error.to_string()))?;
    if bytes.len() > BODY_BYTES_MAX {
        return Err(refused("it has more than 25 MiB".to_owned()));
    }
    Ok(bytes)
}

fn render_loaded(loaded: &LoadedPrices) -> String {
    let LoadedPrices {
        models, ignored, ..
    } = loaded;
    let (format, digest) = (&loaded.format, short(&loaded.digest));
    let what = format!(
        "{models} models, {ignored} other entries, {format} table {} (sha256 {digest})",
        loaded.price_table_id
    );
    if loaded.new {
        format!("loaded: {what}\n")
    } else {
        let since = loaded.loaded_at;
        format!("in force since {since}, nothing was loaded: {what}\n")
    }
}

/// Returns the beginning of a digest.
fn short(digest: &str) -> String {
    escape(digest.get(..DIGEST_DIGITS).unwrap_or(digest))
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    service: ServiceOptions,
}

impl List {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<PriceTables>(&NoParameters).await?) })?;
        output.reply(&reply, render_list)?;
        if reply.value.tables.is_empty() {
            output.next(&self.service, &["svc prices load FILE".to_owned()]);
        }
        Ok(())
    }
}

fn render_list(list: &PriceTableList) -> String {
    if list.tables.is_empty() {
        return "no price table was loaded\n".to_owned();
    }
    let mut table =
        Table::new(["loaded", "name", "format", "models", "other", "sha256"]).numbers(&[3, 4]);
    for loaded in &list.tables {
        table.row([
            clock(loaded.loaded_at),
            escape(&loaded.name),
            loaded.format.to_string(),
            loaded.models.to_string(),
            loaded.ignored.to_string(),
            short(&loaded.digest),
        ]);
    }
    table.render()
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The model, exactly as it is captured.
    model: String,

    /// The provider of the model, as it is captured; without one, as for a call that names none.
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Show {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = self.request()?;
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<PriceRates>(&request).await?) })?;
        output.reply(&reply, render_price)
    }

    fn request(&self) -> Result<ModelPriceRequest, CommandError> {
        let model = ModelName::new(&self.model)
            .ok_or_else(|| CommandError::argument("the model", "must have 1 to 1024 bytes"))?;
        let provider = self.provider.as_deref().map(ModelProviderName::new);
        let provider = provider
            .transpose()
            .map_err(|error| CommandError::argument("--provider", error.message()))?;
        Ok(ModelPriceRequest {
            provider,
            ..ModelPriceRequest::new(model)
        })
    }
}

fn render_price(price: &ModelPrice) -> String {
    let provider = price.model_provider.as_deref().map(escape);
    let of_provider = provider.map_or_else(String::new, |provider| format!("{provider} "));
    let model = format!("{of_provider}{}", escape(&price.model));
    let table = price.price_table.as_ref().map(table_line);
    let table = table.unwrap_or_default();
    match (&price.rates, &price.unpriced) {
        (Some(rates), _) => format!(
            "{model}, USD for a million tokens, at list price\n{}{table}",
            rates_table(rates)
        ),
        (None, Some(reason)) => {
            format!("the price of {model} is unknown: {}\n{table}", why(reason))
        }
        (None, None) => format!("the price of {model} is unknown\n{table}"),
    }
}

fn table_line(table: &PriceTableName) -> String {
    let name = escape(&table.name);
    let (format, loaded_at) = (&table.format, table.loaded_at);
    let digest = short(&table.digest);
    format!("{format} table {name} of {loaded_at} (sha256 {digest})\n")
}

/// Says why a model has no price.
fn why(reason: &Open<UnpricedReason>) -> String {
    let sentence = match reason {
        Open::Known(UnpricedReason::NoPriceTable) => "no price table was loaded",
        Open::Known(UnpricedReason::ModelNotInTable) => "the table has no such model",
        Open::Known(UnpricedReason::AmbiguousPrice) => {
            "providers of the table have it at different prices; name one with --provider"
        }
        Open::Known(UnpricedReason::PriceFormUnknown) => {
            "the table gives its price in a form that is not read"
        }
        other => return other.to_string(),
    };
    format!("{sentence} ({reason})")
}

fn rates_table(rates: &TokenRates) -> String {
    let mut table = Table::new(["tokens", "price", "of calls with more input than"]).numbers(&[1]);
    let kinds = [
        ("input", Some(&rates.input)),
        ("cache read", Some(&rates.cache_read)),
        ("cache write, 5 minutes", Some(&rates.cache_write_5m)),
        ("cache write, 1 hour", rates.cache_write_1h.as_ref()),
        ("output", Some(&rates.output)),
        ("reasoning", Some(&rates.reasoning)),
    ];
    for (kind, rate) in kinds {
        match rate {
            Some(rate) => add_rate(&mut table, kind, rate),
            None => table.row([kind.to_owned(), "unknown".to_owned(), String::new()]),
        }
    }
    table.render()
}

fn add_rate(table: &mut Table, kind: &str, rate: &TokenRate) {
    table.row([
        kind.to_owned(),
        escape(&rate.usd_per_million),
        String::new(),
    ]);
    for above in &rate.above {
        table.row([
            kind.to_owned(),
            escape(&above.usd_per_million),
            format!("{} tokens", above.input_tokens),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    const TABLE: &str = r#""price_table_id":"00000000-0000-0000-0000-000000000001","format":"litellm",
        "digest":"9f0c0000000000000000000000000000000000000000000000000000000000aa",
        "loaded_at":"2026-11-02T00:00:00Z""#;

    #[test]
    fn what_was_loaded_is_said() {
        for (new, expected) in [
            (
                true,
                "loaded: 34 models, 6 other entries, litellm table \
                 00000000-0000-0000-0000-000000000001 (sha256 9f0c00000000)\n",
            ),
            (
                false,
                "in force since 2026-11-02T00:00:00Z, nothing was loaded: 34 models, 6 other entries, \
                 litellm table 00000000-0000-0000-0000-000000000001 (sha256 9f0c00000000)\n",
            ),
        ] {
            let text = format!(r#"{{{TABLE},"models":34,"ignored":6,"new":{new}}}"#);
            let loaded = json::from_slice(text.as_bytes()).unwrap();
            assert_eq!(render_loaded(&loaded), expected);
        }
    }

    #[test]
    fn every_threshold_of_a_rate_has_a_line() {
        let plain = r#"{"usd_per_million":"2","above":[]}"#;
        let text = format!(
            r#"{{"price_table":{{{TABLE},"name":"p.json"}},"model":"m","model_provider":"x","unpriced":null,
            "rates":{{"input":{{"usd_per_million":"1.25","above":[{{"input_tokens":200000,"usd_per_million":"2.5"}}]}},
                "cache_read":{plain},"cache_write_5m":{plain},"cache_write_1h":null,"output":{plain},"reasoning":{plain}}}}}"#
        );
        let price = json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(
            render_price(&price),
            "x m, USD for a million tokens, at list price\n\
             tokens                    price  of calls with more input than\n\
             input                      1.25\n\
             input                       2.5  200000 tokens\n\
             cache read                    2\n\
             cache write, 5 minutes        2\n\
             cache write, 1 hour     unknown\n\
             output                        2\n\
             reasoning                     2\n\
             litellm table p.json of 2026-11-02T00:00:00Z (sha256 9f0c00000000)\n"
        );
    }

    #[test]
    fn an_unknown_price_has_its_reason() {
        let text = r#"{"price_table":null,"model":"m","model_provider":null,"rates":null,"unpriced":"no_price_table"}"#;
        let price = json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(
            render_price(&price),
            "the price of m is unknown: no price table was loaded (no_price_table)\n"
        );
    }
}
