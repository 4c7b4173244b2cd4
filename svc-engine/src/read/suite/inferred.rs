//! The calls inferred for a commit.

use std::collections::BTreeMap;
use std::fs;

use svc_engine_fact::testing::builders::text;
use svc_engine_mirror::testing::git::Repository;
use svc_model::query::{AttributionSource, InferenceSkip};

use super::reports::{Forge, GUESSED, NOTED, Sources};
use super::worlds::Dice;
use super::*;

/// The repository id of [`Forge`].
const NUMBER: u32 = 101;

impl Stage {
    fn inferred(&self, sources: &Sources, commit: &CommitSha) -> CommitEvidence {
        self.inferred_by(sources, CommitRequest::new(commit.clone()))
    }

    fn inferred_by(&self, sources: &Sources, request: CommitRequest) -> CommitEvidence {
        let now = self.snapshot().boundary(None).unwrap();
        self.inferred_at(sources, request, now)
    }

    fn inferred_at(
        &self,
        sources: &Sources,
        request: CommitRequest,
        now: Instant,
    ) -> CommitEvidence {
        commit_evidence(&mut self.snapshot(), sources.all(), request, now).unwrap()
    }
}

/// Returns the calls of the only repository in the answer: id, source, score and number of files.
fn calls(evidence: &CommitEvidence) -> Vec<(FactId, AttributionSource, f64, u64)> {
    let repositories = evidence.repos.as_deref().unwrap_or_default();
    let calls = repositories
        .iter()
        .flat_map(|repository| &repository.inference_calls);
    calls
        .map(|call| {
            let score = call.similarity_score.unwrap();
            let files = call.attributed_files.unwrap();
            let source = *call.attribution_source.known().unwrap();
            (call.inference_call_id, source, score, files)
        })
        .collect()
}

fn skips(evidence: &CommitEvidence) -> Vec<(InferenceSkip, u64)> {
    let skipped = evidence.inference_skipped.iter();
    skipped
        .flat_map(|skipped| skipped.iter().collect::<Vec<_>>())
        .collect()
}

#[rstest]
fn noted_and_guessed_calls_are_listed_apart_from_observations(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, NUMBER);
    stage.add(forge.facts(&stage));
    let [base, noted, guessed, merged] = &forge.commits;

    let evidence = stage.inferred(&sources, noted);
    assert!(evidence.attributed);
    let one = (id(1), AttributionSource::GitNotes, 1.0, 1);
    assert_eq!(calls(&evidence), [one]);
    let repository = &evidence.repos.as_ref().unwrap()[0];
    assert_eq!(repository.decisions, 1);
    assert_eq!(repository.session_commit_unobserved, 0);
    assert_eq!(repository.observed_sessions.len(), 1);
    assert_eq!(repository.inference_calls[0].model.as_deref(), Some("m1"));
    let unexplained = |commit: &CommitSha| CommitRequest {
        explain: false,
        ..CommitRequest::new(commit.clone())
    };
    let evidence = stage.inferred_by(&sources, unexplained(noted));
    let call = &evidence.repos.as_ref().unwrap()[0].inference_calls[0];
    assert_eq!(call.inference_call_id, id(1));
    assert_eq!((call.similarity_score, call.attributed_files), (None, None));

    // Later observations are not known yet, whatever the time of the last stored fact.
    let earlier = CommitRequest::new(noted.clone());
    assert_eq!(calls(&stage.inferred_at(&sources, earlier, at(0))), []);

    let evidence = stage.inferred(&sources, guessed);
    assert!(!evidence.attributed, "a guess is not an observation");
    let two = (id(2), AttributionSource::Jaccard, 1.0, 1);
    assert_eq!(calls(&evidence), [two]);
    let repository = &evidence.repos.as_ref().unwrap()[0];
    assert_eq!(repository.decisions, 0);
    assert_eq!(repository.session_commit_unobserved, 1);
    assert_eq!(repository.observed_sessions, []);

    // No push is known to have brought these.
    for commit in [base, merged] {
        let selected = CommitRequest {
            repository: by_identity(NUMBER),
            ..CommitRequest::new(commit.clone())
        };
        for evidence in [
            stage.inferred(&sources, commit),
            stage.inferred_by(&sources, selected),
        ] {
            assert_eq!((calls(&evidence), skips(&evidence)), (vec![], vec![]));
            let through = evidence.repos.iter().flatten();
            let through = through.map(|repository| repository.through_pull_requests.len());
            assert_eq!(through.sum::<usize>(), usize::from(commit == merged));
            if commit == base {
                assert_eq!(evidence, CommitEvidence::none(commit.clone()));
            }
        }
    }
}

#[rstest]
fn a_dossier_leads_to_its_call_even_if_the_senders_clock_was_ahead(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, NUMBER);
    let facts = forge.facts(&stage).into_iter();
    stage.add(facts.filter(|fact| !matches!(fact, Append::InferenceCall(_))));
    let last = stage.snapshot().boundary(None).unwrap();
    let ahead = at(2_300);
    assert!(last < ahead);
    let call = call(1)
        .session("s")
        .observed(2_300)
        .output(vec![text("assistant", NOTED)])
        .build();
    let call = stage.store.encode(call, last);
    stage.add([Append::InferenceCall(Box::new(call))]);
    let followed = |now| {
        let request = SessionDossierRequest::new(SessionId::new("s").unwrap());
        let answer = session_dossier(&mut stage.snapshot(), request, now).unwrap();
        let outcomes = answer.dossier().unwrap().ci_outcomes;
        let link = outcomes[0].commit_query.request().unwrap();
        let evidence = stage.inferred_at(&sources, link, now);
        evidence.repos.unwrap()[0].inference_calls.len()
    };
    assert_eq!(followed(last), 0, "before it was observed");
    assert_eq!(followed(ahead), 1);
}

#[rstest]
fn a_commit_inside_a_push_is_found_in_the_selected_repository(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, NUMBER);
    let is_named = |fact: &Append| {
        matches!(
            fact,
            Append::SessionCommitObservation(_) | Append::CiOutcome(_)
        )
    };
    let facts = forge.facts(&stage);
    stage.add(facts.into_iter().filter(|fact| !is_named(fact)));
    let noted = &forge.commits[1];
    let one = (id(1), AttributionSource::Jaccard, 1.0, 1);
    for repository in [by_identity(NUMBER), by_name("own/repo")] {
        let request = CommitRequest {
            repository,
            ..CommitRequest::new(noted.clone())
        };
        assert_eq!(calls(&stage.inferred_by(&sources, request)), [one]);
    }
    // No fact ties it to a repository.
    let none = CommitEvidence::none(noted.clone());
    assert_eq!(stage.inferred(&sources, noted), none);
}

#[rstest]
fn a_search_that_is_not_possible_has_a_reason_instead_of_an_empty_answer(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, none) = (Forge::new(), Sources::new());
    stage.add(forge.facts(&stage));
    let [_, noted, guessed, _] = &forge.commits;
    let absent = [(InferenceSkip::MirrorAbsent, 1)];
    for commit in [noted, guessed] {
        let evidence = stage.inferred(&none, commit);
        assert_eq!(
            (calls(&evidence), skips(&evidence)),
            (vec![], absent.to_vec())
        );
    }
    // Nothing else is known about the pushed commit, but the answer is not that nothing is known.
    assert_eq!(
        stage.inferred(&none, guessed).repos.as_deref(),
        Some(&[][..])
    );

    // Without an explanation, the answer has the members that every answer has.
    let unexplained = CommitRequest {
        explain: false,
        ..CommitRequest::new(guessed.clone())
    };
    assert_eq!(
        stage.inferred_by(&none, unexplained),
        CommitEvidence::none(guessed.clone())
    );

    let other = Sources::new();
    other.mirror(&Repository::create(), NUMBER);
    let evidence = stage.inferred(&other, guessed);
    let unavailable = [(InferenceSkip::CommitDiffUnavailable, 1)];
    assert_eq!(skips(&evidence), unavailable);
    let unknown = CommitRequest {
        repository: by_identity(NUMBER),
        ..CommitRequest::new(commit('d'))
    };
    let nothing = CommitEvidence::none(commit('d'));
    assert_eq!(stage.inferred_by(&other, unknown.clone()), nothing);
    // A commit that nobody pushed is not searched for in a missing mirror.
    let evidence = stage.inferred_by(&none, unknown);
    assert_eq!(skips(&evidence), absent);

    let broken = Sources::new();
    broken.mirror(&forge.repository, NUMBER);
    broken.damage(NUMBER);
    let evidence = stage.inferred(&broken, noted);
    assert_eq!(skips(&evidence), unavailable);
    assert!(evidence.attributed, "observations are kept");
}

#[rstest]
fn quarantined_and_later_calls_are_not_considered(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, NUMBER);
    stage.add(forge.facts(&stage));
    // Just as similar, but observed later.
    let second = call(3)
        .session("u")
        .observed(1_500)
        .output(vec![text("assistant", GUESSED)]);
    let second = stage.store.encode(second.build(), at(3_000));
    stage.add([Append::InferenceCall(Box::new(second))]);
    let guessed = &forge.commits[2];
    let first = |evidence: &CommitEvidence| calls(evidence).first().map(|call| call.0);
    assert_eq!(first(&stage.inferred(&sources, guessed)), Some(id(2)));
    stage.quarantine(FactTable::InferenceCalls, id(2));
    assert_eq!(first(&stage.inferred(&sources, guessed)), Some(id(3)));
    stage.release(FactTable::InferenceCalls, id(2));
    assert_eq!(first(&stage.inferred(&sources, guessed)), Some(id(2)));
    let before_the_push = CommitRequest {
        as_of: Some(at(1_999)),
        ..CommitRequest::new(guessed.clone())
    };
    let none = CommitEvidence::none(guessed.clone());
    assert_eq!(stage.inferred_by(&sources, before_the_push), none);
}

#[rstest]
fn a_decision_with_an_ambiguous_call_id_is_not_attached(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, NUMBER);
    stage.add(forge.facts(&stage));
    let decisions = |stage: &Stage| {
        let evidence = stage.inferred(&sources, &forge.commits[1]);
        evidence.repos.unwrap()[0].decisions
    };
    assert_eq!(decisions(&stage), 1);
    let mut same = call(9).session("elsewhere").observed(1).build();
    same.call_aliases = vec!["t1".to_owned()];
    let same = stage.store.encode(same, at(3_000));
    stage.add([Append::InferenceCall(Box::new(same))]);
    assert_eq!(decisions(&stage), 0);
}

#[test]
fn both_backends_give_the_same_bytes_of_a_commit() {
    let forge = Forge::new();
    let sources = Sources::new();
    sources.mirror(&forge.repository, NUMBER);
    let texts: Vec<Vec<String>> = [Backend::Sqlite, Backend::Postgres]
        .into_iter()
        .filter_map(Stage::open)
        .map(|stage| {
            stage.add(forge.facts(&stage));
            let commits = forge.commits.iter();
            let answers = commits.map(|commit| stage.inferred(&sources, commit));
            answers
                .map(|answer| serde_json::to_string(&answer).unwrap())
                .collect()
        })
        .collect();
    assert!(
        texts.windows(2).all(|pair| pair[0] == pair[1]),
        "{texts:#?}"
    );
}

/// A repository with many commits and all kinds of pushes, and calls similar to what they add.
struct World {
    repository: Repository,
    commits: Vec<CommitSha>,
    facts: Vec<Append>,
    pushes: Vec<Push>,
}

const WORDS: [&str; 12] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu",
];

impl World {
    fn new(stage: &Stage, dice: &mut Dice) -> Self {
        let repository = Repository::create();
        let start = at(0).microseconds() / 1_000_000;
        let mut texts = Vec::new();
        let mut commits: Vec<CommitSha> = Vec::new();
        for number in 0..14 {
            if number > 2 && dice.below(3) == 0 {
                let place = usize::try_from(dice.below(number)).unwrap();
                repository.run(&["checkout", "-q", "--detach", commits[place].as_str()]);
            }
            if number > 4 && dice.below(5) == 0 {
                let place = usize::try_from(dice.below(number)).unwrap();
                let other = commits[place].as_str();
                repository.run(&["merge", "-q", "--no-commit", "--no-ff", "-s", "ours", other]);
            }
            let words: Vec<&str> = WORDS.into_iter().filter(|_| dice.below(2) == 0).collect();
            let text = format!("{} w{number}\n", words.join(" "));
            let path = format!("f{}.py", dice.below(4));
            fs::write(repository.folder().join("work").join(path), &text).unwrap();
            repository.run(&["add", "-A"]);
            let moment = start + i64::try_from(number * 60).unwrap();
            let commit = repository.commit_at("one", moment);
            repository.run(&["branch", &format!("b{number}")]);
            commits.push(CommitSha::new(&commit).unwrap());
            texts.push(text);
        }
        let mut facts = Vec::new();
        for number in 0..20_u64 {
            let place = usize::try_from(dice.below(14)).unwrap();
            let call = call(u128::from(1_000 + number))
                .session(["s", "t", "u"][usize::try_from(dice.below(3)).unwrap()])
                .observed(i64::try_from(dice.below(12_000)).unwrap())
                .output(vec![text("assistant", &texts[place])]);
            let call = stage.store.encode(call.build(), at(20_000));
            facts.push(Append::InferenceCall(Box::new(call)));
        }
        let mut pushes = Vec::new();
        for number in 0..10_u64 {
            let place = |dice: &mut Dice| usize::try_from(dice.below(14)).unwrap();
            let moment = 900 + i64::try_from(number * 1_000).unwrap();
            let (before, after) = (place(dice), place(dice));
            let push = Push {
                repository: Some(repository_101()),
                before_sha: commits[before].clone(),
                after_sha: commits[after].clone(),
                forced: dice.below(5) == 0,
                captured_at: at(moment),
                r#ref: format!("refs/heads/r{number}"),
                ..push(u128::from(2_000 + number))
            };
            pushes.push(push.clone());
            facts.push(pushed(push));
        }
        for number in 0..4_u64 {
            let place = usize::try_from(dice.below(14)).unwrap();
            let session = ["s", "t", "u"][usize::try_from(number % 3).unwrap()];
            facts.push(observed(SessionCommitObservation {
                repository: Some(repository_101()),
                commit_sha: commits[place].clone(),
                session_id: SessionId::new(session).unwrap(),
                captured_at: at(15_000),
                ..observation(u128::from(3_000 + number), id(2_000))
            }));
        }
        Self {
            repository,
            commits,
            facts,
            pushes,
        }
    }
}

fn repository_101() -> svc_model::repository::RepositoryIdentity {
    repository(NUMBER)
}

#[rstest]
#[case(Backend::Sqlite, 12)]
#[case(Backend::Postgres, 2)]
fn the_calls_found_for_each_commit_equal_those_of_all_pushes(
    #[case] backend: Backend,
    #[case] worlds: u64,
) {
    let mut found = 0;
    for seed in 0..worlds {
        let stage = stage!(backend);
        let World {
            repository,
            commits,
            mut facts,
            pushes,
        } = World::new(&stage, &mut Dice::new(seed));
        let sources = Sources::new();
        sources.mirror(&repository, NUMBER);
        // Two observations at one commit may be of the same Session.
        facts.dedup_by_key(|fact| match fact {
            Append::SessionCommitObservation(observation) => {
                format!("{}{:?}", observation.commit_sha, observation.session_id)
            }
            fact => format!("{fact:?}"),
        });
        stage.store.append_now(facts).unwrap();
        let attributions =
            attributions_of_pushes(&mut stage.snapshot(), sources.all(), &pushes).unwrap();
        for commit in &commits {
            let mut expected: BTreeMap<FactId, (f64, u64)> = BTreeMap::new();
            for row in attributions
                .rows
                .iter()
                .filter(|row| row.commit_sha == *commit)
            {
                let call = expected.entry(row.inference_call_id).or_default();
                *call = (call.0.max(row.similarity.value()), call.1 + 1);
            }
            found += expected.len();
            let evidence = stage.inferred_by(
                &sources,
                CommitRequest {
                    repository: by_identity(NUMBER),
                    ..CommitRequest::new(commit.clone())
                },
            );
            let calls = calls(&evidence);
            let calls = calls
                .into_iter()
                .map(|(id, _, score, files)| (id, (score, files)));
            assert_eq!(
                calls.collect::<BTreeMap<_, _>>(),
                expected,
                "{seed} {commit}"
            );
        }
    }
    assert!(found > usize::try_from(worlds).unwrap() * 2, "{found}");
}
