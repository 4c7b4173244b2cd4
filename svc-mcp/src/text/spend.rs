//! A spend report as lines.

use svc_model::endpoint::CohortSpendReport;
use svc_model::json::Object;
use svc_model::spend::{SpendFigure, SpendReport};
use svc_view::{
    AT_LIST_PRICE, NO_EVIDENCE, SHELL, dollars, period, spend_outcomes, spend_unit, spend_verdicts,
};

use super::{DossierText, WHOLE_CHARACTERS_MAX, dossier, one_line, typed};

/// Writes what calls cost, and what the spend became.
pub(crate) fn spend(body: &Object) -> DossierText {
    let next = "For less, call again with a lower limit or fewer since_days.";
    let written = typed::<CohortSpendReport>(body).map(|report| written(&report));
    let short = written.filter(|text| text.chars().count() <= WHOLE_CHARACTERS_MAX);
    (short.unwrap_or_else(|| dossier(body, next)), None)
}

fn written(spend: &SpendReport) -> String {
    let (scope, report) = (&spend.scope, &spend.report);
    let mut lines = vec![format!(
        "Spend {}, {AT_LIST_PRICE}: {}",
        period(scope.cohort_start, scope.cohort_end),
        figure(&report.total)
    )];
    lines.push(format!("By {}:", spend_unit(&report.by)));
    for row in &report.rows {
        let name = one_line(&SHELL.spend_key(&row.key));
        let attributed = match row.attributed_items {
            Some(items) => format!(", {items} attributed to the commits"),
            None => String::new(),
        };
        lines.push(format!("- {name}: {}{attributed}", figure(&row.figure)));
    }
    if let Some(others) = &report.other_rows {
        lines.push(format!(
            "- {} others: {}",
            others.rows,
            figure(&others.figure)
        ));
    }
    if let Some(outcomes) = &report.outcomes {
        lines.push("What it became:".to_owned());
        let outcomes = spend_outcomes(outcomes).into_iter();
        let some = outcomes.filter(|(_, of)| of.figure.items() > 0);
        lines.extend(some.map(|(name, of)| format!("- {name}: {}", figure(&of.figure))));
        lines.push(NO_EVIDENCE.to_owned());
    }
    if let Some(ci) = &report.ci {
        lines.push("CI of the commits:".to_owned());
        let verdicts = spend_verdicts(ci).into_iter();
        lines.extend(verdicts.map(|(name, of)| format!("- {name}: {}", figure(of))));
    }
    lines.push(one_line(&SHELL.spend_basis(report)));
    lines.extend(SHELL.spend_notes(report).iter().map(|note| one_line(note)));
    lines.join("\n")
}

fn figure(figure: &SpendFigure) -> String {
    let cost = if figure.captured.items + figure.derived.items == 0 && figure.unpriced_items > 0 {
        "cost unknown".to_owned()
    } else {
        format!(
            "{} ({} captured, {} derived)",
            dollars(figure.cost_usd_micros),
            dollars(figure.captured.cost_usd_micros),
            dollars(figure.derived.cost_usd_micros)
        )
    };
    let mut said = vec![cost, SHELL.calls_of_models(figure.calls)];
    if figure.receipts_only > 0 {
        said.push(format!("{} known by receipts only", figure.receipts_only));
    }
    if figure.unpriced_items > 0 {
        said.push(format!("{} not priced", figure.unpriced_items));
    }
    said.join(", ")
}
