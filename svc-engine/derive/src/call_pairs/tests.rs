use proptest::prelude::*;
use svc_engine_fact::CalledTools;
use svc_model::id::SessionId;

use super::*;

const SECOND: i64 = 1_000_000;

fn at(seconds: i64) -> Instant {
    Instant::from_microseconds(seconds * SECOND).unwrap()
}

/// Returns a digest of a text, which stands for messages.
fn digest(messages: &str) -> MessagesDigest {
    use sha2::{Digest as _, Sha256};
    let mut digest = MessagesDigest::default();
    digest.copy_from_slice(&Sha256::digest(messages)[..16]);
    digest
}

/// A history: each message is a text, and those that begin with `toolu` are an assistant's tool call.
fn called(history: &[&str]) -> Vec<CalledTools> {
    let place = |(place, message): (usize, &&str)| {
        message.starts_with("toolu").then(|| CalledTools {
            before: digest(&history[..place].join("\n")),
            ids: vec![(*message).to_owned()],
        })
    };
    history.iter().enumerate().filter_map(place).collect()
}

fn half(side: HalfSide, sequence: i64, messages: &[&str]) -> KeptHalf {
    let key = u128::from(sequence.unsigned_abs()).to_be_bytes();
    let history = digest(&messages.join("\n"));
    let is_request = side == HalfSide::Request;
    let outline = HalfOutline {
        key,
        side,
        session_id: SessionId::new("s-2").unwrap(),
        query_source: "Explore".to_owned(),
        model: Some("claude-sonnet-4-5".to_owned()),
        prompt_id: Some("p".to_owned()),
        user_id: None,
        occurred_at: at(1_000),
        sequence: Some(sequence),
        request_id: None,
        captured_at: at(1_000),
        messages: if is_request { history } else { digest("") },
        input: if is_request { history } else { digest("") },
        called_tools: called(messages),
    };
    KeptHalf {
        outline,
        state: HalfState::Open,
        byte_count: 100,
        due_at: at(0),
    }
}

fn request(sequence: i64, messages: &[&str]) -> KeptHalf {
    half(HalfSide::Request, sequence, messages)
}

fn response(sequence: i64, message: &str) -> KeptHalf {
    half(HalfSide::Response, sequence, &[message])
}

/// What a store keeps of a Session, and what became of its halves, by sequence.
#[derive(Default)]
struct Session {
    kept: Vec<KeptHalf>,
    calls: Vec<(i64, i64)>,
    unpaired: Vec<i64>,
    attempts: Vec<i64>,
    last_arrival: Option<Instant>,
}

impl Session {
    fn arrive(&mut self, mut half: KeptHalf, now: Instant) {
        half.outline.captured_at = now;
        self.last_arrival = Some(now);
        self.kept.push(half);
        self.settle(now);
    }

    fn settle(&mut self, now: Instant) {
        let waits = PairingWaits::default();
        let settled = settle(&self.kept, self.last_arrival.unwrap(), now, waits);
        let sequence = |place: usize| self.kept[place].outline.sequence.unwrap();
        let mut gone = HashSet::new();
        let mut witnesses = HashSet::new();
        for settled in &settled {
            match settled {
                Settled::Call {
                    request,
                    response,
                    attempts,
                } => {
                    self.calls.push((sequence(*request), sequence(*response)));
                    gone.insert(*response);
                    witnesses.insert(*request);
                    for attempt in attempts {
                        self.attempts.push(sequence(*attempt));
                        gone.insert(*attempt);
                    }
                }
                Settled::Unpaired(place) => {
                    self.unpaired.push(sequence(*place));
                    gone.insert(*place);
                }
                Settled::Attempt(place) => {
                    self.attempts.push(sequence(*place));
                    gone.insert(*place);
                }
            }
        }
        for place in witnesses {
            self.kept[place].state = HalfState::Witness;
            self.kept[place].due_at = later(now, waits.grace);
        }
        let mut place = 0;
        self.kept.retain(|kept| {
            let is_over = kept.state == HalfState::Witness && kept.due_at <= now;
            let stays = !gone.contains(&place) && !is_over;
            place += 1;
            stays
        });
        self.calls.sort_unstable();
        self.unpaired.sort_unstable();
        self.attempts.sort_unstable();
    }
}

fn example() -> Vec<KeptHalf> {
    vec![
        request(10, &["left"]),
        request(11, &["right"]),
        response(12, "toolu_1"),
        response(13, "text"),
        request(14, &["right", "toolu_1", "result"]),
        response(15, "done"),
    ]
}

fn orders(halves: usize) -> Vec<Vec<usize>> {
    if halves == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(halves - 1);
    let longer = shorter.iter().flat_map(|order| {
        (0..=order.len()).map(|place| {
            let mut order = order.clone();
            order.insert(place, halves - 1);
            order
        })
    });
    longer.collect()
}

#[test]
fn parallel_subagents_are_told_apart_in_every_order_of_arrival() {
    let orders = orders(6);
    assert_eq!(orders.len(), 720);
    for order in orders {
        let mut session = Session::default();
        for (second, place) in (0..).zip(&order) {
            session.arrive(example()[*place].clone(), at(second));
        }
        assert_eq!(session.calls, [(11, 12)], "{order:?}");
        session.settle(at(100));
        assert_eq!(session.calls, [(10, 13), (11, 12), (14, 15)], "{order:?}");
        session.settle(at(10_000));
        assert_eq!((session.unpaired.len(), session.attempts.len()), (0, 0));
        assert_eq!(session.kept, []);
    }
}

#[test]
fn what_nothing_tells_apart_is_left_open_for_an_hour() {
    for order in orders(4) {
        let mut session = Session::default();
        for (second, place) in (0..).zip(&order) {
            session.arrive(example()[*place].clone(), at(second));
        }
        session.settle(at(3_602));
        assert_eq!(session.kept.len(), 4, "{order:?}");
        session.settle(at(3_603));
        assert_eq!(session.calls, []);
        assert_eq!(session.unpaired, [12, 13]);
        assert_eq!(session.attempts, [10, 11]);
    }
}

#[test]
fn a_request_that_is_sent_again_is_an_attempt() {
    let mut session = Session::default();
    session.arrive(request(1, &["a"]), at(0));
    session.arrive(request(2, &["a"]), at(1));
    session.arrive(response(3, "toolu_1"), at(2));
    session.arrive(request(4, &["a", "toolu_1", "result"]), at(3));
    assert_eq!(session.calls, [(2, 3)]);
    session.arrive(response(5, "done"), at(4));
    session.settle(at(63));
    assert_eq!(session.attempts, [1]);
    session.settle(at(64));
    assert_eq!(session.calls, [(2, 3), (4, 5)]);

    let mut session = Session::default();
    session.arrive(request(1, &["a"]), at(0));
    session.arrive(request(2, &["a"]), at(1));
    session.arrive(response(3, "text"), at(2));
    session.settle(at(61));
    assert_eq!(session.calls, []);
    session.settle(at(62));
    assert_eq!((session.calls, session.attempts), (vec![(2, 3)], vec![1]));
}

#[test]
fn agents_that_are_started_alike_get_a_response_each() {
    let halves = || {
        [
            request(1, &["a"]),
            request(2, &["a"]),
            response(3, "toolu_1"),
            response(4, "toolu_2"),
            request(5, &["a", "toolu_1", "one"]),
            request(6, &["a", "toolu_2", "two"]),
        ]
    };
    for order in orders(6) {
        let mut session = Session::default();
        for (second, place) in (0..).zip(&order) {
            session.arrive(halves()[*place].clone(), at(second));
        }
        let responses: Vec<i64> = session
            .calls
            .iter()
            .map(|(_, response)| *response)
            .collect();
        let requests: Vec<i64> = session.calls.iter().map(|(request, _)| *request).collect();
        assert_eq!(requests, [1, 2], "{order:?}");
        assert!(responses == [3, 4] || responses == [4, 3], "{order:?}");
    }
}

#[test]
fn other_sources_models_and_prompts_are_apart() {
    let changes: [fn(&mut HalfOutline); 3] = [
        |outline| outline.query_source = "compact".to_owned(),
        |outline| outline.model = Some("claude-haiku-4-5".to_owned()),
        |outline| outline.prompt_id = None,
    ];
    for change in changes {
        let mut session = Session::default();
        let mut other = request(1, &["other"]);
        change(&mut other.outline);
        session.arrive(other, at(0));
        session.arrive(response(3, "text"), at(0));
        session.settle(at(60));
        assert_eq!(session.calls, []);
        session.arrive(request(2, &["own"]), at(61));
        assert_eq!(session.calls, [(2, 3)]);
    }
    let mut session = Session::default();
    let mut request = request(1, &["a"]);
    request.outline.model = Some("anthropic/claude-sonnet-4-5-20250929".to_owned());
    session.arrive(request, at(0));
    session.arrive(response(2, "text"), at(0));
    session.settle(at(60));
    assert_eq!(session.calls, [(1, 2)], "the same model");
}

#[test]
fn time_counts_before_the_sequence() {
    let mut session = Session::default();
    let mut resumed = request(1, &["a"]);
    resumed.outline.occurred_at = at(2_000);
    session.arrive(resumed, at(0));
    session.arrive(response(9, "text"), at(0));
    session.settle(at(60));
    assert_eq!(session.calls, [], "the request is later");
}

#[test]
fn the_oldest_halves_are_evicted_first() {
    let mut halves = example();
    for (second, half) in (0..).zip(&mut halves) {
        half.outline.captured_at = at(10 - second);
    }
    assert_eq!(evict(&halves, 0, 0), []);
    assert_eq!(evict(&halves, 1, 0), [Settled::Unpaired(5)]);
    assert_eq!(
        evict(&halves, 101, 0),
        [Settled::Unpaired(5), Settled::Attempt(4)]
    );
    assert_eq!(evict(&halves, u64::MAX, 0).len(), 6);
    assert_eq!(evict(&halves, 0, 2).len(), 2);
}

/// An agent: its turns, each a number of tool calls before a last text. What is said of each is
/// different from what others say.
fn agent(name: usize, turns: &[usize], step: &mut impl FnMut(Step)) {
    let mut history = vec![format!("task {name}")];
    for (turn, calls) in turns.iter().enumerate() {
        for call in 0..=*calls {
            let answer = if call < *calls {
                format!("toolu {name} {turn} {call}")
            } else {
                format!("text {name} {turn}")
            };
            step(Step {
                history: history.clone(),
                answer: answer.clone(),
            });
            history.push(answer);
            history.push(format!("reply {name} {turn} {call}"));
        }
    }
}

struct Step {
    history: Vec<String>,
    answer: String,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Subagents of one name work at once, some requests are sent again, and the records arrive in any
    /// order.
    #[test]
    fn no_response_is_paired_with_the_request_of_another(
        agents in proptest::collection::vec(proptest::collection::vec(0_usize..4, 1..4), 1..5),
        choices in proptest::collection::vec(any::<u8>(), 256),
        arrivals in proptest::collection::vec(any::<u16>(), 256),
    ) {
        let mut steps: Vec<Vec<Step>> = Vec::new();
        for (name, turns) in agents.iter().enumerate() {
            let mut own = Vec::new();
            agent(name, turns, &mut |step| own.push(step));
            own.reverse();
            steps.push(own);
        }
        let mut halves = Vec::new();
        let mut waiting: Vec<Option<(i64, Step)>> = steps.iter().map(|_| None).collect();
        let mut truth = HashMap::new();
        let mut sequence = 0;
        let mut choices = choices.into_iter().cycle();
        let mut choose = move || usize::from(choices.next().unwrap());
        while steps.iter().any(|own| !own.is_empty()) || waiting.iter().any(Option::is_some) {
            let agent = choose() % steps.len();
            sequence += 1;
            if let Some((asked, step)) = waiting[agent].take() {
                truth.insert(sequence, asked);
                halves.push(response(sequence, &step.answer));
            } else if let Some(step) = steps[agent].pop() {
                let history: Vec<&str> = step.history.iter().map(|text| &**text).collect();
                halves.push(request(sequence, &history));
                if choose() % 5 == 0 {
                    sequence += 1;
                    halves.push(request(sequence, &history));
                }
                waiting[agent] = Some((sequence, step));
            }
        }
        let all = halves.len();
        let mut order: Vec<usize> = (0..all).collect();
        order.sort_by_key(|place| arrivals[place % arrivals.len()]);
        let mut session = Session::default();
        for place in order {
            session.arrive(halves[place].clone(), at(0));
        }
        session.settle(at(60));
        session.settle(at(120));
        session.settle(at(4_000));
        // A request that was sent again may arrive when its response has the first already.
        let asked = |sequence: i64| {
            let mut all = halves.iter().map(|half| &half.outline);
            all.find(|outline| outline.sequence == Some(sequence)).unwrap().input
        };
        for (request, response) in &session.calls {
            prop_assert_eq!(asked(truth[response]), asked(*request));
        }
        let settled = 2 * session.calls.len() + session.unpaired.len() + session.attempts.len();
        prop_assert_eq!(settled, all);
    }
}
