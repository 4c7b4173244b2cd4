//! Random small worlds of facts, and queries about them that are also answered in the obvious way.
//!
//! A world has two organizations that share Sessions, runs, commits and names. Each query about one
//! of them is computed a second time, by going through plain lists ([`reference`](mod@reference)),
//! and both answers are compared as text.

mod reference;
mod world;

use super::*;
use reference::Reference;
use svc_model::open::Open;
pub(super) use world::Dice;
use world::World;

/// Number of queries of each kind per organization.
const QUESTIONS: usize = 80;

#[rstest]
#[case(Backend::Sqlite, 12)]
#[case(Backend::Postgres, 4)]
fn every_answer_equals_that_of_a_full_scan_of_the_facts(
    #[case] backend: Backend,
    #[case] worlds: u64,
) {
    let Some(database) = TestStore::create(backend) else {
        return;
    };
    let informative = Cell::new(0);
    for seed in 0..worlds {
        let mut dice = Dice::new(seed);
        let world = World::make(&database, seed, &mut dice);
        for (store, facts) in world.organizations() {
            let asked = Asked {
                store,
                reference: Reference::of(facts),
                seed,
                informative: &informative,
            };
            for _ in 0..QUESTIONS {
                asked.outcome(&world::outcome_request(&mut dice));
                asked.failures(&world::failures_request(&mut dice), &mut dice);
                asked.commit(&world::commit_request(&mut dice));
            }
            for session in world::SESSIONS {
                asked.dossier(session);
            }
        }
    }
    // Worlds in which nothing is found would prove nothing.
    let asked = worlds * 2 * 3 * QUESTIONS as u64;
    assert!(
        informative.get() > asked / 4,
        "{} of {asked}",
        informative.get()
    );
}

/// One organization, as stored and as a list.
struct Asked<'w> {
    store: &'w Store,
    reference: Reference<'w>,
    seed: u64,
    /// How many answers were not empty.
    informative: &'w Cell<u64>,
}

impl Asked<'_> {
    fn compare(&self, question: &dyn std::fmt::Debug, answer: &str, expected: &str) {
        assert_eq!(answer, expected, "world {}: {question:#?}", self.seed);
        let is_informative = !["", "nothing", "ambiguous", "conflict"].contains(&answer);
        self.informative
            .set(self.informative.get() + u64::from(is_informative));
    }

    fn outcome(&self, request: &CiOutcomeRequest) {
        let answer = ci_outcome(&mut self.store.snapshot_now(), request);
        let answer = match answer.map(|answer| answer.outcome) {
            Ok(Some(record)) => outcome_text(&record),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error_word(&error),
        };
        let expected = self.reference.outcome(request);
        self.compare(request, &answer, &expected);
    }

    /// Walks through all pages, with varying sizes.
    fn failures(&self, request: &CiFailuresRequest, dice: &mut Dice) {
        let key = CursorKey::derive(b"a secret");
        let mut page = request.clone();
        let mut walked = Vec::new();
        let answer = loop {
            page.limit = PageLimit::new(1 + dice.below(4)).unwrap();
            match ci_failures(&mut self.store.snapshot_now(), &key, &page) {
                Ok(answer) => {
                    assert!(answer.outcomes.len() as u64 <= page.limit.get());
                    walked.extend(answer.outcomes.iter().map(outcome_text));
                    page.cursor = answer.next_cursor;
                }
                Err(error) => break error_word(&error),
            }
            if page.cursor.is_none() {
                break walked.join("\n");
            }
        };
        let expected = self.reference.failures(request);
        self.compare(request, &answer, &expected);
    }

    /// Returns when the last fact was captured. Nobody asks beyond that.
    fn last(&self) -> Instant {
        self.store.snapshot_now().boundary(None).unwrap()
    }

    fn within(&self, as_of: Option<Instant>) -> Option<Instant> {
        as_of.map(|as_of| as_of.min(self.last()))
    }

    fn commit(&self, request: &CommitRequest) {
        let memory = ReportMemory::new(0);
        let sources = ReportSources {
            mirrors: None,
            memory: &memory,
        };
        let answer = commit_evidence(
            &mut self.store.snapshot_now(),
            sources,
            request.clone(),
            self.last(),
        );
        let answer = match answer {
            Ok(evidence) => commit_text(&evidence),
            Err(error) => error_word(&error),
        };
        let asked = CommitRequest {
            as_of: self.within(request.as_of),
            ..request.clone()
        };
        let expected = self.reference.commit(&asked, self.last());
        self.compare(request, &answer, &expected);
    }

    fn dossier(&self, session: &str) {
        let request = SessionDossierRequest {
            session_id: SessionId::new(session).unwrap(),
            explain: false,
        };
        let answer = session_dossier(&mut self.store.snapshot_now(), request, self.last());
        let answer = match answer.map(SessionAnswer::dossier) {
            Ok(Some(dossier)) => dossier_text(&dossier),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error_word(&error),
        };
        let expected = self.reference.dossier(session, self.last());
        self.compare(&session, &answer, &expected);
    }
}

fn error_word(error: &Error) -> String {
    match error {
        Error::Declined(Decline::RepositorySelectorAmbiguous) => "ambiguous".to_owned(),
        Error::Query(QueryFault::SelectorConflict) => "conflict".to_owned(),
        other => format!("{other:?}"),
    }
}

fn identity_text(identity: Option<&LifetimeIdentity>) -> String {
    identity.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn outcome_text(outcome: &CiOutcomeRecord) -> String {
    let identity = identity_text(outcome.repository_identity.as_ref());
    format!(
        "{} {:?} {identity} {} {}",
        outcome.outcome_id, outcome.repo, outcome.captured_at, outcome.commit_query
    )
}

fn counts_text(counts: &std::collections::BTreeMap<Open<RepositoryDecline>, u64>) -> String {
    let mut counts: Vec<String> = counts
        .iter()
        .map(|(decline, count)| format!("{decline}={count}"))
        .collect();
    counts.sort();
    counts.join(" ")
}

fn commit_text(evidence: &CommitEvidence) -> String {
    let Some(repos) = &evidence.repos else {
        return "nothing".to_owned();
    };
    // A missing mirror is not evidence.
    if repos.is_empty() && evidence.repository_skipped.is_none() {
        return "nothing".to_owned();
    }
    let mut lines = vec![format!("attributed {}", evidence.attributed)];
    for repo in repos {
        lines.push(format!(
            "{:?} {:?} {} {:?}",
            repo.repo,
            repo.current_repo,
            identity_text(repo.repository_identity.as_ref()),
            repo.observed_repo_slugs
        ));
        for session in &repo.observed_sessions {
            let ids = session.session_commit_observation_ids.iter();
            let ids: Vec<String> = ids.map(ToString::to_string).collect();
            lines.push(format!(
                "session {} {}",
                session.session_id.as_str(),
                ids.join(" ")
            ));
        }
        lines.extend(
            repo.ci_outcomes
                .iter()
                .map(|ci_outcome| format!("ci {}", ci_outcome.outcome_id)),
        );
        for link in &repo.through_pull_requests {
            for commit in &link.commits {
                let sessions = commit.observed_sessions.iter();
                let sessions: Vec<&str> = sessions.map(|seen| seen.session_id.as_str()).collect();
                lines.push(format!(
                    "through {} {} {}",
                    link.pr_number,
                    commit.commit_sha,
                    sessions.join(" ")
                ));
            }
        }
    }
    if let Some(skipped) = &evidence.repository_skipped {
        lines.push(format!("skipped {}", counts_text(skipped)));
    }
    let unresolved = evidence.unresolved_ci_outcomes.iter().flatten();
    lines.extend(unresolved.map(|unresolved| format!("unresolved {}", unresolved.outcome_id)));
    lines.join("\n")
}

fn dossier_text(dossier: &SessionDossier) -> String {
    let counts = dossier.coverage.counts();
    let counts: Vec<String> = counts
        .iter()
        .map(|count| format!("{}-{}", count.total, count.quarantined))
        .collect();
    let mut lines = vec![
        format!("{} {}", dossier.first_observed_at, dossier.last_observed_at),
        format!("{} omitted {}", counts.join(" "), dossier.omitted_events),
    ];
    lines.extend(dossier.gaps.iter().map(|gap| format!("gap {gap}")));
    lines.extend(
        dossier
            .timeline
            .iter()
            .filter_map(Open::known)
            .map(|event| {
                format!(
                    "{} {} {}",
                    event.event_type(),
                    event.fact_id(),
                    event.occurred_at()
                )
            }),
    );
    for commit in &dossier.attributed_commits {
        let ids = commit.session_commit_observation_ids.iter();
        let ids: Vec<String> = ids.map(ToString::to_string).collect();
        let identity = identity_text(commit.repository_identity.as_ref());
        lines.push(format!(
            "commit {} {identity} {} {}",
            commit.repo,
            commit.commit_sha,
            ids.join(" ")
        ));
    }
    lines.extend(
        dossier
            .pushes
            .iter()
            .map(|push| format!("push {}", push.push_id)),
    );
    lines.extend(
        dossier
            .ci_outcomes
            .iter()
            .map(|ci_outcome| format!("ci {} {}", ci_outcome.outcome_id, ci_outcome.commit_query)),
    );
    lines.push(format!("unobserved {}", dossier.session_commit_unobserved));
    lines.push(format!(
        "skipped {}",
        counts_text(&dossier.repository_skipped)
    ));
    lines.join("\n")
}
