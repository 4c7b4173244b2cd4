//! The dossier, by going through every fact.

use super::*;

impl Reference<'_> {
    pub(in super::super) fn dossier(&self, session: &str, boundary: Instant) -> String {
        // When each fact was there, even if it was quarantined.
        let mut moments = Vec::new();
        let mut events = Vec::new();
        let mut coverage = Vec::new();
        macro_rules! events {
            ($($list:ident $id:ident $word:literal $moment:ident $occurred:ident;)+) => {
                $(
                    let all = self.facts.$list.iter().filter(|fact| fact.session_id.as_str() == session);
                    moments.extend(all.clone().map(|fact| fact.$moment));
                    let seen = self.seen.$list.iter().filter(|fact| fact.session_id.as_str() == session);
                    coverage.push((all.count(), seen.clone().count()));
                    events.extend(seen.map(|fact| (fact.$occurred, $word, fact.$id.to_string())));
                )+
            };
        }
        events! {
            calls inference_call_id "inference_call" observed_at observed_at;
            decisions decision_id "developer_decision" captured_at occurred_at;
            edits observation_id "edit_observation" captured_at occurred_at;
            rejections rejection_id "rejected_edit" captured_at occurred_at;
            retries retry_linkage_id "retry_linkage" captured_at occurred_at;
        }
        let observations = self.facts.observations.iter();
        let observations =
            observations.filter(|observation| observation.session_id.as_str() == session);
        moments.extend(observations.map(|observation| observation.captured_at));
        let (Some(first), Some(last)) = (moments.iter().min(), moments.iter().max()) else {
            return "nothing".to_owned();
        };
        events.sort();

        let mut commits: BTreeMap<(Repository, String), BTreeSet<String>> = BTreeMap::new();
        let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
        for observation in &self.seen.observations {
            if observation.session_id.as_str() != session || observation.captured_at > boundary {
                continue;
            }
            match self.resolve_observation(observation, boundary) {
                Ok(repository) => {
                    let ids = commits.entry((repository, observation.commit_sha.to_string()));
                    ids.or_default()
                        .insert(observation.observation_id.to_string());
                }
                Err(reason) => *skipped.entry(reason).or_default() += 1,
            }
        }
        let delivered = |name: &str, identity, sha: &CommitSha| {
            let repository = self.resolve(name, identity, boundary).ok()?;
            let key = (repository, sha.to_string());
            commits.contains_key(&key).then_some(key.0)
        };
        let mut pushes = BTreeSet::new();
        for push in &self.seen.pushes {
            let repository = delivered(&push.repo, push.repository.as_ref(), &push.after_sha);
            if push.captured_at <= boundary && repository.is_some() {
                pushes.insert((push.captured_at, push.push_id.to_string()));
            }
        }
        let mut outcomes = BTreeMap::new();
        for outcome in &self.seen.outcomes {
            let repository = delivered(
                &outcome.repo,
                outcome.repository.as_ref(),
                &outcome.commit_sha,
            );
            if let (true, Some(repository)) = (outcome.captured_at <= boundary, repository) {
                let link = link(&outcome.commit_sha, Some(&repository), boundary);
                outcomes.insert((outcome.captured_at, outcome.outcome_id.to_string()), link);
            }
        }

        let hidden = |(all, seen): &(usize, usize)| all - seen;
        let covered: Vec<String> = coverage
            .iter()
            .map(|coverage| format!("{}-{}", coverage.0, hidden(coverage)))
            .collect();
        let omitted: usize = coverage.iter().map(hidden).sum();
        let mut lines = vec![
            format!("{first} {last}"),
            format!("{} omitted {omitted}", covered.join(" ")),
        ];
        let kinds = [
            "inference_calls",
            "developer_decisions",
            "edit_observations",
            "rejected_edits",
            "retry_linkages",
        ];
        for (kind, (_, seen)) in kinds.iter().zip(&coverage) {
            if *seen == 0 {
                lines.push(format!("gap no_{kind}_observed"));
            }
        }
        for (missing, gap) in [
            (commits.is_empty(), "session_commit_unobserved"),
            (
                !commits.is_empty() && pushes.is_empty(),
                "no_exact_push_receipts_observed",
            ),
            (
                !commits.is_empty() && outcomes.is_empty(),
                "no_ci_outcomes_observed",
            ),
        ] {
            if missing {
                lines.push(format!("gap {gap}"));
            }
        }
        lines.extend(
            events
                .iter()
                .map(|(at, word, id)| format!("{word} {id} {at}")),
        );
        for ((repository, sha), ids) in &commits {
            let (name, identity) = match repository {
                Repository::Named(name) => (name.clone(), "-".to_owned()),
                Repository::Identified(identity) => {
                    let names = self.names(identity, boundary);
                    (
                        names.first().cloned().unwrap_or_default(),
                        identity.join("/"),
                    )
                }
            };
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            lines.push(format!("commit {name} {identity} {sha} {}", ids.join(" ")));
        }
        lines.extend(pushes.into_iter().map(|(_, id)| format!("push {id}")));
        lines.extend(
            outcomes
                .into_iter()
                .map(|((_, id), link)| format!("ci {id} {link}")),
        );
        lines.push(format!("unobserved {}", u8::from(commits.is_empty())));
        lines.push(format!("skipped {}", super::counts(&skipped)));
        lines.join("\n")
    }
}
