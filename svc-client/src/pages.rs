//! Lists that are read page by page.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};

use crate::error::Failure;
use crate::{Error, ErrorKind};

/// A stream of the items of a list, which reads its pages on demand. It ends after the first error.
/// If the cursors lead back to a page that was read before, the error is
/// [`ErrorKind::CursorRepeated`].
pub struct Pages<T>(Pin<Box<dyn Stream<Item = Result<T, Error>> + Send + 'static>>);

impl<T: Send + 'static> Pages<T> {
    /// Returns a stream of the items that `read` returns. `read` returns each page with the request
    /// for the next one, if there is one.
    pub(crate) fn of<R, F>(first: R, read: impl Fn(R) -> F + Send + 'static) -> Self
    where
        R: Clone + PartialEq + Send + 'static,
        F: Future<Output = Result<(Vec<T>, Option<R>), Error>> + Send + 'static,
    {
        let trail = Trail::new(first.clone());
        let pages = stream::try_unfold((Some(first), trail), move |(next, mut trail)| {
            let page = next.map(&read);
            async move {
                let Some(page) = page else {
                    return Ok(None);
                };
                let (items, next) = page.await?;
                if next.as_ref().is_some_and(|next| trail.leads_back(next)) {
                    return Err(Failure::new(ErrorKind::CursorRepeated).after(1));
                }
                let items = stream::iter(items.into_iter().map(Ok));
                Ok::<_, Error>(Some((items, (next, trail))))
            }
        });
        Self(Box::pin(pages.try_flatten()))
    }
}

/// Detects that requests go in a circle, however long, without keeping all of them. Only one is
/// remembered, and it is replaced after twice as many steps each time (Brent's algorithm).
struct Trail<R> {
    remembered: R,
    steps: u64,
    steps_max: u64,
}

impl<R: Clone + PartialEq> Trail<R> {
    fn new(first: R) -> Self {
        Self {
            remembered: first,
            steps: 0,
            steps_max: 1,
        }
    }

    fn leads_back(&mut self, next: &R) -> bool {
        if *next == self.remembered {
            return true;
        }
        self.steps += 1;
        if self.steps == self.steps_max {
            self.remembered = next.clone();
            self.steps = 0;
            self.steps_max = self.steps_max.saturating_mul(2);
        }
        false
    }
}

impl<T> Pages<T> {
    /// Returns the next item, or the error that ends the stream; nothing after that.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        self.0.next().await
    }

    /// Returns all remaining items.
    ///
    /// # Errors
    ///
    /// The error of the first page that cannot be read. The items that were read before it are
    /// lost.
    pub async fn collect_all(self) -> Result<Vec<T>, Error> {
        self.0.try_collect().await
    }
}

impl<T> Stream for Pages<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}
