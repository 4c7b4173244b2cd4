//! What the writer is asked to do.

use svc_model::facts::FactTable;
use tokio::sync::oneshot;

use super::append::PreparedDelivery;
use super::outcome::Outcome;
use super::transaction::Transaction;
use crate::sql::error::StoreError;

/// A request to the writer.
pub(crate) enum Command {
    /// Facts. They are written together with the facts of others.
    Append(Box<AppendRequest>),
    /// Anything else. It is written after the facts.
    Work(Box<dyn Work>),
}

/// A delivery that waits for the writer, and who waits for its outcomes.
pub(crate) struct AppendRequest {
    pub(crate) delivery: PreparedDelivery,
    pub(crate) outcomes: Vec<Outcome>,
    answer: oneshot::Sender<Result<Vec<Outcome>, StoreError>>,
}

/// Work in the writer's transaction. It may be tried several times.
pub(crate) trait Work: Send {
    fn write(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError>;

    /// Answers the sender, after the transaction was committed or given up.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct AnsweredWork<T, F> {
    work: F,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Work for AnsweredWork<T, F>
where
    T: Send,
    F: FnMut(&mut Transaction<'_>) -> Result<T, StoreError> + Send,
{
    fn write(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
        self.result = Some((self.work)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match failure {
            None => self.result.ok_or(StoreError::NotStored),
            Some(error) => Err(error),
        };
        // If the sender is gone, nobody needs the answer.
        drop(self.answer.send(answer));
    }
}

impl Command {
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Append(append) => append.delivery.weight(),
            Self::Work(_) => 1,
        }
    }

    /// Returns whether the command stores facts of a kind.
    pub(crate) fn has(&self, table: FactTable) -> bool {
        match self {
            Self::Append(append) => append.delivery.has(table),
            Self::Work(_) => false,
        }
    }

    /// Answers the sender, after the transaction was committed or given up.
    pub(crate) fn answer(self, failure: Option<StoreError>) {
        match self {
            Self::Append(append) => {
                let answer = match failure {
                    None => Ok(append.outcomes),
                    Some(error) => Err(error),
                };
                // If the sender is gone, nobody needs the answer.
                drop(append.answer.send(answer));
            }
            Self::Work(work) => work.answer(failure),
        }
    }
}

/// Returns the command that appends a delivery, and where its answer comes.
pub(crate) fn appending(
    delivery: PreparedDelivery,
) -> (Command, oneshot::Receiver<Result<Vec<Outcome>, StoreError>>) {
    let (answer, answered) = oneshot::channel();
    let outcomes = Vec::new();
    let append = AppendRequest {
        delivery,
        outcomes,
        answer,
    };
    (Command::Append(Box::new(append)), answered)
}

/// Returns the command that does some work, and where its answer comes.
pub(crate) fn working<T: Send + 'static>(
    work: impl FnMut(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
) -> (Command, oneshot::Receiver<Result<T, StoreError>>) {
    let (answer, answered) = oneshot::channel();
    let work = Box::new(AnsweredWork {
        work,
        result: None,
        answer,
    });
    (Command::Work(work), answered)
}
