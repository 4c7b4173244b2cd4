//! A comparison of two models.

use maud::{Markup, html};
use svc_engine::derive::comparison::{self, Cases};
use svc_model::endpoint::ModelOutcomesReport;
use svc_model::problem::Problem;
use svc_model::reports::{
    Comparison, ModelNonInferiority, ModelOutcomes, ModelReport, ModelRow, Unobservable,
};
use svc_view::{CONSOLE, LOOK_ONCE, NOT_SHOWN, interval, known, least_difference, unknown_of};

use super::caveat;
use super::period::{self, Period, until_field};
use crate::console::layout::{Column, Field, InputKind, Page, Section, narrowing, note, table};
use crate::console::link::Link;
use crate::console::plot::{self, RateDifference, Share};
use crate::console::text::{NONE, inert, whole};
use crate::console::visit::{Visit, invalid};

/// Common margins. Any other may be entered.
const MARGINS: [&str; 4] = ["0.02", "0.05", "0.1", "0.2"];

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let outcomes = outcomes(&visit).await;
    let caveat = caveat::of_mirrors(&visit).await?;
    let rows = outcomes
        .as_ref()
        .map(|(_, outcomes)| &outcomes.report.rows[..]);
    let form = form(&visit, rows.unwrap_or_default());
    let shown = outcomes.and_then(|(period, outcomes)| {
        let asked = ComparisonQuery::read(&visit)?;
        Ok(html! {
            (period.describe(&outcomes.scope))
            (caveat)
            (caveat::of_lost_mirrors(outcomes.report.lost_mirrors))
            (shown(&asked, &outcomes.report))
        })
    });
    let title = "Comparison of two models";
    Ok(Page::of(Section::Comparison, title, &form, shown))
}

async fn outcomes(visit: &Visit) -> Result<(Period, ModelOutcomes), Problem> {
    let period = Period::read(visit)?;
    let ask = visit.ask::<ModelOutcomesReport>(period.request()?);
    let outcomes = ask.await?;
    Ok((period, outcomes))
}

/// The models to compare, and how much worse the second may be.
struct ComparisonQuery<'v> {
    model_a: Option<&'v str>,
    model_b: Option<&'v str>,
    margin: Option<f64>,
}

impl<'v> ComparisonQuery<'v> {
    fn read(visit: &'v Visit) -> Result<Self, Problem> {
        let (model_a, model_b) = (visit.given("model_a"), visit.given("model_b"));
        if model_a.is_some() && model_a == model_b {
            return Err(invalid("model_b", "must be another model than model A"));
        }
        let margin = visit.given("margin").map(|text| {
            let margin: Option<f64> = text.trim().parse().ok();
            margin.filter(|margin| *margin > 0.0 && *margin <= 1.0)
        });
        if margin == Some(None) {
            return Err(invalid("margin", "must be greater than 0, and at most 1"));
        }
        Ok(Self {
            model_a,
            model_b,
            margin: margin.flatten(),
        })
    }
}

fn form(visit: &Visit, rows: &[ModelRow]) -> Markup {
    let models = |name| Models::new(rows, visit.given(name));
    let (models_a, models_b) = (models("model_a"), models("model_b"));
    let (choices_a, choices_b) = (models_a.choices(), models_b.choices());
    let margins = MARGINS.map(str::to_owned);
    let fields = [
        Field {
            label: "Model A",
            name: "model_a",
            value: visit.given("model_a").unwrap_or_default(),
            kind: InputKind::One(&choices_a),
        },
        Field {
            label: "Model B",
            name: "model_b",
            value: visit.given("model_b").unwrap_or_default(),
            kind: InputKind::One(&choices_b),
        },
        Field {
            label: "B may be worse by",
            name: "margin",
            value: visit.given("margin").unwrap_or_default(),
            kind: InputKind::Known(&margins),
        },
        period::days_field(visit),
        until_field(visit),
    ];
    narrowing("/console/comparison", "Choose two models", &fields)
}

/// The models to choose from: those of the report, and those that are already chosen.
struct Models(Vec<(String, String)>);

impl Models {
    fn new(rows: &[ModelRow], chosen: Option<&str>) -> Self {
        let known = rows.iter().map(|row| row.model.as_str());
        let absent = chosen.filter(|chosen| !rows.iter().any(|row| row.model == *chosen));
        let shown = |model: &str| (model.to_owned(), inert(model));
        Self(known.chain(absent).map(shown).collect())
    }

    fn choices(&self) -> Vec<(&str, &str)> {
        let models = self.0.iter();
        let models = models.map(|(value, name)| (value.as_str(), name.as_str()));
        std::iter::once(("", "choose")).chain(models).collect()
    }
}

fn shown(asked: &ComparisonQuery<'_>, report: &ModelReport) -> Markup {
    let rows = &report.rows[..];
    let (Some(a), Some(b)) = (asked.model_a, asked.model_b) else {
        return choose(rows);
    };
    let row = |model: &str| rows.iter().find(|row| row.model == model);
    let absent: Vec<&str> = [a, b]
        .into_iter()
        .filter(|model| row(model).is_none())
        .collect();
    let (unknown, cases) = (unknown_of(rows, [a, b]), Cases::Observable);
    let why = unknown.map(|(_, why)| why);
    let compared = comparison::compare(rows, a, b, cases);
    let margin = asked.margin;
    let non_inferiority =
        margin.map(|margin| comparison::non_inferiority(rows, a, b, margin, cases));
    html! {
        @for model in absent { p { "No call of " (inert(model)) " was observed in these days." } }
        (rates(&compared, row(a), row(b)))
        @if let Some((model, why)) = unknown {
            (note(&why.sentence(&format!("attribution_rate of {}", inert(model)))))
        }
        (differences(&compared, why))
        (likely(&compared, why))
        @if let Some(tests) = &non_inferiority { (worse_by(tests, why)) }
    }
}

/// Shows a form for choosing two models.
fn choose(rows: &[ModelRow]) -> Markup {
    let of_a = |row: &ModelRow| Link::to("/console/comparison").with("model_a", &row.model);
    html! {
        @if rows.len() < 2 {
            p { "Calls of fewer than two models were observed in these days: there is nothing to compare." }
        } @else {
            p { "Choose two models. The report has these, with their calls:" }
            ul {
                @for row in rows {
                    li { a href=(of_a(row)) { (inert(&row.model)) } " " (whole(row.completions)) }
                }
            }
        }
        (note("With a number in “B may be worse by” it is also tested whether B is at most so much worse \
               than A."))
    }
}

fn rates(compared: &Comparison, a: Option<&ModelRow>, b: Option<&ModelRow>) -> Markup {
    let sides = [("A", &compared.model_a, a), ("B", &compared.model_b, b)];
    let sides = sides.map(|(side, model, row)| (format!("{side}: {}", inert(model)), row));
    let passed = sides.clone().map(|(label, row)| {
        let (part, whole) = row.map_or((0, 0), |row| (row.ci_passed, row.ci_linked));
        Share::new(label, part, whole)
    });
    let attributed = sides.map(|(label, row)| Share::attributed(label, row));
    let rows = || a.into_iter().chain(b);
    html! {
        section aria-labelledby="rates" {
            h2 #rates { "Rates" }
            (plot::shares("ci_pass_rate: commits that CI passed, of those with a verdict, with 95 % intervals", &passed))
            (plot::shares("attribution_rate: calls whose output was pushed, of those whose content is kept and whose commits could be seen, with 95 % intervals", &attributed))
            (caveat::of_unobservable_calls(rows()))
            (caveat::of_skipped_calls(rows()))
            (caveat::of_unjudged_calls(rows()))
            (note("attribution_rate is a lower bound on retention. Models that do different work are not \
                   made alike by a test."))
        }
    }
}

fn differences(compared: &Comparison, why: Option<Unobservable>) -> Markup {
    let tests = known([&compared.ci_pass_rate, &compared.attribution_rate], why);
    let drawn: Vec<RateDifference> = tests
        .clone()
        .map(|(metric, test)| RateDifference {
            label: metric.to_owned(),
            at: test.difference,
            interval: test.interval(),
            threshold: None,
            text: match (test.difference, interval(test)) {
                (Some(difference), Some(interval)) => format!("{difference:+.4} ({interval})"),
                (Some(difference), None) => {
                    format!("{difference:+.4} (no interval: degenerate_se)")
                }
                _ => "no difference without cases of both".to_owned(),
            },
        })
        .collect();
    let rows = tests.clone().map(|(metric, test)| {
        vec![
            html! { (metric) },
            html! { (CONSOLE.decimal(test.difference)) },
            html! { (interval(test).unwrap_or_else(|| NONE.to_owned())) },
            html! { (CONSOLE.decimal(test.cohens_h)) },
            html! { (CONSOLE.decimal(test.z_stat)) },
            html! { (CONSOLE.decimal(test.p_value)) },
            html! { (CONSOLE.significance(test)) },
            html! { (whole(test.n_a)) },
            html! { (whole(test.n_b)) },
            html! { (reliability(test.insufficient_data, test.small_n, test.interval().is_none())) },
        ]
    });
    html! {
        section aria-labelledby="differences" {
            h2 #differences { "A less B" }
            (plot::differences("The rate of A less that of B, with the 95 % interval of the difference", &drawn))
            (table("Tests of the differences", &[
                Column::Text("metric"), Column::Number("A − B"), Column::Number("95 % interval"),
                Column::Number("Cohen's h"), Column::Number("z"), Column::Number("p"),
                Column::Text("significant"), Column::Number("cases of A"), Column::Number("cases of B"),
                Column::Text("note"),
            ], rows.collect()))
            (note(&format!(
                "Significant: corrected when p < {} (two metrics are tested), raw only when < {}. \
                 {LOOK_ONCE}",
                compared.bonferroni_alpha, compared.alpha
            )))
            ul {
                @for (metric, test) in tests {
                    @if let Some(least) = least_difference(test) { li { (metric) ": " (least) } }
                }
            }
        }
    }
}

fn likely(compared: &Comparison, why: Option<Unobservable>) -> Markup {
    let posteriors = [
        &compared.bayesian_ci_pass_rate,
        &compared.bayesian_attribution_rate,
    ];
    let posteriors = known(posteriors, why);
    let known: Vec<_> = posteriors
        .filter_map(|(metric, posteriors)| {
            let ends = posteriors.ci_low.zip(posteriors.ci_high)?;
            Some((metric, posteriors, posteriors.probability_a_gt_b?, ends))
        })
        .collect();
    html! {
        @if !known.is_empty() {
            section aria-labelledby="likely" {
                h2 #likely { "How likely A has the higher rate" }
                ul {
                    @for (metric, posteriors, probability, (low, high)) in known {
                        li {
                            (metric) ": " (CONSOLE.percent(probability))
                            " (A − B is between " (format!("{low:+.4}")) " and "
                            (format!("{high:+.4}")) " with 95 % probability; cases: "
                            (whole(posteriors.n_a)) " and " (whole(posteriors.n_b)) ")"
                        }
                    }
                }
                (note("Based on these counts alone."))
            }
        }
    }
}

/// Describes whether B is worse than A by at most the margin.
fn worse_by(tests: &ModelNonInferiority, why: Option<Unobservable>) -> Markup {
    let margin = tests.ci_pass_rate.margin;
    let tests = known([&tests.ci_pass_rate, &tests.attribution_rate], why);
    let drawn: Vec<RateDifference> = tests
        .clone()
        .map(|(metric, test)| RateDifference {
            label: metric.to_owned(),
            at: test.point_estimate,
            interval: test.lower_bound().zip(test.point_estimate),
            threshold: Some(-margin),
            text: match (test.point_estimate, test.lower_bound()) {
                (Some(estimate), Some(bound)) => {
                    format!(
                        "{estimate:+.4}, not below {bound:+.4}: {}",
                        CONSOLE.answer(test)
                    )
                }
                (Some(estimate), None) => format!("{estimate:+.4} (no bound: degenerate_se)"),
                _ => "not shown: no difference without cases of both".to_owned(),
            },
        })
        .collect();
    let rows = tests.map(|(metric, test)| {
        vec![
            html! { (metric) },
            html! { (CONSOLE.decimal(test.point_estimate)) },
            html! { (CONSOLE.decimal(test.lower_bound())) },
            html! { (CONSOLE.decimal(Some(-test.margin))) },
            html! { (CONSOLE.answer(test)) },
            html! { (whole(test.n_a)) },
            html! { (whole(test.n_b)) },
            html! { (reliability(test.insufficient_data, test.small_n, test.lower_bound().is_none())) },
        ]
    });
    html! {
        section aria-labelledby="worse" {
            h2 #worse { "Is B at most " (margin) " worse than A?" }
            (plot::differences("The rate of B less that of A, down to its lower bound; dashes where B would be too much worse", &drawn))
            (table("Tests of non-inferiority", &[
                Column::Text("metric"), Column::Number("B − A"), Column::Number("lower bound"),
                Column::Number("threshold"), Column::Text("answer"), Column::Number("cases of A"),
                Column::Number("cases of B"), Column::Text("note"),
            ], rows.collect()))
            (note(&format!("The lower bound holds with 95 % probability. {NOT_SHOWN}")))
        }
    }
}

const fn reliability(insufficient_data: bool, small_n: bool, is_degenerate: bool) -> &'static str {
    if insufficient_data {
        "insufficient data: one has no case"
    } else if is_degenerate {
        "degenerate_se, no interval"
    } else if small_n {
        "few cases, less reliable"
    } else {
        NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_without_variance_are_drawn_with_a_score_interval() {
        let mut compared = comparison::compare(&[], "a", "b", Cases::Observable);
        let test = &mut compared.attribution_rate;
        (test.insufficient_data, test.degenerate_se) = (false, true);
        (test.difference, test.ci_low, test.ci_high) = (Some(0.0), Some(0.0), Some(0.0));
        (test.score_ci_low, test.score_ci_high) = (Some(-0.3244), Some(0.4345));
        let drawn = differences(&compared, None).0;
        for part in [
            "+0.0000 (-0.3244 to 0.4345 (Newcombe))",
            "line at 0.0000, whisker from -0.3244 to 0.4345",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        let why = Some(Unobservable::NoPush);
        assert!(!differences(&compared, why).0.contains("Newcombe"));
    }
}
