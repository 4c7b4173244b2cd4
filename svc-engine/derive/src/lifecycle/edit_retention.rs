//! Edits and what became of them.

use svc_model::reports::{Counts, Coverage, EditRetention, Fate, Population, UnsupportedCapture};

use super::examples;
use crate::cohort::CohortEvidence;
use crate::fate::{self, ExternalLines};
use crate::statistics::Proportion;

/// The panel, and the numbers that other panels need.
#[derive(Debug)]
pub(super) struct RetentionPanel {
    pub(super) panel: EditRetention,
    /// Edits that were modified or deleted, out of those with a Fate.
    pub(super) changed: Proportion,
    /// Edits whose file was also changed by something else than the agent, out of those with
    /// counts.
    pub(super) external: Proportion,
}

/// Derives the panel.
pub(super) fn derive(evidence: &CohortEvidence<'_>) -> RetentionPanel {
    let edits = fate::ordered(evidence.edits);
    let fates = edits.len() as u64;
    let observations = fates + evidence.erased_edits;
    let of = |fate: Fate| edits.iter().filter(move |edit| edit.fate == fate);
    let count = |fate: Fate| of(fate).count() as u64;
    let known: Vec<ExternalLines> = edits.iter().filter_map(|edit| edit.external()).collect();
    let lines = |of: fn(&ExternalLines) -> i64| {
        known
            .iter()
            .map(|external| u64::try_from(of(external)).unwrap_or(0))
            .fold(0, u64::saturating_add)
    };
    let touched = known.iter().filter(|external| external.any()).count();
    let example =
        |population, fate| examples::of(population, of(fate).map(|edit| &edit.session_id));
    RetentionPanel {
        changed: Proportion::new(count(Fate::PartiallyModified) + count(Fate::Deleted), fates),
        external: Proportion::new(touched as u64, known.len() as u64),
        panel: EditRetention {
            observations,
            eligible: fates,
            derived_fates: fates,
            unmodified: count(Fate::Unmodified),
            partially_modified: count(Fate::PartiallyModified),
            deleted: count(Fate::Deleted),
            known_external_line_counts: known.len() as u64,
            external_lines_added: lines(|external| external.added),
            external_lines_removed: lines(|external| external.removed),
            fate_rate: Proportion::new(fates, fates).rate(),
            skips: fate::skipped(evidence.erased_edits),
            coverage: Coverage {
                // An erased edit is no longer evidence of anything.
                observed: fates,
                missing: fate::skipped(evidence.erased_edits),
                unsupported_by_integration: examples::unsupported(
                    UnsupportedCapture::CursorEdits,
                    &evidence.decisions.all,
                ),
                ambiguous: Counts::default(),
            },
            examples: vec![
                example(Population::Unmodified, Fate::Unmodified),
                example(Population::PartiallyModified, Fate::PartiallyModified),
                example(Population::Deleted, Fate::Deleted),
            ],
        },
    }
}
