use clap::Args;
use serde::Serialize;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::limit::SPEND_ROWS_MAX;
use svc_model::open::Open;
use svc_model::query::ModelName;
use svc_model::reports::ReportScope;
use svc_model::spend::{
    ModelPriceRequest, ModelProviderName, SpendKey, SpendRequest, SpendRow, SpendRowLimit,
    UnpricedReason,
};
use svc_view::before;

use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape};

/// The days whose calls are looked at, in microseconds.
const LENGTH: i64 = 30 * 24 * 60 * 60 * 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    service: ServiceOptions,
}

/// A model that the table in force does not have.
#[derive(Debug, Serialize)]
struct Absent {
    model_provider: Option<String>,
    model: String,
    /// The calls of it that have no price.
    items: u64,
}

impl Check {
    pub(super) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let end = Clock::system().now();
        let start = before(end, LENGTH).map_err(|rule| CommandError::argument("the time", rule))?;
        let scope = ReportScope::new(start..end, end)
            .map_err(|fault| CommandError::argument("the time", fault.message()))?;
        let client = service::client(&self.service)?;
        let absent = service::block_on(async { Ok(absent(&client, scope).await?) })?;
        output.value(&absent, |absent| render(absent))
    }
}

async fn absent(client: &Client, scope: ReportScope) -> Result<Vec<Absent>, svc_client::Error> {
    let request = SpendRequest {
        outcomes: false,
        limit: SpendRowLimit::new(SPEND_ROWS_MAX).unwrap_or_default(),
        ..SpendRequest::new(scope)
    };
    let report = client.spend_report(&request).await?.report;
    let mut all = Vec::new();
    for row in report.rows {
        let Some((absent, request)) = unpriced(row) else {
            continue;
        };
        let price = client.model_price(&request).await?;
        if price.unpriced == Some(Open::Known(UnpricedReason::ModelNotInTable)) {
            all.push(absent);
        }
    }
    all.sort_by_key(|absent| std::cmp::Reverse(absent.items));
    Ok(all)
}

/// Returns the model of a row with calls without a price, and the question for its rates.
fn unpriced(row: SpendRow) -> Option<(Absent, ModelPriceRequest)> {
    let items = row.figure.unpriced_items;
    let SpendKey::Model {
        model_provider,
        model,
    } = row.key
    else {
        return None;
    };
    let provider = model_provider.as_deref().map(ModelProviderName::new);
    let request = ModelPriceRequest {
        provider: provider.transpose().ok()?,
        ..ModelPriceRequest::new(ModelName::new(&model)?)
    };
    let absent = Absent {
        model_provider,
        model,
        items,
    };
    (items > 0).then_some((absent, request))
}

fn render(absent: &[Absent]) -> String {
    if absent.is_empty() {
        return "the table in force has every model of the last 30 days that needs a price\n"
            .to_owned();
    }
    let mut table = Table::new(["provider", "model", "calls without a price"]).numbers(&[2]);
    for absent in absent {
        let provider = absent.model_provider.as_deref().map(escape);
        table.row([
            provider.unwrap_or_else(|| "-".to_owned()),
            escape(&absent.model),
            absent.items.to_string(),
        ]);
    }
    table.render()
}
