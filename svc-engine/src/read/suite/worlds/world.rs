//! Random worlds of facts, and queries about them.

use std::collections::BTreeSet;

use svc_engine_fact::testing::builders::pull_request;
use svc_engine_fact::{
    DeveloperDecision, EditObservation, InferenceCall, PullRequest, PullRequestMerge,
    PullRequestRevision, RejectedEdit, RepositoryRename, RetryLinkage,
};

use super::*;
use svc_model::ingest::GatewayProvider;
use svc_model::json::Text;
use svc_model::repository::{RepositoryHost, RepositoryIdentity};

pub(super) const SESSIONS: [&str; 4] = ["s", "t", "u", "never"];
const NAMES: [&str; 4] = ["own/a", "own/b", "own/c", "own/d"];
const RUNS: [&str; 5] = ["1", "2", "3", "4", "5"];
const COMMITS: [char; 3] = ['a', 'b', 'c'];
/// The second after which nothing is captured.
const END: u64 = 12;

/// A reproducible source of random choices.
pub(in crate::read::suite) struct Dice(u64);

impl Dice {
    pub(in crate::read::suite) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of SplitMix64.
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(in crate::read::suite) const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        let place = usize::try_from(self.below(choices.len() as u64)).unwrap();
        choices[place].clone()
    }

    fn id(&mut self) -> FactId {
        FactId::new(Uuid::from_u64_pair(self.next(), self.next()))
    }

    fn moment(&mut self) -> Instant {
        at(i64::try_from(self.below(END)).unwrap())
    }

    fn commit(&mut self) -> CommitSha {
        commit(self.one_of(&COMMITS))
    }

    fn session(&mut self) -> SessionId {
        SessionId::new(self.one_of(&SESSIONS[..3])).unwrap()
    }

    fn name(&mut self) -> &'static str {
        self.one_of(&NAMES)
    }

    /// The name in a fact that need not have one.
    fn name_or_empty(&mut self) -> String {
        if self.percent(20) { "" } else { self.name() }.to_owned()
    }

    fn identity(&mut self) -> RepositoryIdentity {
        let mut identity = repository(u32::try_from(1 + self.below(3)).unwrap());
        if self.percent(20) {
            identity.repository_host = RepositoryHost::new("forge.example").unwrap();
        }
        identity
    }

    fn identity_or_none(&mut self) -> Option<RepositoryIdentity> {
        self.percent(70).then(|| self.identity())
    }

    fn selector(&mut self) -> RepositorySelector {
        RepositorySelector {
            repo: self.percent(45).then(|| name(self.name())),
            identity: self.percent(45).then(|| self.identity()),
        }
    }

    fn as_of(&mut self) -> Option<Instant> {
        self.percent(50).then(|| self.moment())
    }
}

/// The stored facts of one organization.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) calls: Vec<InferenceCall>,
    pub(super) decisions: Vec<DeveloperDecision>,
    pub(super) edits: Vec<EditObservation>,
    pub(super) rejections: Vec<RejectedEdit>,
    pub(super) retries: Vec<RetryLinkage>,
    pub(super) pushes: Vec<Push>,
    pub(super) revisions: Vec<PullRequestRevision>,
    pub(super) merges: Vec<PullRequestMerge>,
    pub(super) renames: Vec<RepositoryRename>,
    pub(super) outcomes: Vec<CiOutcome>,
    pub(super) observations: Vec<SessionCommitObservation>,
    pub(super) quarantined: BTreeSet<FactId>,
}

impl Facts {
    fn ids(&self) -> Vec<(FactTable, FactId)> {
        let mut ids = Vec::new();
        macro_rules! ids {
            ($($list:ident $id:ident in $table:ident;)+) => {
                $(ids.extend(self.$list.iter().map(|fact| (FactTable::$table, fact.$id)));)+
            };
        }
        ids! {
            calls inference_call_id in InferenceCalls;
            decisions decision_id in DeveloperDecisions;
            edits observation_id in EditObservations;
            rejections rejection_id in RejectedEdits;
            retries retry_linkage_id in RetryLinkages;
            pushes push_id in Pushes;
            revisions revision_id in PullRequestRevisions;
            merges merge_id in PullRequestMerges;
            renames rename_id in RepositoryRenames;
            outcomes outcome_id in CiOutcomes;
            observations observation_id in SessionCommitObservations;
        }
        ids
    }
}

/// Two organizations in one database.
pub(super) struct World(Vec<(Store, Facts)>);

impl World {
    pub(super) fn make(database: &TestStore, seed: u64, dice: &mut Dice) -> Self {
        let organizations = ["one", "two"].map(|organization| {
            let org_id = format!("{organization}-{seed}");
            let store = database.open(&org_id);
            let mut facts = Facts::default();
            for _ in 0..25 {
                add_some(&store, &mut facts, dice);
            }
            let ledger = database.ledger(&org_id);
            for (table, fact_id) in facts.ids() {
                for action in marks(dice) {
                    let entry = NewQuarantineEntry {
                        quarantine_id: dice.id().uuid(),
                        table,
                        fact_id: fact_id.to_string(),
                        action,
                        reason: "because".to_owned(),
                        recorded_at: at(0),
                        client_id: "operator".to_owned(),
                    };
                    assert!(ledger.quarantine(&[entry]).unwrap()[0].target_found);
                    match action {
                        QuarantineAction::Quarantine => facts.quarantined.insert(fact_id),
                        QuarantineAction::Release => facts.quarantined.remove(&fact_id),
                    };
                }
            }
            (store, facts)
        });
        Self(organizations.into())
    }

    pub(super) fn organizations(&self) -> impl Iterator<Item = (&Store, &Facts)> {
        self.0.iter().map(|(store, facts)| (store, facts))
    }
}

/// What an operator does to a fact, step by step.
fn marks(dice: &mut Dice) -> Vec<QuarantineAction> {
    let mut marks = Vec::new();
    while dice.percent(20) {
        marks.push(dice.one_of(&[QuarantineAction::Quarantine, QuarantineAction::Release]));
    }
    marks
}

/// Declares the kinds of fact that are one row, each with the list that holds it.
macro_rules! rows {
    ($($kind:ident to $list:ident;)+) => {
        /// A fact that is kept once it is stored.
        enum Sent {
            InferenceCall(Box<InferenceCall>),
            $($kind($kind),)+
        }

        impl Sent {
            fn append(&self, store: &Store) -> Append {
                match self {
                    Self::InferenceCall(call) => {
                        let encoded = store.encode(InferenceCall::clone(call), call.observed_at);
                        Append::InferenceCall(Box::new(encoded))
                    }
                    $(Self::$kind(fact) => Append::$kind(Box::new(fact.clone())),)+
                }
            }

            fn keep(self, facts: &mut Facts) {
                match self {
                    Self::InferenceCall(call) => facts.calls.push(*call),
                    $(Self::$kind(fact) => facts.$list.push(fact),)+
                }
            }
        }
    };
}

rows! {
    DeveloperDecision to decisions;
    EditObservation to edits;
    RejectedEdit to rejections;
    RetryLinkage to retries;
    Push to pushes;
    PullRequestRevision to revisions;
    PullRequestMerge to merges;
    RepositoryRename to renames;
    CiOutcome to outcomes;
    SessionCommitObservation to observations;
}

/// Appends some facts as one delivery, and keeps those that were stored.
fn add_some(store: &Store, facts: &mut Facts, dice: &mut Dice) {
    let sent: Vec<Sent> = (0..=dice.below(6))
        .map(|_| match dice.below(16) {
            0 | 1 => Sent::InferenceCall(Box::new(any_call(dice))),
            2 => Sent::DeveloperDecision(any_decision(dice)),
            3 => Sent::EditObservation(any_edit(dice)),
            4 => Sent::RejectedEdit(any_rejection(dice)),
            5 => Sent::RetryLinkage(any_retry(dice)),
            6 | 7 => Sent::Push(any_push(dice)),
            8 => Sent::PullRequestRevision(any_revision(dice)),
            9 => Sent::PullRequestMerge(any_merge(dice)),
            10 => Sent::RepositoryRename(any_rename(dice)),
            11..14 => Sent::CiOutcome(any_outcome(dice)),
            _ => Sent::SessionCommitObservation(any_observation(facts, dice)),
        })
        .collect();
    let appended: Vec<Append> = sent.iter().map(|sent| sent.append(store)).collect();
    let outcomes = store.append_now(appended).unwrap();
    for (sent, outcome) in sent.into_iter().zip(outcomes) {
        // A redelivery or a conflict stores no fact.
        if let Outcome::Stored(_) = outcome {
            sent.keep(facts);
        }
    }
}

fn any_call(dice: &mut Dice) -> InferenceCall {
    InferenceCall {
        inference_call_id: dice.id(),
        session_id: dice.session(),
        gateway_provider: GatewayProvider::GatewayA,
        observed_at: dice.moment(),
        ..call(1).build()
    }
}

fn any_decision(dice: &mut Dice) -> DeveloperDecision {
    DeveloperDecision {
        decision_id: dice.id(),
        session_id: dice.session(),
        accepted: dice.percent(50),
        call_id: dice.percent(50).then(|| dice.one_of(&RUNS).to_owned()),
        occurred_at: dice.moment(),
        captured_at: dice.moment(),
        ..decision(1)
    }
}

fn any_edit(dice: &mut Dice) -> EditObservation {
    let call_id = dice.one_of(&RUNS);
    EditObservation {
        observation_id: dice.id(),
        session_id: dice.session(),
        occurred_at: dice.moment(),
        captured_at: dice.moment(),
        ..edit(1, call_id)
    }
}

fn any_rejection(dice: &mut Dice) -> RejectedEdit {
    let call_id = dice.one_of(&RUNS);
    RejectedEdit {
        rejection_id: dice.id(),
        session_id: dice.session(),
        occurred_at: dice.moment(),
        captured_at: dice.moment(),
        ..rejection(1, call_id)
    }
}

fn any_retry(dice: &mut Dice) -> RetryLinkage {
    let (rejected, accepted) = (dice.one_of(&RUNS), dice.one_of(&RUNS));
    RetryLinkage {
        retry_linkage_id: dice.id(),
        session_id: dice.session(),
        occurred_at: dice.moment(),
        captured_at: dice.moment(),
        ..linkage(1, rejected, accepted)
    }
}

fn any_push(dice: &mut Dice) -> Push {
    Push {
        push_id: dice.id(),
        repo: dice.name_or_empty(),
        repository: dice.identity_or_none(),
        before_sha: dice.commit(),
        after_sha: dice.commit(),
        captured_at: dice.moment(),
        ..push(1)
    }
}

fn any_pull_request(dice: &mut Dice) -> PullRequest {
    PullRequest {
        repo: dice.name().to_owned(),
        repository: dice.identity_or_none(),
        pr_number: i64::try_from(1 + dice.below(3)).unwrap(),
        head_repo: dice.percent(70).then(|| dice.name().to_owned()),
        head_repository: dice.identity_or_none(),
        head_sha: dice.commit(),
        base_sha: dice.commit(),
        ..pull_request()
    }
}

fn any_revision(dice: &mut Dice) -> PullRequestRevision {
    PullRequestRevision {
        revision_id: dice.id(),
        pull_request: any_pull_request(dice),
        captured_at: dice.moment(),
        ..revision(1)
    }
}

fn any_merge(dice: &mut Dice) -> PullRequestMerge {
    PullRequestMerge {
        merge_id: dice.id(),
        pull_request: any_pull_request(dice),
        captured_at: dice.moment(),
        ..merge(1)
    }
}

fn any_rename(dice: &mut Dice) -> RepositoryRename {
    RepositoryRename {
        rename_id: dice.id(),
        old_repo: name(dice.name()),
        new_repo: name(dice.name()),
        captured_at: dice.moment(),
        ..rename(1, dice.identity())
    }
}

fn any_outcome(dice: &mut Dice) -> CiOutcome {
    CiOutcome {
        outcome_id: dice.id(),
        run_id: dice.one_of(&RUNS).to_owned(),
        run_attempt: any_attempt(dice),
        repo: dice.name_or_empty(),
        repository: dice.identity_or_none(),
        commit_sha: dice.commit(),
        workflow_name: Text::from(dice.one_of(&["CI", ""])),
        result: any_result(dice),
        pr_number: any_pr_number(dice),
        signed: false,
        captured_at: dice.moment(),
        ..outcome(1, "")
    }
}

/// An observation whose push is one of the stored ones, or missing.
fn any_observation(facts: &Facts, dice: &mut Dice) -> SessionCommitObservation {
    let absent = facts.pushes.is_empty() || dice.percent(20);
    let source = (!absent).then(|| dice.one_of(&facts.pushes));
    let mut observation = SessionCommitObservation {
        observation_id: dice.id(),
        session_id: dice.session(),
        repo: name(dice.name()),
        repository: dice.identity_or_none(),
        commit_sha: dice.commit(),
        captured_at: dice.moment(),
        ..observation(1, dice.id())
    };
    if let Some(push) = source {
        observation.source_push_id = push.push_id;
        // Most agree with their push.
        if dice.percent(70) {
            observation.commit_sha = push.after_sha;
            observation.repository = push.repository;
            if let Some(name) = svc_model::repository::RepositoryName::new(&push.repo) {
                observation.repo = name;
            }
        }
    }
    observation
}

fn any_attempt(dice: &mut Dice) -> Option<i64> {
    dice.percent(30).then_some(2)
}

fn any_result(dice: &mut Dice) -> CiResult {
    dice.one_of(&[CiResult::Failed, CiResult::Failed, CiResult::Passed])
}

fn any_pr_number(dice: &mut Dice) -> Option<i64> {
    dice.percent(40).then_some(7)
}

pub(super) fn outcome_request(dice: &mut Dice) -> CiOutcomeRequest {
    CiOutcomeRequest {
        provider: CiProvider::Other,
        run_id: RunId::new(dice.one_of(&RUNS)).unwrap(),
        run_attempt: any_attempt(dice),
        latest: false,
        repository: dice.selector(),
        as_of: dice.as_of(),
    }
}

pub(super) fn failures_request(dice: &mut Dice) -> CiFailuresRequest {
    let repository = loop {
        let selector = dice.selector();
        if selector != RepositorySelector::default() {
            break selector;
        }
    };
    let from = dice.below(END / 2);
    let to = from + 1 + dice.below(END);
    let [from, to] = [from, to].map(|seconds| at(i64::try_from(seconds).unwrap()));
    CiFailuresRequest {
        as_of: dice.as_of(),
        result: any_result(dice),
        workflow_name: dice
            .percent(25)
            .then(|| dice.one_of(&["CI", "", "no"]).to_owned()),
        pr_number: dice.percent(20).then_some(7),
        ..CiFailuresRequest::new(repository, from, to)
    }
}

pub(super) fn commit_request(dice: &mut Dice) -> CommitRequest {
    CommitRequest {
        commit_sha: dice.commit(),
        repository: dice.selector(),
        as_of: dice.as_of(),
        explain: true,
    }
}
