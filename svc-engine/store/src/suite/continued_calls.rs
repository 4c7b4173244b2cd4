//! Calls whose input begins with all that another call sent and received, and Sessions that continue
//! others.

use svc_engine_fact::{CallKey, CallKeyKind, ContinuedInput, SessionContinuation, Workplace};
use svc_model::ingest::{GatewayProvider, RejectedCall};
use svc_model::query::ContinuedSession;
use svc_model::usage::CallSource;

use super::*;
use crate::backup::{Watch, verify_store};

/// A call as the reader of a transcript sends it.
#[derive(Clone, Debug)]
struct Sent {
    number: u128,
    session: &'static str,
    response: Option<String>,
    own: Option<String>,
    after: Option<String>,
    input: Vec<Message>,
    output: Vec<Message>,
}

impl Sent {
    fn new(number: u128, session: &'static str) -> Self {
        Self {
            number,
            session,
            response: Some(format!("r{number}")),
            own: None,
            after: None,
            input: vec![text("user", &format!("ask {number}"))],
            output: vec![finished("assistant", &format!("answer {number}"))],
        }
    }

    fn after(self, number: u128) -> Self {
        self.after_id(&format!("r{number}"))
    }

    fn after_id(mut self, id: &str) -> Self {
        self.after = Some(id.to_owned());
        self
    }

    fn known_as(mut self, response: Option<&str>, own: Option<&str>) -> Self {
        self.response = response.map(str::to_owned);
        self.own = own.map(str::to_owned);
        self
    }

    fn call(&self) -> InferenceCall {
        let mut call = call(self.number)
            .session(self.session)
            .observed(i64::try_from(self.number).unwrap())
            .input(self.input.clone())
            .output(self.output.clone())
            .build();
        let session_id = session(self.session);
        let response = self.response.as_deref();
        let response = response.map(|id| CallKey::new(CallKeyKind::Response, id));
        let own = self.own.as_deref();
        let own = own.map(|id| CallKey::client("agent", &session_id, id));
        call.keys = response.into_iter().chain(own).collect();
        call.capture_source = CallSource::Transcript;
        call.agent = Some("agent".to_owned());
        call.workplace = Workplace {
            cwd: Some("/work/app".to_owned()),
            git_branch: Some("main".to_owned()),
            subagent: Some("helper".to_owned()),
        };
        call.gateway_provider = GatewayProvider::Unknown;
        call.further_id = Some(id(self.number + 1_000));
        call
    }

    fn fact(&self, store: &Store) -> Append {
        let continued = self.after.as_deref().map(|id| ContinuedInput {
            id: id.to_owned(),
            agent: "agent".to_owned(),
            session_ids: vec![session(self.session)],
        });
        let encoded = store.encode_continued(self.call(), continued, at(1));
        Append::InferenceCall(Box::new(encoded))
    }
}

fn finished(role: &str, content: &str) -> Message {
    let mut message = text(role, content);
    message.finish_reason = Some("stop".into());
    message
}

fn send(store: &Store, calls: &[Sent]) -> Vec<Outcome> {
    let facts: Vec<Append> = calls.iter().map(|sent| sent.fact(store)).collect();
    store.append_now(facts).unwrap()
}

fn rejected(reason: RejectedCall) -> Outcome {
    Outcome::Rejected(reason)
}

/// Returns the canonical form of a message.
fn canonical(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::write::content::write_message(message, &mut bytes);
    bytes
}

fn verified(database: &TestStore) {
    let mut watch = Watch {
        deadline: Deadline::after(std::time::Duration::from_mins(1)),
        progress: &mut |_, _| {},
    };
    let found = verify_store(database.url(), &mut watch).unwrap();
    assert_eq!((found.total, found.findings), (0, vec![]));
}

#[rstest]
fn the_input_is_what_the_earlier_call_sent_and_received_and_then_what_was_sent(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values(true, false)] together: bool,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let calls = [
        Sent::new(1, "s"),
        Sent::new(2, "s").after(1),
        // A dead branch.
        Sent::new(3, "s").after(1),
        Sent::new(4, "s").after(2),
    ];
    let outcomes = if together {
        send(&store, &calls)
    } else {
        let one = |sent: &Sent| send(&store, std::slice::from_ref(sent))[0];
        calls.iter().map(one).collect()
    };
    let stored = [1, 2, 3, 4].map(|number| Outcome::Stored(id(number)));
    assert_eq!(outcomes, stored);
    let said = |number: u128| {
        [
            canonical(&text("user", &format!("ask {number}"))),
            canonical(&text("assistant", &format!("answer {number}"))),
        ]
    };
    let [asked, answered] = said(1);
    let found = messages(&store, "s");
    let ask = |number| said(number)[0].clone();
    let second = vec![asked.clone(), answered.clone(), ask(2)];
    assert_eq!(found[1].0, second);
    assert_eq!(found[2].0, [asked, answered, ask(3)]);
    assert_eq!(
        found[3].0,
        [second, vec![said(2)[1].clone(), ask(4)]].concat()
    );
    for (number, (_, output)) in (1..).zip(&found) {
        let own = finished("assistant", &format!("answer {number}"));
        assert_eq!(
            output,
            &[canonical(&own)],
            "an answer keeps its finish reason"
        );
    }
    // Again, and one that is new.
    let again = [calls[3].clone(), Sent::new(5, "s").after(4)];
    let outcomes = send(&store, &again);
    assert_eq!(
        outcomes,
        [Outcome::Redelivered(id(4)), Outcome::Stored(id(5))]
    );
    assert_eq!(messages(&store, "s")[4].0.len(), 7);
    verified(&database);
}

#[rstest]
fn a_call_is_named_by_its_response_or_by_the_id_that_its_agent_gave_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let first = Sent::new(1, "s").known_as(None, Some("e1"));
    let second = Sent::new(2, "s").known_as(Some("r2"), Some("e2"));
    let calls = [
        first,
        second.after_id("e1"),
        Sent::new(3, "s").after_id("r2"),
        Sent::new(4, "s").after_id("e2"),
        // That id is of another Session.
        Sent::new(5, "t").after_id("e2"),
        Sent::new(6, "t").after_id("r2"),
    ];
    let mut expected = [1, 2, 3, 4, 5, 6].map(|number| Outcome::Stored(id(number)));
    expected[4] = rejected(RejectedCall::AfterUnknown);
    assert_eq!(send(&store, &calls), expected);
    assert_eq!(messages(&store, "t")[0].0.len(), 5);
    // The agent's own id goes before an equal id of a response elsewhere.
    let foreign = Sent::new(8, "u").known_as(Some("e1"), None);
    let next = Sent::new(9, "s").after_id("e1");
    let stored = [8, 9].map(|number| Outcome::Stored(id(number)));
    assert_eq!(send(&store, &[foreign, next]), stored);
    let asked = canonical(&text("user", "ask 1"));
    assert_eq!(messages(&store, "s").last().unwrap().0[0], asked);
    // A Session finds what the Sessions have that it continues.
    let said = SessionContinuation {
        session_id: session("t"),
        continues_session_id: session("s"),
        last: Some(CallKey::new(CallKeyKind::Response, "r2")),
        observed_at: at(9),
        received_at: at(9),
    };
    let mut delivery = Delivery::default();
    delivery.continuations.push(said);
    store.append_now(delivery).unwrap();
    let late = Sent::new(7, "t").after_id("e2");
    assert_eq!(send(&store, &[late]), [Outcome::Stored(id(7))]);
    verified(&database);
}

#[rstest]
fn a_call_that_builds_on_one_that_is_not_stored_is_rejected_and_may_come_again(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let calls = [
        Sent::new(2, "s").after(1),
        Sent::new(3, "s").after(2),
        // Not itself either.
        Sent::new(4, "s").after(4),
        Sent::new(5, "s"),
    ];
    let unknown = rejected(RejectedCall::AfterUnknown);
    let expected = [unknown, unknown, unknown, Outcome::Stored(id(5))];
    assert_eq!(send(&store, &calls), expected);
    let again = [Sent::new(1, "s"), calls[0].clone(), calls[1].clone()];
    let stored = [1, 2, 3].map(|number| Outcome::Stored(id(number)));
    assert_eq!(send(&store, &again), stored);
    verified(&database);
}

#[rstest]
fn nothing_is_composed_of_erased_content_and_a_quarantined_call_is_content(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    send(&store, &[Sent::new(1, "s"), Sent::new(2, "t")]);
    set(
        &database,
        FactTable::InferenceCalls,
        id(2),
        QuarantineAction::Quarantine,
    );
    let on = Sent::new(3, "t").after(2);
    assert_eq!(send(&store, &[on]), [Outcome::Stored(id(3))]);
    assert_eq!(messages(&store, "t").last().unwrap().0.len(), 3);
    let subject = ErasureSubject::Session(session("s"));
    let deadline = Deadline::after(std::time::Duration::from_mins(1));
    let ledger = database.ledger("acme");
    let plan = ledger.plan_erasure(&subject, &deadline).unwrap();
    ledger
        .erase(plan, &erasure_order(&subject), &deadline, &mut |_| {})
        .unwrap();
    let kept = |number: u128| {
        let ids = [id(number)];
        let kind = FactTable::InferenceCalls;
        let mut found = store.snapshot_now().facts_of(kind, &ids).unwrap();
        let Some(StoredFact::InferenceCall(call)) = found.pop() else {
            panic!("the call is absent");
        };
        (call.agent.is_some(), call.workplace)
    };
    assert_eq!(kept(1), (true, Workplace::default()));
    assert_eq!(kept(3), (true, Sent::new(3, "t").call().workplace));
    let erased = rejected(RejectedCall::AfterErased);
    assert_eq!(send(&store, &[Sent::new(4, "s").after(1)]), [erased]);
    assert_eq!(
        send(&store, &[Sent::new(1, "s")]),
        [Outcome::Redelivered(id(1))]
    );
    verified(&database);
}

#[rstest]
fn a_call_of_any_source_can_be_continued(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values(true, false)] together: bool,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut gateway = Sent::new(1, "s").call();
    gateway.capture_source = CallSource::Gateway;
    gateway.input_messages.insert(0, text("system", "be exact"));
    let gateway = Append::InferenceCall(Box::new(store.encode(gateway, at(1))));
    let copy = Sent::new(2, "s").known_as(Some("r1"), None);
    let next = Sent::new(3, "s").after(1);
    let sent = [copy, next].map(|sent| sent.fact(&store));
    let outcomes = if together {
        store.append_now(std::iter::once(gateway).chain(sent).collect::<Vec<_>>())
    } else {
        store.append_now(vec![gateway]).unwrap();
        let outcomes = store.append_now(Vec::from(sent));
        outcomes.map(|outcomes| [vec![Outcome::Stored(id(1))], outcomes].concat())
    };
    let expected = [
        Outcome::Stored(id(1)),
        Outcome::Redelivered(id(1)),
        Outcome::Stored(id(3)),
    ];
    assert_eq!(outcomes.unwrap(), expected);
    let found = messages(&store, "s");
    let system = canonical(&text("system", "be exact"));
    assert_eq!((found[1].0.len(), &found[1].0[0]), (4, &system));
    verified(&database);
}

fn continues(store: &Store, session_id: &str) -> Vec<(String, Option<FactId>)> {
    let found = store
        .snapshot_now()
        .continued_sessions(&session(session_id));
    let one = |continued: ContinuedSession| {
        assert_eq!(
            continued.inference_call_id.is_some(),
            continued.occurred_at.is_some()
        );
        (
            continued.session_id.to_string(),
            continued.inference_call_id,
        )
    };
    found.unwrap().into_iter().map(one).collect()
}

#[rstest]
fn calls_that_another_session_copies_are_stored_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values(true, false)] together: bool,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let first = [Sent::new(1, "a"), Sent::new(2, "a").after(1)];
    let copy = |number: u128, of: usize| Sent {
        number,
        session: "b",
        own: Some(format!("own {number}")),
        ..first[of].clone()
    };
    let second = [
        copy(11, 0),
        copy(12, 1),
        Sent::new(3, "b").after_id("own 12"),
    ];
    let outcomes = if together {
        send(&store, &[&first[..], &second[..]].concat())
    } else {
        [send(&store, &first), send(&store, &second)].concat()
    };
    let expected = [
        Outcome::Stored(id(1)),
        Outcome::Stored(id(2)),
        Outcome::Copied(id(1)),
        Outcome::Copied(id(2)),
        Outcome::Stored(id(3)),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(messages(&store, "b")[0].0.len(), 5);
    let a = "a".to_owned();
    assert_eq!(continues(&store, "b"), [(a.clone(), Some(id(2)))]);
    let by = store.snapshot_now().continuing_sessions(&session("a"));
    assert_eq!(by.unwrap(), [session("b")]);
    // Nothing changes when it comes again, and a copy that answered otherwise is a call of its own.
    assert_eq!(send(&store, &second[..2]), expected[2..4]);
    let mut other = copy(13, 0);
    other.output = vec![finished("assistant", "something else")];
    assert_eq!(send(&store, &[other]), [Outcome::StoredApart(id(1_013))]);
    verified(&database);
    set(
        &database,
        FactTable::InferenceCalls,
        id(2),
        QuarantineAction::Quarantine,
    );
    assert_eq!(continues(&store, "b"), [(a, None)]);
}

#[rstest]
fn a_session_that_only_copies_is_a_session_and_goes_with_the_one_that_it_continues(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values("a", "b")] erased: &str,
) {
    let database = database!(backend);
    let store = database.open("acme");
    send(&store, &[Sent::new(1, "a")]);
    let copy = Sent {
        session: "b",
        number: 9,
        ..Sent::new(1, "a")
    };
    assert_eq!(
        send(&store, std::slice::from_ref(&copy)),
        [Outcome::Copied(id(1))]
    );
    assert!(
        store
            .snapshot_now()
            .session_span(&session("b"))
            .unwrap()
            .is_some()
    );
    verified(&database);
    let subject = ErasureSubject::Session(session(erased));
    let deadline = Deadline::after(std::time::Duration::from_mins(1));
    let ledger = database.ledger("acme");
    let plan = ledger.plan_erasure(&subject, &deadline).unwrap();
    ledger
        .erase(plan, &erasure_order(&subject), &deadline, &mut |_| {})
        .unwrap();
    assert_eq!(continues(&store, "b"), []);
    send(&store, &[copy]);
    assert_eq!(continues(&store, "b").is_empty(), erased == "a");
    verified(&database);
}

#[rstest]
fn what_a_sender_says_of_a_session_is_kept_even_if_nobody_knows_the_other(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let said = |last: Option<&str>| {
        let mut delivery = Delivery::default();
        delivery.continuations.push(SessionContinuation {
            session_id: session("b"),
            continues_session_id: session("a"),
            last: last.map(|id| CallKey::new(CallKeyKind::Response, id)),
            observed_at: at(4),
            received_at: at(5),
        });
        store.append_now(delivery).unwrap();
    };
    let a = "a".to_owned();
    said(Some("r1"));
    assert_eq!(continues(&store, "b"), [(a.clone(), None)]);
    send(&store, &[Sent::new(1, "a"), Sent::new(2, "a").after(1)]);
    for (last, call) in [(Some("r2"), 2), (Some("r1"), 2), (None, 2)] {
        said(last);
        assert_eq!(continues(&store, "b"), [(a.clone(), Some(id(call)))]);
    }
    // A cycle is kept, and nobody runs in it.
    let mut delivery = Delivery::default();
    delivery.continuations.push(SessionContinuation {
        session_id: session("a"),
        continues_session_id: session("b"),
        last: None,
        observed_at: at(6),
        received_at: at(6),
    });
    store.append_now(delivery).unwrap();
    let lost = Sent::new(7, "a").after_id("no such call");
    assert_eq!(
        send(&store, &[lost]),
        [rejected(RejectedCall::AfterUnknown)]
    );
    verified(&database);
}

#[rstest]
fn ids_of_two_calls_of_a_session_are_a_conflict(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let shared = |number, own| Sent::new(number, "s").known_as(Some("r"), Some(own));
    // Two answers under one id of a response, as some servers give it.
    let both = [shared(1, "e1"), shared(2, "e2")];
    let expected = [Outcome::Stored(id(1)), Outcome::StoredApart(id(1_002))];
    assert_eq!(send(&store, &both), expected);
    let again = [Outcome::Redelivered(id(1)), Outcome::Redelivered(id(1_002))];
    assert_eq!(send(&store, &both), again);
    // An equal answer too, if its agent knows it as another.
    let mut equal = shared(4, "e4");
    equal.output.clone_from(&both[0].output);
    let equal = [equal];
    assert_eq!(send(&store, &equal), [Outcome::StoredApart(id(1_004))]);
    assert_eq!(send(&store, &equal), [Outcome::Redelivered(id(1_004))]);
    let mut neither = shared(3, "e2");
    neither.output = vec![finished("assistant", "a third answer")];
    let conflict = rejected(RejectedCall::InferenceCallIdentityConflict);
    assert_eq!(send(&store, &[neither]), [conflict]);
    verified(&database);
}

#[rstest]
fn an_input_that_is_too_large_is_rejected(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let large = "x".repeat(24 * 1024 * 1024);
    let calls: Vec<Sent> = (1..5)
        .map(|number| {
            let mut sent = Sent::new(number, "s");
            sent.input = vec![text("user", &large)];
            if number > 1 {
                sent.after(number - 1)
            } else {
                sent
            }
        })
        .collect();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for call in &calls {
        outcomes.extend(send(&store, std::slice::from_ref(call)));
    }
    let expected = [
        Outcome::Stored(id(1)),
        Outcome::Stored(id(2)),
        rejected(RejectedCall::InputTooLarge),
        rejected(RejectedCall::AfterUnknown),
    ];
    assert_eq!(outcomes, expected);
}

/// A step of a conversation.
#[derive(Clone, Debug)]
struct Step {
    /// The earlier step that it continues.
    after: Option<usize>,
    input: Vec<u8>,
    output: Vec<u8>,
    is_finished: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let said = || proptest::collection::vec(0_u8..4, 0..4);
    let after = any::<Option<prop::sample::Index>>();
    let step = (after, said(), said(), any::<bool>());
    proptest::collection::vec(step, 1..12).prop_map(|steps| {
        let steps = steps.into_iter().enumerate();
        let steps = steps.map(|(place, (after, input, output, is_finished))| Step {
            after: after.filter(|_| place > 0).map(|after| after.index(place)),
            input,
            output,
            is_finished,
        });
        steps.collect()
    })
}

fn said(role: &str, words: &[u8]) -> Vec<Message> {
    words
        .iter()
        .map(|word| text(role, &format!("word {word}")))
        .collect()
}

#[test]
fn calls_sent_by_difference_are_stored_as_if_their_inputs_were_sent_whole() {
    let database = TestStore::create(Backend::Sqlite).unwrap();
    let runs = std::cell::Cell::new(0_u128);
    proptest!(ProptestConfig::with_cases(48), |(steps in steps(), split in 1..12_usize)| {
        let run = runs.get() + 1;
        runs.set(run);
        let [by_difference, whole] = ["difference", "whole"].map(|how| database.open(&format!("{how}{run}")));
        let mut inputs: Vec<Vec<Message>> = Vec::new();
        let mut sent = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let mut call = Sent::new(run * 1_000 + place as u128, "s");
            call.input = said("user", &step.input);
            call.output = said("assistant", &step.output);
            if let Some(last) = call.output.last_mut().filter(|_| step.is_finished) {
                last.finish_reason = Some("stop".into());
            }
            let mut whole = match step.after {
                Some(after) => {
                    let earlier: &Sent = &sent[after];
                    let answer = earlier.output.iter().cloned().map(|mut message| {
                        message.finish_reason = None;
                        message
                    });
                    inputs[after].iter().cloned().chain(answer).collect()
                }
                None => Vec::new(),
            };
            whole.extend(call.input.clone());
            inputs.push(whole);
            sent.push(step.after.map_or(call.clone(), |after| call.after(run * 1_000 + after as u128)));
        }
        for sent in sent.chunks(split) {
            send(&by_difference, sent);
        }
        for (sent, input) in sent.iter().zip(&inputs) {
            let whole_call = Sent {
                number: sent.number + 500,
                after: None,
                input: input.clone(),
                ..sent.clone()
            };
            send(&whole, &[whole_call]);
        }
        let both = [&by_difference, &whole].map(|store| messages(store, "s"));
        prop_assert!(both[0] == both[1] && both[0].len() == sent.len());
        let measure = |store: &Store| store.snapshot_now().call_measure(&session("s")).unwrap();
        prop_assert_eq!(measure(&by_difference), measure(&whole));
    });
}
