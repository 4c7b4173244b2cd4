//! The parts that were found, as excerpts that together stay within a bound.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use svc_model::time::Instant;
use svc_view::snippet;

use super::Members;
use super::part::shortened;
use crate::moment::minute;

/// The lengths in characters of excerpts and titles: the first at which an answer is small enough.
const LENGTHS: [(usize, usize); 9] = [
    (EXCERPT_CHARACTERS_MAX, 90),
    (260, 60),
    (220, 50),
    (190, 40),
    (165, 40),
    (140, 40),
    (120, 40),
    (100, 30),
    (80, 30),
];
/// The maximum characters of an excerpt.
const EXCERPT_CHARACTERS_MAX: usize = 300;
/// The bytes of the hits of an answer of at most eight Sessions. The whole answer then has at most
/// about 1,000 tokens.
const HITS_BYTES_MAX: usize = 3_400;
/// The bytes for each further Session.
const HIT_BYTES: usize = 420;

/// A part that was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Hit {
    pub(super) session: String,
    pub(super) title: Option<String>,
    pub(super) users: Vec<String>,
    pub(super) time: Option<Instant>,
    pub(super) role: String,
    pub(super) kind: String,
    pub(super) tool: Option<String>,
    /// The text around the match, of which the best place is shown.
    pub(super) text: String,
    pub(super) reference: Option<Value>,
    /// The byte of the part's text at which the text around the match begins.
    pub(super) offset: u64,
    /// Further parts of the Session that match.
    pub(super) more: u64,
    /// Whether the Session was observed at the commit that was asked for.
    pub(super) at_commit: bool,
    /// Other Sessions with the same excerpt.
    pub(super) also_in: Vec<String>,
}

impl Hit {
    /// Returns the text around the match, or all of a short one: a tool call begins with its name.
    fn excerpt(&self, words: &BTreeSet<String>, characters_max: usize) -> String {
        if self.text.chars().nth(characters_max).is_none() {
            return snippet(&self.text, &BTreeSet::new(), usize::MAX).text;
        }
        snippet(&self.text, words, characters_max).text
    }

    fn value(
        &self,
        words: &BTreeSet<String>,
        (characters_max, title_max): (usize, usize),
    ) -> Value {
        let excerpt = self.excerpt(words, characters_max);
        // What a title repeats is no title.
        let title = self.title.as_deref().filter(|title| {
            let title = title.trim_end_matches('…');
            !excerpt.starts_with(title)
        });
        let title = title.map(|title| shortened(title, title_max));
        Members::default()
            .with("session", &*self.session)
            .with("title", title)
            .with("user", joined(&self.users))
            .with("time", self.time.map(minute))
            .with("role", Some(&*self.role).filter(|role| !role.is_empty()))
            .with("kind", Some(&*self.kind).filter(|kind| !kind.is_empty()))
            .with("tool", self.tool.as_deref())
            .with(
                "excerpt",
                Some(excerpt).filter(|excerpt| !excerpt.is_empty()),
            )
            .with("reference", self.reference.clone())
            .with("offset", Some(self.offset).filter(|offset| *offset > 0))
            .with("more", Some(self.more).filter(|more| *more > 0))
            .with("at_commit", self.at_commit.then_some(true))
            .with("also_in", self.also_in.clone())
            .value()
    }
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Keeps each excerpt once. The later Sessions that have it are named beside the first.
pub(super) fn folded(hits: Vec<Hit>, words: &BTreeSet<String>) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for hit in hits {
        if hit.text.is_empty() {
            kept.push(hit);
            continue;
        }
        let excerpt = hit.excerpt(words, EXCERPT_CHARACTERS_MAX);
        let key = (hit.kind.clone(), excerpt);
        match places.get(&key).and_then(|place| kept.get_mut(*place)) {
            Some(first) if first.session == hit.session => first.more += hit.more,
            Some(first) => first.also_in.push(hit.session),
            None => {
                places.insert(key, kept.len());
                kept.push(hit);
            }
        }
    }
    kept
}

/// Writes hits with excerpts of a length at which they are small enough together.
pub(super) fn written(hits: &[Hit], words: &BTreeSet<String>) -> Vec<Value> {
    let bytes_max = HITS_BYTES_MAX + hits.len().saturating_sub(8) * HIT_BYTES;
    let mut values = Vec::new();
    for lengths in LENGTHS {
        values = hits.iter().map(|hit| hit.value(words, lengths)).collect();
        let bytes: usize = values.iter().map(|value| value.to_string().len()).sum();
        if bytes <= bytes_max {
            break;
        }
    }
    values
}
