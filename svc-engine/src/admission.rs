//! Limits how many reads run at once.
//!
//! A read that scans takes one of the read slots, and waits for one as long as its reader wants. A
//! free slot goes to the reader who uses the fewest, then to the one who was served longest ago,
//! then to whoever asked first. A token of agents uses at most half of the slots, and all of them
//! together leave one to operators, so no token keeps out anybody else.
//!
//! A short read, of counts or of CI outcomes, takes no slot but is bounded too: some run at once,
//! some wait without a thread until their deadline, and any more are refused. Each read has its
//! connections reserved, a read with a slot two, so neither kind waits for the other, nor for
//! background work.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_model::limit::READ_WAIT_SECONDS;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::Error;

/// Reads of one reader that may wait for a slot.
const SLOT_READS_WAITING: usize = 256;
/// Short reads that may run at once.
const SHORT_READS: usize = 4;
/// Short reads that may wait for their turn.
const SHORT_READS_WAITING: usize = 256;
/// Snapshots of the mirror workers, of the derivation after refreshes, and of an operator's
/// question about the schema.
const BACKGROUND_READS: usize = svc_model::limit::MIRROR_WORKERS + 2;

/// Who reads, and how long it waits for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    name: ReaderName,
    wait: Duration,
}

/// The token of an agent, or `None` for operators.
type ReaderName = Option<Arc<str>>;

impl Reader {
    /// Returns the reader for all operators, the console included.
    pub const fn operator() -> Self {
        Self {
            name: None,
            wait: Duration::from_secs(READ_WAIT_SECONDS),
        }
    }

    /// Returns the reader for the agents with this token.
    pub fn agent(token: &str) -> Self {
        Self {
            name: Some(token.into()),
            ..Self::operator()
        }
    }

    /// Sets how long it waits for a slot at most.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Self {
        Self {
            wait: wait.min(self.wait),
            ..self
        }
    }
}

/// The use of the read slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotUse {
    /// Slots in use.
    pub in_use: usize,
    /// Reads refused because no slot became free in time.
    pub refused: u64,
}

/// The places for reads.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Arc<Slots>,
    short: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// The place of one read, returned when this is dropped.
#[derive(Debug)]
pub(crate) enum ReadPlace {
    Slot { _slot: ReadSlot },
    Short { _permit: OwnedSemaphorePermit },
}

/// A read slot in use.
#[derive(Debug)]
pub(crate) struct ReadSlot {
    slots: Arc<Slots>,
    name: ReaderName,
}

impl Drop for ReadSlot {
    fn drop(&mut self) {
        self.slots.release(&self.name);
    }
}

#[derive(Debug)]
struct Slots {
    number: usize,
    turns: Mutex<Turns>,
}

/// Who uses the slots, and who waits for one.
#[derive(Debug, Default)]
struct Turns {
    used: usize,
    used_by_agents: usize,
    /// One for each configured token at most.
    readers: HashMap<ReaderName, ReaderTurn>,
    /// In the order of arrival.
    waiting: VecDeque<(ReaderName, oneshot::Sender<ReadSlot>)>,
    served: u64,
    refused: u64,
}

/// The slots that one reader uses, and when it was last given one.
#[derive(Clone, Copy, Debug, Default)]
struct ReaderTurn {
    used: usize,
    last: u64,
}

impl Turns {
    fn turn(&self, name: &ReaderName) -> ReaderTurn {
        self.readers.get(name).copied().unwrap_or_default()
    }

    /// Returns whether a reader may use one more of this number of slots now.
    fn has_room(&self, number: usize, name: &ReaderName) -> bool {
        let of_agents = (number - 1).max(1);
        let of_one = (number / 2).max(1);
        self.used < number
            && (name.is_none() || self.used_by_agents < of_agents && self.turn(name).used < of_one)
    }

    fn begin(&mut self, name: &ReaderName) {
        self.served += 1;
        self.used += 1;
        self.used_by_agents += usize::from(name.is_some());
        let turn = self.readers.entry(name.clone()).or_default();
        turn.used += 1;
        turn.last = self.served;
    }

    fn end(&mut self, name: &ReaderName) {
        self.used -= 1;
        self.used_by_agents -= usize::from(name.is_some());
        if let Some(turn) = self.readers.get_mut(name) {
            turn.used -= 1;
        }
    }

    /// Gives a slot to the reader whose turn it is, if there is one.
    fn next(&mut self, number: usize) -> Option<(ReaderName, oneshot::Sender<ReadSlot>)> {
        self.waiting.retain(|(_, answer)| !answer.is_closed());
        let waiting = self.waiting.iter().enumerate();
        let able = waiting.filter(|(_, (name, _))| self.has_room(number, name));
        let (place, _) = able.min_by_key(|(place, (name, _))| {
            let turn = self.turn(name);
            (turn.used, turn.last, *place)
        })?;
        let next = self.waiting.remove(place)?;
        self.begin(&next.0);
        Some(next)
    }
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(self: &Arc<Self>, name: &ReaderName) {
        let next = {
            let mut turns = self.lock();
            turns.end(name);
            turns.next(self.number)
        };
        if let Some((name, answer)) = next {
            let slots = Arc::clone(self);
            // The slot of whoever stopped waiting is dropped, and so passed on.
            drop(answer.send(ReadSlot { slots, name }));
        }
    }
}

impl Admission {
    /// Creates the places, `slots` of them with a read slot.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            slots: Arc::new(Slots {
                number: slots.max(1),
                turns: Mutex::default(),
            }),
            short: Arc::new(Semaphore::new(SHORT_READS)),
            waiting: Arc::new(Semaphore::new(SHORT_READS_WAITING)),
        }
    }

    /// Returns the number of connections for this many slots and everything else.
    pub(crate) const fn connections(slots: usize) -> usize {
        2 * slots + SHORT_READS + BACKGROUND_READS
    }

    /// Takes a read slot, and waits for it as long as the reader wants.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if none becomes free in time, or too many reads of the reader wait already.
    pub(crate) async fn slot(&self, reader: &Reader) -> Result<ReadPlace, Error> {
        let name = &reader.name;
        let (answer, slot) = oneshot::channel();
        {
            let mut turns = self.slots.lock();
            if turns.has_room(self.slots.number, name) {
                turns.begin(name);
                return Ok(ReadPlace::Slot {
                    _slot: ReadSlot {
                        slots: Arc::clone(&self.slots),
                        name: name.clone(),
                    },
                });
            }
            let waiting = turns.waiting.iter().filter(|(other, _)| other == name);
            if reader.wait.is_zero() || waiting.count() >= SLOT_READS_WAITING {
                turns.refused += 1;
                return Err(Error::Busy);
            }
            turns.waiting.push_back((name.clone(), answer));
        }
        if let Ok(Ok(slot)) = tokio::time::timeout(reader.wait, slot).await {
            return Ok(ReadPlace::Slot { _slot: slot });
        }
        self.slots.lock().refused += 1;
        Err(Error::Busy)
    }

    /// Returns the use of the read slots.
    pub(crate) fn slot_use(&self) -> SlotUse {
        let turns = self.slots.lock();
        SlotUse {
            in_use: turns.used,
            refused: turns.refused,
        }
    }

    /// Waits for a place of a short read.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if too many wait already, [`Error::Deadline`] if none becomes free in time.
    pub(crate) async fn short(&self, deadline: &Deadline) -> Result<ReadPlace, Error> {
        if let Ok(permit) = Arc::clone(&self.short).try_acquire_owned() {
            return Ok(ReadPlace::Short { _permit: permit });
        }
        let waiting = self.waiting.try_acquire().map_err(|_| Error::Busy)?;
        let permit = Arc::clone(&self.short).acquire_owned();
        let permit = tokio::time::timeout_at(deadline.instant().into(), permit).await;
        drop(waiting);
        match permit {
            Ok(Ok(permit)) => Ok(ReadPlace::Short { _permit: permit }),
            Ok(Err(_)) => Err(Error::Busy),
            Err(_) => Err(Error::Deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(future)
    }

    /// A read that waits a minute, which no test lasts.
    fn patient(reader: Reader) -> Reader {
        Reader {
            wait: Duration::from_mins(1),
            ..reader
        }
    }

    type Asking<'a> = std::pin::Pin<Box<dyn Future<Output = Result<ReadPlace, Error>> + 'a>>;

    /// Returns the place of a read, unless it waits.
    fn poll(read: &mut Asking<'_>) -> Option<ReadPlace> {
        let mut context = Context::from_waker(Waker::noop());
        match read.as_mut().poll(&mut context) {
            Poll::Ready(place) => Some(place.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_slot_is_refused_only_to_a_reader_that_does_not_wait() {
        run(async {
            let admission = Admission::new(2);
            let hasty = Reader::operator().waiting(Duration::ZERO);
            let first = admission.slot(&hasty).await.unwrap();
            let second = admission.slot(&hasty).await.unwrap();
            assert!(matches!(admission.slot(&hasty).await, Err(Error::Busy)));
            let brief = Reader::operator().waiting(Duration::from_millis(1));
            assert!(matches!(admission.slot(&brief).await, Err(Error::Busy)));
            let expected = SlotUse {
                in_use: 2,
                refused: 2,
            };
            assert_eq!(admission.slot_use(), expected);
            // A slot that nobody waits for any more is free.
            drop((first, second));
            assert_eq!(admission.slot_use().in_use, 0);
            admission.slot(&hasty).await.unwrap();
        });
    }

    #[test]
    fn sixteen_reads_get_one_slot_after_another_in_the_order_of_arrival() {
        run(async {
            let admission = Admission::new(2);
            let reader = patient(Reader::operator());
            let mut reads: Vec<Asking<'_>> = (0..16)
                .map(|_| Box::pin(admission.slot(&reader)) as _)
                .collect();
            let mut running: VecDeque<ReadPlace> = reads.iter_mut().filter_map(poll).collect();
            assert_eq!(running.len(), 2);
            for read in &mut reads[2..] {
                running.pop_front();
                running.push_back(poll(read).expect("its turn"));
            }
            drop(running);
            let expected = SlotUse::default();
            assert_eq!(admission.slot_use(), expected);
        });
    }

    /// Whose read gets each slot that becomes free, and how many run before, while `asking` wait.
    fn order(slots: usize, asking: &[&str]) -> (Vec<String>, Vec<String>) {
        run(async {
            let admission = Admission::new(slots);
            let reader = |name: &str| match name {
                "operator" => patient(Reader::operator()),
                token => patient(Reader::agent(token)),
            };
            let readers: Vec<Reader> = asking.iter().map(|name| reader(name)).collect();
            let mut reads: Vec<(&str, Asking<'_>)> = Vec::new();
            let mut running = VecDeque::new();
            let (mut first, mut then) = (Vec::new(), Vec::new());
            for (name, reader) in asking.iter().zip(&readers) {
                let mut read: Asking<'_> = Box::pin(admission.slot(reader));
                match poll(&mut read) {
                    Some(place) => {
                        running.push_back(place);
                        first.push((*name).to_owned());
                    }
                    None => reads.push((name, read)),
                }
            }
            while running.pop_front().is_some() {
                reads.retain_mut(|(name, read)| match poll(read) {
                    Some(place) => {
                        running.push_back(place);
                        then.push((*name).to_owned());
                        false
                    }
                    None => true,
                });
            }
            assert!(reads.is_empty(), "somebody waits in vain");
            (first, then)
        })
    }

    #[test]
    fn no_token_keeps_out_an_operator_or_another_token() {
        for (slots, asking, first, then) in [
            // One token has half of the slots, and the operator the other.
            (2, "a a a a operator", "a operator", "a a a"),
            (4, "a a a a operator b", "a a operator b", "a a"),
            // All tokens together leave one slot to operators.
            (4, "a a b b b operator", "a a b operator", "b b"),
            // One read of a greedy token, then everybody else's.
            (2, "a a a a b operator", "a operator", "b a a a"),
            (1, "a a a b operator", "a", "b operator a a"),
            // Operators do not keep out agents either.
            (
                2,
                "operator operator operator operator a",
                "operator operator",
                "a operator operator",
            ),
        ] {
            let asking: Vec<&str> = asking.split(' ').collect();
            let words = |words: &str| words.split(' ').map(str::to_owned).collect();
            assert_eq!(
                order(slots, &asking),
                (words(first), words(then)),
                "{asking:?}"
            );
        }
    }

    #[test]
    fn short_reads_take_no_slot_and_wait_in_a_bounded_queue() {
        run(async {
            let admission = Admission::new(1);
            let long = Deadline::after(Duration::from_mins(1));
            let _slot = admission.slot(&Reader::operator()).await.unwrap();
            let mut running = Vec::new();
            for _ in 0..SHORT_READS {
                running.push(admission.short(&long).await.unwrap());
            }
            let soon = Deadline::after(Duration::from_millis(5));
            let late = admission.short(&soon).await;
            assert!(matches!(late, Err(Error::Deadline)));

            let mut queue: Vec<_> = (0..SHORT_READS_WAITING)
                .map(|_| Box::pin(admission.short(&long)))
                .collect();
            for waiting in &mut queue {
                let mut context = Context::from_waker(Waker::noop());
                assert!(waiting.as_mut().poll(&mut context).is_pending());
            }
            assert!(matches!(admission.short(&long).await, Err(Error::Busy)));
            drop(running.pop());
            queue.remove(0).await.unwrap();
        });
    }
}
