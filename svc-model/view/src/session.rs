//! One Session: what was captured of it, and what became of its commits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use svc_model::id::SessionId;
use svc_model::ingest::CiResult;
use svc_model::limit::SESSION_CALLS_COUNTED_MAX;
use svc_model::open::Open;
use svc_model::query::{
    AttributedCommit, DossierCiOutcome, DossierPush, EventCount, Gap, SessionDossier,
    SessionSummary, SessionUsage, TimelineEvent,
};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use crate::spend::dollars;
use crate::surface::Surface;

/// A branch that a commit was pushed to.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'d> {
    /// Its name, which is external text.
    pub name: &'d str,
    /// The later commit that the push left it at; `None` if it left it at the commit itself.
    pub head: Option<&'d CommitSha>,
    /// When the latest such push was captured.
    pub at: Instant,
}

/// Returns the branches that a commit was pushed to, each with its latest push: first those left at
/// the commit, then those left at a later one.
pub fn branches<'d>(
    dossier: &'d SessionDossier,
    commit: &'d AttributedCommit,
) -> impl Iterator<Item = Branch<'d>> {
    let mut branches: BTreeMap<(&str, Option<&CommitSha>), Instant> = BTreeMap::new();
    let at = dossier.pushes.iter().filter(|push| {
        push.after_sha == commit.commit_sha
            && push.repository_identity == commit.repository_identity
    });
    let brought = bringing(dossier, commit).map(|push| (push, Some(&push.after_sha)));
    for (push, head) in at.map(|push| (push, None)).chain(brought) {
        let branch = push.r#ref.trim_start_matches("refs/heads/");
        let latest = branches.entry((branch, head)).or_insert(push.captured_at);
        *latest = push.captured_at.max(*latest);
    }
    branches
        .into_iter()
        .map(|((name, head), at)| Branch { name, head, at })
}

/// Returns the pushes that brought a commit but left the branch at a later one.
fn bringing<'d>(
    dossier: &'d SessionDossier,
    commit: &'d AttributedCommit,
) -> impl Iterator<Item = &'d DossierPush> {
    let by = commit.delivered_by_push_ids.as_deref().unwrap_or_default();
    let all = dossier.delivering_pushes.iter().flatten();
    all.filter(|push| by.contains(&push.push_id))
}

impl Surface {
    /// Says how a Session relates to others: in which way, to which, and at which call.
    pub fn continuations(
        self,
        dossier: &SessionDossier,
    ) -> impl Iterator<Item = (&'static str, &SessionId, String)> {
        let earlier = dossier.continues.iter().map(|earlier| {
            let call = earlier.inference_call_id;
            let call = call.map_or_else(String::new, |call| format!(", from call {call} on"));
            ("continues", &earlier.session_id, call)
        });
        let later = dossier.continued_by.iter();
        earlier.chain(later.map(|later| ("continued by", later, String::new())))
    }

    /// Returns what was captured of a Session: its name, its number, and what is known of it.
    pub fn captured(self, dossier: &SessionDossier) -> Vec<(&'static str, String, String)> {
        let coverage = dossier.coverage;
        let only = |name, count| (name, self.events(count), String::new());
        let mut captured = vec![
            (
                "calls",
                self.events(coverage.inference_calls),
                self.models(dossier),
            ),
            (
                "decisions",
                self.events(coverage.developer_decisions),
                self.decisions(dossier),
            ),
            only("edits observed", coverage.edit_observations),
            only("edits rejected", coverage.rejected_edits),
            only("retries", coverage.retry_linkages),
            (
                "commits",
                self.whole(dossier.attributed_commits.len() as u64),
                String::new(),
            ),
        ];
        if let Some(receipts) = coverage.usage_receipts {
            let known = dossier.usage.map(|usage| self.reported(usage));
            captured.push((
                "usage reports",
                self.events(receipts),
                known.unwrap_or_default(),
            ));
        }
        captured
    }

    /// Returns in brackets what clients reported: how much of it is about captured calls, and what
    /// it cost.
    fn reported(self, usage: SessionUsage) -> String {
        let joined = self.whole(usage.joined);
        let cost = usage.cost_usd_micros;
        let cost = cost.map_or_else(String::new, |cost| {
            format!("; {} at list price", dollars(cost))
        });
        format!(" ({joined} of calls above{cost})")
    }

    fn events(self, events: EventCount) -> String {
        let visible = self.whole(events.visible);
        match events.quarantined {
            0 => visible,
            quarantined => format!("{visible} (and {} quarantined)", self.whole(quarantined)),
        }
    }

    /// Returns the number of calls of a Session in a list, which stops counting at a limit.
    pub fn calls(self, session: &SessionSummary) -> String {
        let calls = session.inference_calls;
        let more = if calls >= SESSION_CALLS_COUNTED_MAX {
            "+"
        } else {
            ""
        };
        self.whole(calls) + more
    }

    /// Returns the models in brackets, by number of calls, and the known token counts.
    fn models(self, dossier: &SessionDossier) -> String {
        let mut models: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut input, mut output) = (0_i64, 0_i64);
        let (mut cost, mut priced, mut unpriced) = (0_i64, 0_u64, 0_u64);
        for event in dossier.timeline.iter().filter_map(Open::known) {
            if let TimelineEvent::InferenceCall {
                model,
                input_tokens,
                output_tokens,
                usage,
                ..
            } = event
            {
                match usage.cost_usd_micros {
                    Some(micros) => (cost, priced) = (cost.saturating_add(micros), priced + 1),
                    None => unpriced += 1,
                }
                *models
                    .entry(model.as_deref().unwrap_or(self.none))
                    .or_default() += 1;
                input = input.saturating_add(input_tokens.unwrap_or(0));
                output = output.saturating_add(output_tokens.unwrap_or(0));
            }
        }
        if models.is_empty() {
            return String::new();
        }
        let mut models: Vec<_> = models.into_iter().collect();
        models.sort_by_key(|(model, calls)| (Reverse(*calls), *model));
        let models: Vec<String> = models
            .into_iter()
            .map(|(model, calls)| format!("{} {}", self.escape(model), self.whole(calls)))
            .collect();
        let models = models.join(", ");
        let tokens = |count: i64| self.whole(u64::try_from(count).unwrap_or(0));
        let tokens = (input != 0 || output != 0)
            .then(|| format!("; {} tokens in, {} out", tokens(input), tokens(output)));
        let cost = (priced > 0).then(|| format!("; {} at list price", dollars(cost)));
        let unpriced = (priced > 0 && unpriced > 0)
            .then(|| format!(", {} without a price", self.whole(unpriced)));
        let known: String = [tokens, cost, unpriced].into_iter().flatten().collect();
        format!(" ({models}{known})")
    }

    /// Returns in brackets what was decided.
    fn decisions(self, dossier: &SessionDossier) -> String {
        let (mut accepted, mut rejected, mut by_rule) = (0, 0, 0);
        for event in dossier.timeline.iter().filter_map(Open::known) {
            if let TimelineEvent::DeveloperDecision {
                accepted: is_accepted,
                explicit,
                ..
            } = event
            {
                accepted += u64::from(*is_accepted);
                rejected += u64::from(!is_accepted);
                by_rule += u64::from(!explicit);
            }
        }
        if accepted + rejected == 0 {
            return String::new();
        }
        let rules = match by_rule {
            0 => String::new(),
            by_rule => format!("; {} of them by a rule", self.whole(by_rule)),
        };
        let (accepted, rejected) = (self.whole(accepted), self.whole(rejected));
        format!(" ({accepted} accepted, {rejected} rejected{rules})")
    }

    /// Returns what was not captured of a Session. Facts that are quarantined were.
    pub fn not_captured(self, dossier: &SessionDossier) -> Vec<String> {
        let gaps = dossier.gaps.iter();
        gaps.filter(|gap| !dossier.coverage.has_quarantined(gap))
            .map(|gap| match gap {
                Open::Known(gap) => missing(*gap).to_owned(),
                Open::Unknown(word) => self.word(word.word()),
            })
            .collect()
    }

    /// Counts each result of CI, in the order of the results; `None` if there are none.
    pub fn results<'a>(self, results: impl Iterator<Item = &'a Open<CiResult>>) -> Option<String> {
        let mut counts: BTreeMap<&Open<CiResult>, u64> = BTreeMap::new();
        for result in results {
            *counts.entry(result).or_default() += 1;
        }
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(result, count)| format!("{count} {}", self.word(result.as_str())))
            .collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }

    /// Returns the results of CI at a commit, and at the later commits that it was pushed with, which
    /// are named.
    pub fn checks<'d>(
        self,
        dossier: &'d SessionDossier,
        commit: &'d AttributedCommit,
    ) -> Vec<(String, Option<&'d CommitSha>)> {
        let of = |outcomes: &mut dyn Iterator<Item = &DossierCiOutcome>, sha: &CommitSha| {
            let at = outcomes.filter(|outcome| {
                outcome.commit_sha == *sha
                    && outcome.repository_identity == commit.repository_identity
            });
            self.results(at.map(|outcome| &outcome.result))
        };
        let own = of(&mut dossier.ci_outcomes.iter(), &commit.commit_sha);
        let heads: BTreeSet<&CommitSha> = bringing(dossier, commit)
            .map(|push| &push.after_sha)
            .collect();
        let heads = heads.into_iter().filter_map(|head| {
            let mut outcomes = dossier.delivering_ci_outcomes.iter().flatten();
            Some((of(&mut outcomes, head)?, Some(head)))
        });
        own.map(|own| (own, None))
            .into_iter()
            .chain(heads)
            .collect()
    }
}

/// Describes something that was not captured.
const fn missing(gap: Gap) -> &'static str {
    match gap {
        Gap::NoInferenceCalls => "model calls",
        Gap::NoDeveloperDecisions => "decisions",
        Gap::NoEditObservations => "what became of edits",
        Gap::NoRejectedEdits => "rejected edits",
        Gap::NoRetryLinkages => "retries",
        Gap::NoCommit => "commits",
        Gap::NoPushes => "a push to one of its commits",
        Gap::NoCiOutcomes => "CI of one of its commits",
    }
}
