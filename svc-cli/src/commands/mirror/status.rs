use clap::Args;
use serde::Serialize;
use svc_engine::clock::Clock;
use svc_engine::mirror::{MirrorFailure, MirrorFolder, free_space};
use svc_engine::store::{JobState, MirrorStatus};
use svc_model::query::LifetimeIdentity;
use svc_model::time::Instant;

use super::{MirrorOptions, is_gone, refresh_command};
use crate::commands::store::ledger;
use crate::error::CommandError;
use crate::output::{Output, Table, escape, relative};

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    options: MirrorOptions,
}

/// The mirrors, for programs.
#[derive(Debug, Serialize)]
struct MirrorsStatus {
    /// The free bytes on the disk of the mirrors. `None` if this machine has no mirrors.
    free_bytes: Option<u64>,
    /// The bytes that are kept free on that disk.
    reserve_bytes: Option<u64>,
    mirrors: Vec<MirrorRow>,
}

#[derive(Debug, Serialize)]
struct MirrorRow {
    repo: String,
    repository_identity: Option<LifetimeIdentity>,
    state: &'static str,
    /// When it will be retried, or when it started.
    state_at: Option<Instant>,
    waiting_pushes: u64,
    attempts: u64,
    last_success_at: Option<Instant>,
    last_failure_at: Option<Instant>,
    last_failure: Option<String>,
    /// Whether the mirror was fetched but its folder is gone. `None` if the folder of the mirrors
    /// is not known here.
    folder_missing: Option<bool>,
    #[serde(skip)]
    is_failing: bool,
}

impl Status {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let settings = self.options.settings()?;
        let ledger = ledger(&settings.store.url, &settings.store.org_id, output)?;
        let now = Clock::system().now();
        let mirrors = ledger.snapshot()?.mirrors(now)?;
        let mirror = settings.mirror.as_ref();
        let org_id = settings.store.org_id;
        let folder = mirror.map(|mirror| MirrorFolder::new(&mirror.path, org_id));
        let shown = MirrorsStatus {
            free_bytes: mirror.and_then(|mirror| free_space(&mirror.path)),
            reserve_bytes: mirror.map(|mirror| mirror.reserve_bytes),
            mirrors: mirrors
                .into_iter()
                .map(|status| MirrorRow {
                    folder_missing: folder.as_ref().map(|folder| is_gone(Some(folder), &status)),
                    ..MirrorRow::from(status)
                })
                .collect(),
        };
        output.value(&shown, |shown| render(shown, now))?;
        let gone = |row: &&MirrorRow| row.folder_missing == Some(true);
        if let (Some(row), Some(folder)) = (shown.mirrors.iter().find(gone), &folder) {
            output.warning(&format!(
                "mirrors that were fetched are not in {} (folder missing); if they are in another \
                 folder, set SVC_MIRROR_PATH to it; to fetch one again: {}",
                folder.root().display(),
                refresh_command(&row.repo)
            ));
        }
        let mut named = Vec::new();
        for row in shown.mirrors.iter().filter(|row| row.is_failing) {
            let failure = row.last_failure.as_deref();
            // One example of each is enough.
            if let Some(failure) = failure.and_then(MirrorFailure::of_word)
                && !named.contains(&failure)
            {
                named.push(failure);
                let mend = failure.mend(&refresh_command(&row.repo));
                output.note(&format!("{failure}: {mend}"));
            }
        }
        if shown
            .free_bytes
            .zip(shown.reserve_bytes)
            .is_some_and(|(free, kept)| free < kept)
        {
            output.warning("the mirrors are paused: less than 1 GiB is free on their disk");
        }
        Ok(())
    }
}

impl From<MirrorStatus> for MirrorRow {
    fn from(status: MirrorStatus) -> Self {
        let is_failing = status.is_failing();
        let (state, state_at) = match status.state {
            JobState::Idle => ("idle", None),
            JobState::Waiting => ("waiting", None),
            JobState::Retrying(at) => ("retrying", Some(at)),
            JobState::Running(since) => ("running", Some(since)),
            JobState::GivenUp => ("given_up", None),
            JobState::Refused => ("refused", None),
        };
        Self {
            repo: status.repo,
            repository_identity: status
                .lifetime
                .identity()
                .cloned()
                .map(LifetimeIdentity::from),
            state,
            state_at,
            waiting_pushes: status.waiting_pushes,
            attempts: status.attempts,
            last_success_at: status.last_success_at,
            last_failure_at: status.last_failure_at,
            last_failure: status.last_failure,
            folder_missing: None,
            is_failing,
        }
    }
}

fn render(shown: &MirrorsStatus, now: Instant) -> String {
    if shown.mirrors.is_empty() {
        return "no mirrors yet: no push has arrived\n".to_owned();
    }
    let mut table = Table::new([
        "repository",
        "identity",
        "state",
        "pushes waiting",
        "failures",
        "last success",
        "last failure",
    ])
    .numbers(&[3, 4]);
    for row in &shown.mirrors {
        let identity = row.repository_identity.as_ref();
        let identity = identity.map(ToString::to_string);
        let state = match row.state_at {
            Some(at) if row.state == "running" => format!("started {}", relative(at, now)),
            Some(at) => format!("{} {}", row.state, relative(at, now)),
            None => row.state.to_owned(),
        };
        let state = match row.folder_missing {
            Some(true) => format!("{state}, folder missing"),
            _ => state,
        };
        let failure = match (&row.last_failure, row.last_failure_at) {
            (Some(reason), Some(at)) => format!("{reason}, {}", relative(at, now)),
            _ => "-".to_owned(),
        };
        table.row([
            escape(&row.repo),
            identity.unwrap_or_else(|| "-".to_owned()),
            state,
            row.waiting_pushes.to_string(),
            row.attempts.to_string(),
            row.last_success_at
                .map_or_else(|| "-".to_owned(), |at| relative(at, now)),
            failure,
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use svc_model::repository::{
        RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryProvider,
    };

    use super::*;

    #[test]
    fn a_mirror_is_one_line() {
        let at = |second: i64| Instant::from_microseconds(second * 1_000_000).unwrap();
        let identity = RepositoryIdentity {
            repository_provider: RepositoryProvider::Github,
            repository_host: RepositoryHost::new("github.com").unwrap(),
            repository_id: RepositoryId::new("7").unwrap(),
        };
        let row = |state, state_at| MirrorRow {
            repo: "own/na\u{1b}me".to_owned(),
            repository_identity: Some(LifetimeIdentity::from(identity.clone())),
            state,
            state_at,
            waiting_pushes: 2,
            attempts: 3,
            last_success_at: None,
            last_failure_at: Some(at(60)),
            last_failure: Some("fetch_failed".to_owned()),
            folder_missing: None,
            is_failing: true,
        };
        let shown = MirrorsStatus {
            free_bytes: None,
            reserve_bytes: None,
            mirrors: vec![row("retrying", Some(at(200))), row("running", Some(at(80)))],
        };
        let text = render(&shown, at(80));
        let lines: Vec<&str> = text.lines().collect();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(lines[1]),
            "own/na\\u{1b}me github/github.com/7 retrying in 2m 2 3 - fetch_failed, just now"
        );
        assert!(lines[2].contains("started just now"));
    }
}
