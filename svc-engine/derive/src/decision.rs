//! Which call a decision belongs to.
//!
//! An agent names the call that it asked about by one of its own ids: that of a tool call, or the
//! model's id of the whole answer. A decision is attached when exactly one call of the organization
//! owns the id, and that call is in the same Session. Nothing is guessed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_fact::DeveloperDecision;
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId};
use svc_model::reports::{Counts, DecisionSkip};
use svc_model::time::Instant;

/// A decision, with what reports need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The id of the fact.
    pub decision_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// Whether the edited file is known.
    pub has_path: bool,
    /// Whether the edit was accepted.
    pub accepted: bool,
    /// Whether a person decided, rather than a rule.
    pub explicit: bool,
    /// Where the edit was proposed.
    pub interaction_mode: InteractionMode,
    /// When the decision was made, by the sender's clock.
    pub occurred_at: Instant,
    /// The agent's id of the call.
    pub call_id: Option<Arc<str>>,
}

impl From<&DeveloperDecision> for Decision {
    fn from(decision: &DeveloperDecision) -> Self {
        Self {
            decision_id: decision.decision_id,
            session_id: decision.session_id.clone(),
            agent_harness: decision.agent_harness,
            has_path: !decision.file_path.is_empty(),
            accepted: decision.accepted,
            explicit: decision.explicit,
            interaction_mode: decision.interaction_mode,
            occurred_at: decision.occurred_at,
            call_id: decision.call_id.as_deref().map(Arc::from),
        }
    }
}

/// A call's ownership of an id. If two calls own an id that a decision names, both must be given,
/// whatever their Sessions and whether or not they are in a cohort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOwner {
    /// The id: the model's, or that of a tool call.
    pub call_id: String,
    /// The call.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
}

/// Decisions and the calls that they are attached to. Each decision is attached or skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// The decisions by time, then by id. Duplicates are removed.
    pub all: Vec<Decision>,
    /// The call of each decision, if there is one.
    pub calls: Vec<Option<FactId>>,
    /// Why the others have none.
    pub skipped: Counts<DecisionSkip>,
}

impl Decisions {
    /// Attaches decisions to the calls that own their ids.
    pub fn attach(decisions: Vec<Decision>, owners: &[CallOwner]) -> Self {
        let all = distinct(decisions);
        let owners = unique_owners(owners);
        let mut skipped = Counts::default();
        let calls = all
            .iter()
            .map(|decision| match owner(decision, &owners) {
                Ok(call) => Some(call),
                Err(skip) => {
                    skipped.add(skip, 1);
                    None
                }
            })
            .collect();
        Self {
            all,
            calls,
            skipped,
        }
    }

    /// Returns the decisions that are attached, with their calls.
    pub fn attached(&self) -> impl Iterator<Item = (&Decision, FactId)> {
        self.all
            .iter()
            .zip(&self.calls)
            .filter_map(|(decision, call)| Some((decision, (*call)?)))
    }
}

/// Who owns an id.
#[derive(Clone, Copy, Debug)]
enum Owner<'o> {
    One(&'o CallOwner),
    Several,
}

/// The owner of each id.
type Owners<'o> = HashMap<&'o str, Owner<'o>, RandomState>;

fn unique_owners(owners: &[CallOwner]) -> Owners<'_> {
    let mut unique = Owners::with_capacity_and_hasher(owners.len(), RandomState::default());
    for owner in owners {
        unique
            .entry(&owner.call_id)
            .and_modify(|known| {
                if let Owner::One(first) = known
                    && first.inference_call_id != owner.inference_call_id
                {
                    *known = Owner::Several;
                }
            })
            .or_insert(Owner::One(owner));
    }
    unique
}

fn owner(decision: &Decision, owners: &Owners<'_>) -> Result<FactId, DecisionSkip> {
    let call_id = decision.call_id.as_deref().ok_or(DecisionSkip::Missing)?;
    match owners.get(call_id) {
        None => Err(DecisionSkip::Unmatched),
        Some(Owner::Several) => Err(DecisionSkip::Ambiguous),
        Some(Owner::One(owner)) if owner.session_id != decision.session_id => {
            Err(DecisionSkip::SessionMismatch)
        }
        Some(Owner::One(owner)) => Ok(owner.inference_call_id),
    }
}

/// Returns each decision once, sorted by time, then by id. Codex reports some twice, with and
/// without the file; the one with the file is kept.
pub fn distinct(mut decisions: Vec<Decision>) -> Vec<Decision> {
    let key = |decision: &Decision| {
        (
            decision.session_id.clone(),
            decision.accepted,
            decision.explicit,
            decision.interaction_mode,
            decision.occurred_at,
            decision.call_id.clone(),
        )
    };
    let is_codex = |decision: &Decision| decision.agent_harness == AgentHarness::Codex;
    let with_path: HashSet<_> = decisions
        .iter()
        .filter(|decision| is_codex(decision) && decision.has_path)
        .map(key)
        .collect();
    decisions.retain(|decision| {
        decision.has_path || !is_codex(decision) || !with_path.contains(&key(decision))
    });
    decisions.sort_unstable_by_key(|decision| (decision.occurred_at, decision.decision_id));
    decisions.dedup_by_key(|decision| decision.decision_id);
    decisions
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{at, decision, id};

    use super::*;

    fn on(number: u128, call_id: &str) -> Decision {
        let mut fact = decision(number);
        fact.call_id = Some(call_id.to_owned());
        Decision::from(&fact)
    }

    fn owner(call_id: &str, call: u128, session: &str) -> CallOwner {
        CallOwner {
            call_id: call_id.to_owned(),
            inference_call_id: id(call),
            session_id: SessionId::new(session).unwrap(),
        }
    }

    fn owners() -> Vec<CallOwner> {
        vec![
            owner("own", 100, "s"),
            owner("twice", 100, "s"),
            owner("twice", 101, "elsewhere"),
            owner("again", 100, "s"),
            owner("again", 100, "s"),
            owner("foreign", 102, "elsewhere"),
        ]
    }

    #[test]
    fn a_decision_is_attached_to_the_only_call_that_owns_its_id() {
        let nameless = Decision::from(&decision(9));
        for (decision, expected) in [
            (on(1, "own"), Ok(100)),
            (on(2, "again"), Ok(100)),
            (on(3, "twice"), Err(DecisionSkip::Ambiguous)),
            (on(4, "foreign"), Err(DecisionSkip::SessionMismatch)),
            (on(5, "unknown"), Err(DecisionSkip::Unmatched)),
            (nameless, Err(DecisionSkip::Missing)),
        ] {
            let decisions = Decisions::attach(vec![decision], &owners());
            assert_eq!(decisions.calls, [expected.ok().map(id)]);
            let skips: Vec<_> = decisions.skipped.iter().collect();
            let expected: Vec<_> = expected.err().map(|skip| (skip, 1)).into_iter().collect();
            assert_eq!(skips, expected);
        }
    }

    #[test]
    fn each_decision_is_attached_or_skipped_once_in_any_order() {
        let mut decisions: Vec<Decision> = ["own", "again", "twice", "foreign", "unknown", "own"]
            .iter()
            .zip(1..)
            .map(|(call_id, number)| on(number, call_id))
            .collect();
        let first = Decisions::attach(decisions.clone(), &owners());
        assert_eq!(first.attached().count() as u64 + first.skipped.total(), 6);
        decisions.reverse();
        decisions.extend(decisions.clone());
        let mut other_owners = owners();
        other_owners.reverse();
        assert_eq!(Decisions::attach(decisions, &other_owners), first);
    }

    #[test]
    fn a_codex_decision_without_a_path_yields_to_its_twin_with_one() {
        let codex = |number, has_path| {
            let mut decision = on(number, "own");
            decision.agent_harness = AgentHarness::Codex;
            decision.has_path = has_path;
            decision
        };
        let mut later = codex(3, false);
        later.occurred_at = at(5);
        let mut claude = on(4, "own");
        claude.has_path = false;
        let all = vec![codex(1, false), codex(2, true), later, claude];
        let decisions = Decisions::attach(all, &owners());
        let ids: Vec<FactId> = decisions
            .all
            .iter()
            .map(|decision| decision.decision_id)
            .collect();
        assert_eq!(ids, [id(2), id(4), id(3)]);
    }
}
