//! Which models have cases in the same repository.

use std::collections::BTreeMap;

use svc_engine_fact::Lifetime;

use super::ModelReportError;
use super::rows::Model;
use crate::statistics::Stratum;

/// Maximum number of pairs of models, each counted once per repository in which both have cases. A
/// reply with more would be too large.
pub const MODEL_PAIRS_MAX: usize = 200_000;

/// Pairs of model indices, the lower first, with the repositories in which both have cases.
pub(super) type Pairs<'e> = BTreeMap<(usize, usize), Vec<(&'e Lifetime, Stratum)>>;

/// Finds the pairs, in the order of the models.
pub(super) fn find<'e>(models: &[Model<'e>]) -> Result<Pairs<'e>, ModelReportError> {
    let mut repositories: BTreeMap<&Lifetime, Vec<usize>> = BTreeMap::new();
    for (place, model) in models.iter().enumerate() {
        for repository in model.cells.keys() {
            repositories.entry(repository).or_default().push(place);
        }
    }
    let count: usize = repositories
        .values()
        .map(|models| models.len() * (models.len() - 1) / 2)
        .sum();
    if count > MODEL_PAIRS_MAX {
        return Err(ModelReportError::TooManyPairs);
    }
    let mut pairs = Pairs::new();
    for (repository, places) in repositories {
        for (index, left) in places.iter().enumerate() {
            for right in &places[index + 1..] {
                let stratum = Stratum {
                    left: models[*left].cells[repository],
                    right: models[*right].cells[repository],
                };
                pairs
                    .entry((*left, *right))
                    .or_default()
                    .push((repository, stratum));
            }
        }
    }
    Ok(pairs)
}
