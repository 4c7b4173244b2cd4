//! Work on several threads, which ends before its caller goes on. Where the system has no thread left, those
//! that run do the work of the others.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

/// Threads of one caller.
const THREADS_MAX: usize = 4;

/// Does two things at once.
pub fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    let span = tracing::Span::current();
    let other = move || {
        let _entered = span.enter();
        other()
    };
    // Whoever takes it does it.
    let waiting = Mutex::new(Some(other));
    let take = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.take()
    };
    thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, || take().map(|other| other()));
        let one = one();
        if let Some(other) = take() {
            return (one, other());
        }
        match beside.map(ScopedJoinHandle::join) {
            Ok(Ok(Some(other))) => (one, other),
            Ok(Err(panic)) => resume_unwind(panic),
            Ok(Ok(None)) | Err(_) => unreachable!("it was taken by the thread, which ran it"),
        }
    })
}

/// Does something with each of several things, a few at a time, and returns what came of each in their
/// order.
pub fn at_once<T: Sync, R: Send, E: Send>(
    things: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(THREADS_MAX).min(things.len());
    if threads <= 1 {
        return things.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let span = tracing::Span::current();
    let some = || {
        let _entered = span.enter();
        let mut done = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(place) else {
                break;
            };
            let result = work(thing);
            if result.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            done.push((place, result));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let running =
            (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, some).ok());
        let running: Vec<_> = running.collect();
        let mut done = some();
        for thread in running {
            match thread.join() {
                Ok(more) => done.extend(more),
                Err(panic) => resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_keep_their_order() {
        let things: Vec<u32> = (0..100).collect();
        let doubled: Result<Vec<u32>, ()> = at_once(&things, |thing| Ok(thing * 2));
        assert_eq!(doubled, Ok((0..100).map(|thing| thing * 2).collect()));
        assert_eq!(
            at_once(&[], |thing: &u32| Err::<(), u32>(*thing)),
            Ok(vec![])
        );
    }

    #[test]
    fn both_results_of_two_parallel_tasks_are_returned() {
        let (one, other) = both(|| thread::current().id(), || "other");
        assert_eq!((one, other), (thread::current().id(), "other"));
        let nested = both(|| both(|| 1, || 2), || both(|| 3, || 4));
        assert_eq!(nested, ((1, 2), (3, 4)));
    }

    #[test]
    #[should_panic(expected = "of the other")]
    fn a_panic_of_the_other_thread_reaches_the_caller() {
        both(|| (), || panic!("of the other"));
    }

    #[test]
    fn one_failed_task_fails_all_of_them() {
        let things: Vec<u32> = (0..100).collect();
        let failed = at_once(&things, |thing| match thing {
            7 => Err(*thing),
            _ => Ok(()),
        });
        assert_eq!(failed, Err(7));
    }
}
