use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use svc_client::model::id::SessionId;
use svc_client::model::problem::QueryFault;
use svc_client::model::query::{RepositorySelector, SessionSummary, SessionsRequest};
use svc_client::model::repository::RepositoryName;
use svc_client::model::time::Instant;
use svc_client::{Client, ErrorKind};

/// By how much each poll overlaps with the one before. With several servers over one store, a
/// Session may be stored slightly later than another one that was captured after it.
const OVERLAP_MICROSECONDS: i64 = 60_000_000;
/// How long to wait between polls.
const PAUSE: Duration = Duration::from_secs(5);

/// Follows the Sessions of a service: each poll returns the new ones.
#[derive(Debug)]
pub struct Follower {
    client: Client,
    request: SessionsRequest,
    /// The Sessions in the overlap, with the time at which they were captured.
    seen: BTreeMap<SessionId, Instant>,
}

impl Follower {
    /// Starts with the Sessions that were captured from a moment on, of one repository or of all.
    pub fn new(client: Client, from: Instant, repository: Option<RepositoryName>) -> Self {
        let request = SessionsRequest {
            captured_after: Some(from),
            repository: repository.map_or_else(Default::default, RepositorySelector::named),
            ..SessionsRequest::default()
        };
        Self {
            client,
            request,
            seen: BTreeMap::new(),
        }
    }

    /// Returns the Sessions that were captured since the last poll, earliest first. After an error,
    /// the next poll returns them instead.
    pub async fn look(&mut self) -> Result<Vec<SessionSummary>, svc_client::Error> {
        // Pages are read on demand; the latest Session comes first.
        let mut found = self
            .client
            .sessions(self.request.clone())
            .collect_all()
            .await?;
        found.retain(|session| !self.seen.contains_key(&session.session_id));
        found.reverse();
        let captured = found.iter();
        self.seen
            .extend(captured.map(|session| (session.session_id.clone(), session.captured_at)));
        self.forget();
        Ok(found)
    }

    /// Forgets the Sessions that no later poll can return again.
    fn forget(&mut self) {
        let Some(last) = self.seen.values().max() else {
            return;
        };
        let from = Instant::from_microseconds(last.microseconds() - OVERLAP_MICROSECONDS);
        let from = from.max(self.request.captured_after);
        self.request.captured_after = from;
        self.seen.retain(|_, captured| Some(*captured) >= from);
    }
}

/// Returns whether the cursor is no longer valid, so that the next page would not continue the one
/// before.
fn is_of_cursor(error: &svc_client::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Query(QueryFault::SessionCursorMismatch)
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let from = arguments.next().ok_or("the first moment is missing")?;
    let repository = arguments.next();
    let repository = repository.map(|name| RepositoryName::new(&name).ok_or("not owner/name"));
    let mut follower = Follower::new(
        Client::from_env()?,
        Instant::parse(&from)?,
        repository.transpose()?,
    );
    loop {
        match follower.look().await {
            Ok(sessions) => {
                for session in sessions {
                    let (id, models) = (&session.session_id, session.models.join(", "));
                    writeln!(std::io::stdout(), "{} {id}: {models}", session.captured_at)?;
                }
            }
            // The next poll may succeed: the service was unavailable, or a fact was quarantined
            // between two pages.
            Err(error) if error.is_unavailable() || is_of_cursor(&error) => {
                writeln!(std::io::stderr(), "{error}")?;
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
