//! Whose turn it is to write an SQLite file: the writer's, or the checkpoint's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Whose turn it is: the writer's, or the checkpoint's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<TurnState>);

#[derive(Debug, Default)]
struct TurnState {
    taken: Mutex<bool>,
    given_back: Condvar,
    /// Whether the checkpoint waits for its turn. The writer then lets it go first.
    copying_waits: AtomicBool,
}

/// A turn, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct WritingTurn(Turn);

impl Turn {
    /// Waits for the writer's turn.
    pub(crate) fn write(&self) -> WritingTurn {
        self.take(|shared| shared.copying_waits.load(Ordering::Relaxed));
        WritingTurn(self.clone())
    }

    /// Waits for the checkpoint's turn, before the writer's next one.
    pub(crate) fn copy(&self) -> WritingTurn {
        self.0.copying_waits.store(true, Ordering::Relaxed);
        self.take(|_| false);
        self.0.copying_waits.store(false, Ordering::Relaxed);
        WritingTurn(self.clone())
    }

    fn take(&self, lets_go_first: impl Fn(&TurnState) -> bool) {
        let shared = &*self.0;
        let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken || lets_go_first(shared) {
            let waited = shared.given_back.wait(taken);
            taken = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *taken = true;
    }
}

impl Drop for WritingTurn {
    fn drop(&mut self) {
        let shared = &*self.0.0;
        *shared.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        shared.given_back.notify_all();
    }
}
