//! Which facts whose repository cannot be determined count where in a report.

use svc_model::reports::Counts;
use svc_model::repository::RepositoryDecline;

/// The facts of a report whose repository cannot be determined, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclinedFacts {
    /// Pushes.
    pub pushes: Counts<RepositoryDecline>,
    /// Links of the report's Sessions to commits.
    pub observations: Counts<RepositoryDecline>,
    /// CI outcomes.
    pub outcomes: Counts<RepositoryDecline>,
    /// For all history, whether any push is visible; `None` for a cohort.
    pub has_push: Option<bool>,
}

impl DeclinedFacts {
    /// Returns what the model report was assembled without. A cohort's pushes are counted with the
    /// share of notes.
    pub fn assembly_sources(&self) -> Counts<RepositoryDecline> {
        let pushes = self.has_push.is_some().then_some(&self.pushes);
        sum([Some(&self.observations), Some(&self.outcomes), pushes])
    }

    /// Returns what Attribution did without.
    pub fn attribution_sources(&self) -> Counts<RepositoryDecline> {
        sum([Some(&self.pushes), self.attribution_observations()])
    }

    /// Returns the links to commits that Attribution did without. All history reads them, as soon
    /// as it has a push to match; of a cohort, Attribution takes only those that are determined.
    pub fn attribution_observations(&self) -> Option<&Counts<RepositoryDecline>> {
        (self.has_push == Some(true)).then_some(&self.observations)
    }
}

fn sum<const N: usize>(
    parts: [Option<&Counts<RepositoryDecline>>; N],
) -> Counts<RepositoryDecline> {
    let parts = parts.into_iter().flatten();
    parts.flat_map(Counts::iter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHY: RepositoryDecline = RepositoryDecline::IdentityUnresolved;

    /// Three pushes, five observations and seven outcomes.
    fn declined(has_push: Option<bool>) -> DeclinedFacts {
        let counts = |count| Counts::from_iter([(WHY, count)]);
        DeclinedFacts {
            pushes: counts(3),
            observations: counts(5),
            outcomes: counts(7),
            has_push,
        }
    }

    #[test]
    fn a_model_report_is_assembled_from_observations_and_outcomes_and_from_all_pushes() {
        for (has_push, expected) in [(None, 12), (Some(true), 15), (Some(false), 15)] {
            let sources = declined(has_push).assembly_sources();
            assert_eq!(
                sources,
                Counts::from_iter([(WHY, expected)]),
                "{has_push:?}"
            );
        }
        let source_absent = DeclinedFacts {
            observations: Counts::from_iter([(RepositoryDecline::SourceAbsent, 1)]),
            ..declined(None)
        };
        assert_eq!(source_absent.assembly_sources().total(), 8);
    }

    #[test]
    fn attribution_counts_observations_only_over_all_history_with_a_push() {
        for (has_push, expected) in [(None, 3), (Some(true), 8), (Some(false), 3)] {
            let sources = declined(has_push).attribution_sources();
            assert_eq!(
                sources,
                Counts::from_iter([(WHY, expected)]),
                "{has_push:?}"
            );
        }
    }
}
