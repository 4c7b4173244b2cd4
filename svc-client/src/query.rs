use svc_model::endpoint::{
    CiFailuresQuery, CiOutcomeQuery, CiRunsQuery, CommitQuery, SessionQuery, SessionsQuery,
};
use svc_model::id::SessionId;
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeRecord, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitLink, CommitRequest, SessionDossier, SessionDossierRequest, SessionList,
    SessionSummary, SessionsRequest,
};

use crate::error::Failure;
use crate::{Client, Error, ErrorKind, Pages};

/// Investigating, for an operator token: from a failed run to its commit
/// ([`CiOutcomeRecord::commit_query`], [`Client::commit_at`]), from a commit to its Sessions
/// ([`Client::session_dossier`]).
impl Client {
    /// Returns the outcome of one run; nothing when no such run is stored and visible.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn ci_outcome(
        &self,
        request: &CiOutcomeRequest,
    ) -> Result<Option<CiOutcomeRecord>, Error> {
        Ok(self.call::<CiOutcomeQuery>(request).await?.outcome)
    }

    /// Returns the runs that an id or a URL names, in whichever system, and what came with their
    /// commit.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn ci_runs(&self, request: &CiRunsRequest) -> Result<CiRuns, Error> {
        self.call::<CiRunsQuery>(request).await
    }

    /// Returns one page of a repository's outcomes with one result, latest first.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn ci_failures_page(&self, request: &CiFailuresRequest) -> Result<CiFailures, Error> {
        self.call::<CiFailuresQuery>(request).await
    }

    /// Returns a repository's outcomes with one result, latest first, page after page as they are
    /// asked for.
    ///
    /// Every page is of the same boundary, so what is captured meanwhile does not appear. When a fact
    /// is quarantined or released between two pages, the rest would no longer fit the beginning: the
    /// stream then ends with [`QueryFault::CursorMismatch`](svc_model::problem::QueryFault).
    ///
    /// ```no_run
    /// # async fn failures(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::{query::*, repository::RepositoryName, time::Instant};
    ///
    /// let mut failures = client.ci_failures(CiFailuresRequest::new(
    ///     RepositorySelector::named(RepositoryName::new("acme/shop").ok_or("no name")?),
    ///     Instant::parse("2026-11-01T00:00:00Z")?,
    ///     Instant::parse("2026-12-01T00:00:00Z")?,
    /// ));
    /// while let Some(failure) = failures.next().await {
    ///     let commit = client.commit_at(&failure?.commit_query).await?;
    ///     println!("{}: {}", commit.commit_sha, commit.attributed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn ci_failures(&self, request: CiFailuresRequest) -> Pages<CiOutcomeRecord> {
        let client = self.clone();
        Pages::of(request, move |request| {
            let client = client.clone();
            async move {
                let page = client.ci_failures_page(&request).await?;
                let next = page.next_cursor.map(|cursor| CiFailuresRequest {
                    cursor: Some(cursor),
                    ..request
                });
                Ok((page.outcomes, next))
            }
        })
    }

    /// Returns one page of Sessions, the latest first. It may hold fewer than were asked for, even
    /// none, and name a next page all the same.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn sessions_page(&self, request: &SessionsRequest) -> Result<SessionList, Error> {
        self.call::<SessionsQuery>(request).await
    }

    /// Returns Sessions, the latest first, page after page as they are asked for.
    ///
    /// The order is that in which their first facts were captured, so a Session that goes on meanwhile
    /// is neither missed nor told twice. When a fact is quarantined or released between two pages, the
    /// stream ends with
    /// [`QueryFault::SessionCursorMismatch`](svc_model::problem::QueryFault).
    ///
    /// ```no_run
    /// # async fn follow(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::{query::*, repository::RepositoryName};
    ///
    /// let shop = RepositoryName::new("acme/shop").ok_or("no name")?;
    /// let mut sessions = client.sessions(SessionsRequest {
    ///     repository: RepositorySelector::named(shop),
    ///     ..SessionsRequest::default()
    /// });
    /// while let Some(session) = sessions.next().await {
    ///     let session = session?;
    ///     println!("{}: {:?}", session.session_id, session.models);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sessions(&self, request: SessionsRequest) -> Pages<SessionSummary> {
        let client = self.clone();
        Pages::of(request, move |request| {
            let client = client.clone();
            async move {
                let page = client.sessions_page(&request).await?;
                let next = page.next_cursor.map(|cursor| SessionsRequest {
                    cursor: Some(cursor),
                    ..request
                });
                Ok((page.sessions, next))
            }
        })
    }

    /// Returns everything that was captured of a Session, as metadata, with the files of its
    /// events and what was pushed and checked with its commits; nothing when no fact named it.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn session_dossier(
        &self,
        session_id: &SessionId,
    ) -> Result<Option<SessionDossier>, Error> {
        let request = SessionDossierRequest::new(session_id.clone());
        Ok(self.call::<SessionQuery>(&request).await?.dossier())
    }

    /// Returns the Sessions, calls and CI outcomes of a commit, by repository. Its calls are guesses by what
    /// they wrote, apart from the observed Sessions; where they were not looked for, `inference_skipped` has
    /// the reason.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn commit(&self, request: &CommitRequest) -> Result<CommitEvidence, Error> {
        self.call::<CommitQuery>(request).await
    }

    /// Follows the link of an outcome to its commit, at the boundary of the reply with the outcome.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unaddressable`] when the link asks what this version cannot ask; otherwise see
    /// [`ErrorKind`].
    pub async fn commit_at(&self, link: &CommitLink) -> Result<CommitEvidence, Error> {
        let request = link
            .request()
            .ok_or_else(|| Failure::new(ErrorKind::Unaddressable).after(0))?;
        let explained = CommitRequest {
            explain: true,
            ..request
        };
        self.commit(&explained).await
    }
}
