//! Whether the difference between two models is really one between the repositories they worked in.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::Lifetime;
use svc_model::reports::{
    AdjustedComparison, Metric, ModelRate, RateComparison, Reversal, ShrunkRate, ShrunkRates,
    Stratification, StratificationStatus,
};

use super::ModelReportError;
use super::pairs::{self, Pairs};
use super::rows::Model;
use crate::cohort::CohortEvidence;
use crate::statistics::{Proportion, Stratum, mantel_haenszel, pool};

/// How many repositories two models must share before they are compared in each.
const SHARED_REPOSITORIES_MIN: usize = 2;

/// Stratifies both rates.
pub(super) fn derive(
    evidence: &CohortEvidence<'_>,
    models: &[Model<'_>],
) -> Result<Vec<Stratification>, ModelReportError> {
    Ok(vec![
        of_ci(evidence, models)?,
        finished(Metric::AttributionRate, StratificationStatus::NotCheckable),
    ])
}

fn of_ci(
    evidence: &CohortEvidence<'_>,
    models: &[Model<'_>],
) -> Result<Stratification, ModelReportError> {
    let unobserved: BTreeSet<_> = models.iter().flat_map(|model| &model.unobserved).collect();
    let unobserved = unobserved.len() as u64;
    if models.len() < 2 {
        return Ok(Stratification {
            session_commit_unobserved: unobserved,
            ..finished(Metric::CiPassRate, StratificationStatus::NotEnoughModels)
        });
    }
    let repositories: BTreeSet<&Lifetime> = models
        .iter()
        .flat_map(|model| model.cells.keys().copied())
        .collect();
    let checked = repositories.len();
    let pairs = pairs::find(models)?;
    let comparisons = comparisons(evidence, models, &pairs, checked);
    let status = if checked < SHARED_REPOSITORIES_MIN {
        StratificationStatus::NotEnoughRepos
    } else if comparisons.is_empty() {
        StratificationStatus::NoComparableData
    } else if comparisons.iter().any(|pair| !pair.reversals.is_empty()) {
        StratificationStatus::ReversalDetected
    } else {
        StratificationStatus::NoReversalDetected
    };
    Ok(Stratification {
        checked_repos: checked as u64,
        comparisons,
        session_commit_unobserved: unobserved,
        adjusted_comparisons: adjusted(models, &pairs, checked),
        shrunk_rates: shrunk(evidence, models, &repositories),
        ..finished(Metric::CiPassRate, status)
    })
}

/// A result without numbers.
fn finished(metric: Metric, status: StratificationStatus) -> Stratification {
    Stratification {
        metric: metric.into(),
        status: status.into(),
        checked_repos: 0,
        comparisons: Vec::new(),
        reason: reason(status).to_owned(),
        session_commit_unobserved: 0,
        adjusted_comparisons: Vec::new(),
        shrunk_rates: Vec::new(),
    }
}

const fn reason(status: StratificationStatus) -> &'static str {
    match status {
        StratificationStatus::NotEnoughModels => "fewer than two models have calls in the cohort",
        StratificationStatus::NotEnoughRepos => {
            "fewer than two repositories have commits with a CI verdict"
        }
        StratificationStatus::NoComparableData => {
            "no two models differ and have verdicts in the same two repositories"
        }
        StratificationStatus::ReversalDetected => {
            "a difference between two models turns around within a repository"
        }
        StratificationStatus::NoReversalDetected => {
            "no difference between two models turns around within a repository"
        }
        StratificationStatus::NotCheckable => {
            "a call has no repository before it is attributed to a commit"
        }
    }
}

fn comparisons(
    evidence: &CohortEvidence<'_>,
    models: &[Model<'_>],
    pairs: &Pairs<'_>,
    checked: usize,
) -> Vec<RateComparison> {
    let mut comparisons = Vec::new();
    for ((left, right), strata) in pairs {
        let (left, right) = (&models[*left], &models[*right]);
        let sign = compare(left.ci(), right.ci());
        if strata.len() < SHARED_REPOSITORIES_MIN || sign.is_eq() {
            continue;
        }
        let (aggregate_left, aggregate_right) = (rate(left, left.ci()), rate(right, right.ci()));
        let aggregate_delta = aggregate_left.rate - aggregate_right.rate;
        let reversals = strata
            .iter()
            .filter(|(_, stratum)| compare(stratum.left, stratum.right) == sign.reverse())
            .map(|(repository, stratum)| {
                let place = evidence.place(repository);
                let (own_left, own_right) = (rate(left, stratum.left), rate(right, stratum.right));
                Reversal {
                    repo: place.repo,
                    repo_delta: own_left.rate - own_right.rate,
                    left: own_left,
                    right: own_right,
                    aggregate_left: aggregate_left.clone(),
                    aggregate_right: aggregate_right.clone(),
                    aggregate_delta,
                    org_id: evidence.org_id.clone(),
                    repository_identity: place.identity,
                }
            })
            .collect();
        comparisons.push(RateComparison {
            left_model: left.name.to_owned(),
            right_model: right.name.to_owned(),
            aggregate_left,
            aggregate_right,
            aggregate_delta,
            compared_repos: strata.len() as u64,
            skipped_repos: (checked - strata.len()) as u64,
            reversals,
        });
    }
    comparisons
}

fn adjusted(models: &[Model<'_>], pairs: &Pairs<'_>, checked: usize) -> Vec<AdjustedComparison> {
    pairs
        .iter()
        .filter_map(|((left, right), found)| {
            let (left, right) = (&models[*left], &models[*right]);
            let strata: Vec<Stratum> = found.iter().map(|(_, stratum)| *stratum).collect();
            let adjusted = mantel_haenszel(&strata)?;
            let (aggregate_left, aggregate_right) =
                (rate(left, left.ci()), rate(right, right.ci()));
            Some(AdjustedComparison {
                left_model: left.name.to_owned(),
                right_model: right.name.to_owned(),
                naive_delta: aggregate_left.rate - aggregate_right.rate,
                aggregate_left,
                aggregate_right,
                adjusted_delta: adjusted.delta,
                compared_repos: strata.len() as u64,
                skipped_repos: (checked - strata.len()) as u64,
                weight_sum: adjusted.weight_sum,
            })
        })
        .collect()
}

fn shrunk(
    evidence: &CohortEvidence<'_>,
    models: &[Model<'_>],
    repositories: &BTreeSet<&Lifetime>,
) -> Vec<ShrunkRates> {
    let mut by_repository: BTreeMap<&Lifetime, Vec<(&str, Proportion)>> = repositories
        .iter()
        .map(|repository| (*repository, Vec::new()))
        .collect();
    let mut cells = Vec::new();
    for model in models {
        for (repository, cell) in &model.cells {
            by_repository
                .entry(repository)
                .or_default()
                .push((model.name, *cell));
            cells.push(*cell);
        }
    }
    let Some(pooling) = pool(&cells) else {
        return Vec::new();
    };
    by_repository
        .into_iter()
        .map(|(repository, models)| {
            let place = evidence.place(repository);
            let model_rates = models
                .into_iter()
                .map(|(model, cell)| {
                    let shrunk = pooling.shrink(cell);
                    let rate = ShrunkRate {
                        model: model.to_owned(),
                        numerator: cell.numerator,
                        denominator: cell.denominator,
                        raw_rate: cell.rate_or_zero(),
                        shrunk_rate: shrunk.rate,
                        grand_mean: pooling.grand_mean,
                        shrinkage_weight: shrunk.weight,
                        pooling_strength: pooling.strength,
                    };
                    (model.to_owned(), rate)
                })
                .collect();
            ShrunkRates {
                org_id: evidence.org_id.clone(),
                repo: place.repo,
                repository_identity: place.identity,
                model_rates,
            }
        })
        .collect()
}

fn rate(model: &Model<'_>, proportion: Proportion) -> ModelRate {
    ModelRate {
        model: model.name.to_owned(),
        numerator: proportion.numerator,
        denominator: proportion.denominator,
        rate: proportion.rate_or_zero(),
    }
}

/// Compares two rates exactly, by their counts.
fn compare(left: Proportion, right: Proportion) -> Ordering {
    let product =
        |a: Proportion, b: Proportion| u128::from(a.numerator) * u128::from(b.denominator);
    product(left, right).cmp(&product(right, left))
}
