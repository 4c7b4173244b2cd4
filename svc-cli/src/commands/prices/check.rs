use clap::Args;
use serde::Serialize;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::limit::SPEND_ROWS_MAX;
use svc_model::open::Open;
use svc_model::query::ModelName;
use svc_model::reports::ReportScope;
use svc_model::spend::{
    CohortSpend, ModelPriceRequest, ModelProviderName, SpendKey, SpendRequest, SpendRow,
    SpendRowLimit, UnpricedReason,
};
use svc_model::time::Instant;
use svc_view::before;

use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape};

/// The days whose calls are looked at.
const DAYS: i64 = 30;
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    service: ServiceOptions,
}

/// A model that the table in force does not have.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct AbsentModel {
    model_provider: Option<String>,
    pub(in crate::commands) model: String,
    /// The calls of it that have no price.
    pub(in crate::commands) items: u64,
}

#[cfg(test)]
impl AbsentModel {
    /// Returns a model without a provider, with one call.
    pub(in crate::commands) fn of(model: &str) -> Self {
        Self {
            model_provider: None,
            model: model.to_owned(),
            items: 1,
        }
    }
}

/// What the calls of the last days cost.
pub(in crate::commands) struct RecentSpend {
    pub(in crate::commands) report: CohortSpend,
    /// The models of calls without a price that the table in force does not have, those with the
    /// most of such calls first. Without a table, these are all.
    pub(in crate::commands) absent: Vec<AbsentModel>,
}

impl Check {
    pub(super) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let scope = last_days(DAYS, Clock::system().now())?;
        let client = service::client(&self.service)?;
        let recent = service::block_on(async { Ok(recent_spend(&client, scope).await?) })?;
        let has_table = recent.report.price_table.is_some();
        output.value(&recent.absent, |absent| render(absent, has_table))?;
        if !recent.absent.is_empty() {
            output.next(&self.service, &["svc prices load FILE".to_owned()]);
        }
        Ok(())
    }
}

/// Returns the calls of the days before a moment.
pub(in crate::commands) fn last_days(days: i64, end: Instant) -> Result<ReportScope, CommandError> {
    let start = before(end, days.saturating_mul(DAY_MICROSECONDS))
        .map_err(|rule| CommandError::argument("the time", rule))?;
    ReportScope::new(start..end, end)
        .map_err(|fault| CommandError::argument("the time", fault.message()))
}

/// Asks what calls cost, and which models the table in force lacks.
pub(in crate::commands) async fn recent_spend(
    client: &Client,
    scope: ReportScope,
) -> Result<RecentSpend, svc_client::Error> {
    let request = SpendRequest {
        outcomes: false,
        limit: SpendRowLimit::new(SPEND_ROWS_MAX).unwrap_or_default(),
        ..SpendRequest::new(scope)
    };
    let report = client.spend_report(&request).await?.report;
    let reasons = [
        UnpricedReason::NoPriceTable,
        UnpricedReason::ModelNotInTable,
    ];
    let mut absent = Vec::new();
    if reasons
        .iter()
        .any(|reason| report.unpriced.get(*reason) > 0)
    {
        for (model, request) in report.rows.iter().filter_map(unpriced) {
            let price = client.model_price(&request).await?;
            if reasons
                .map(|reason| Some(Open::Known(reason)))
                .contains(&price.unpriced)
            {
                absent.push(model);
            }
        }
    }
    absent.sort_by_key(|absent| std::cmp::Reverse(absent.items));
    Ok(RecentSpend { report, absent })
}

/// Returns the model of a row with calls without a price, and the question for its rates.
fn unpriced(row: &SpendRow) -> Option<(AbsentModel, ModelPriceRequest)> {
    let items = row.figure.unpriced_items;
    let SpendKey::Model {
        model_provider,
        model,
    } = &row.key
    else {
        return None;
    };
    let provider = model_provider.as_deref().map(ModelProviderName::new);
    let request = ModelPriceRequest {
        provider: provider.transpose().ok()?,
        ..ModelPriceRequest::new(ModelName::new(model)?)
    };
    let absent = AbsentModel {
        model_provider: model_provider.clone(),
        model: model.clone(),
        items,
    };
    (items > 0).then_some((absent, request))
}

fn render(absent: &[AbsentModel], has_table: bool) -> String {
    let without = if has_table {
        ""
    } else {
        "no price table was loaded\n"
    };
    if absent.is_empty() {
        let all = if has_table {
            "the table in force has every model of the last 30 days that needs a price\n"
        } else {
            "no call of the last 30 days needs one\n"
        };
        return format!("{without}{all}");
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
    format!("{without}{}", table.render())
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    fn absent(model_provider: Option<&str>, model: &str, items: u64) -> AbsentModel {
        AbsentModel {
            model_provider: model_provider.map(str::to_owned),
            model: model.to_owned(),
            items,
        }
    }

    #[test]
    fn without_a_table_no_table_is_said_to_have_every_model() {
        assert_eq!(
            render(&[], true),
            "the table in force has every model of the last 30 days that needs a price\n"
        );
        assert_eq!(
            render(&[], false),
            "no price table was loaded\nno call of the last 30 days needs one\n"
        );
        let models = [absent(Some("openai"), "m\u{1b}", 12), absent(None, "n", 1)];
        let table = "provider  model    calls without a price\n\
                     openai    m\\u{1b}                     12\n\
                     -         n                            1\n";
        assert_eq!(render(&models, true), table);
        assert_eq!(
            render(&models, false),
            format!("no price table was loaded\n{table}")
        );
    }

    #[test]
    fn only_a_model_with_calls_without_a_price_is_asked_for() {
        let row = |key: &str, unpriced: u64| -> SpendRow {
            let none = r#"{"items":0,"cost_usd_micros":0}"#;
            let text = format!(
                r#"{{"key":{key},"calls":3,"receipts_only":0,"captured":{none},"derived":{none},
                "unpriced_items":{unpriced},"cost_usd_micros":0,"input_tokens_uncached":0,
                "cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":0,
                "items_without_counts":0}}"#
            );
            json::from_slice(text.as_bytes()).unwrap()
        };
        let model = r#"{"model_provider":"openai","model":"m"}"#;
        let (found, request) = unpriced(&row(model, 2)).unwrap();
        assert_eq!(found, absent(Some("openai"), "m", 2));
        assert_eq!(request.model.as_str(), "m");
        assert_eq!(request.provider.unwrap().as_str(), "openai");
        assert!(unpriced(&row(model, 0)).is_none());
        assert!(unpriced(&row(r#"{"row":"no_model"}"#, 2)).is_none());
    }
}
