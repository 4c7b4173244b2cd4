//! Removes mirrors without recent pushes, at an operator's request. Facts stay, and the next push
//! fetches the mirror again.

use std::io;
use std::time::Duration;

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_engine_store::{Ledger, Snapshot, StoreError};
use svc_model::repository::RepositoryName;
use svc_model::time::Instant;

use super::allowance::Allowance;
use super::folder::{LockError, MirrorFolder};

/// The version of the rule for keeping mirrors; it changes with `decide`.
pub const GC_POLICY_VERSION: &str = "1";
/// How long to wait for others who are using a mirror.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How long mirrors are kept.
#[derive(Clone, Copy, Debug)]
pub struct MirrorRetention {
    /// The current time.
    pub now: Instant,
    /// How many days to keep a mirror after its last push.
    pub days: u32,
}

/// What happens to a mirror, or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcAction {
    /// It is kept.
    Kept(GcReason),
    /// It is removed.
    Removed,
}

/// Why a mirror is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcReason {
    /// No visible push names it. Its pushes may be quarantined, and be released later.
    QuarantineAmbiguous,
    /// It was pushed to recently.
    WithinRetention,
    /// It could not be removed.
    RemoveFailed,
}

impl GcReason {
    /// Returns the reason's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuarantineAmbiguous => "quarantine_ambiguous",
            Self::WithinRetention => "within_retention",
            Self::RemoveFailed => "remove_failed",
        }
    }
}

/// A mirror that the collection looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedMirror {
    /// The repository.
    pub lifetime: Lifetime,
    /// A name of the repository, if any fact gives one.
    pub repo: Option<RepositoryName>,
    /// When the last visible push was received.
    pub last_push_at: Option<Instant>,
    /// What happened, or would happen.
    pub action: GcAction,
}

/// Why nothing was collected.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The folder cannot be read.
    #[error("the folder of the mirrors cannot be read")]
    Folder(#[from] io::Error),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Looks at every mirror, ordered by repository. If `apply` is given, the old mirrors are removed,
/// and this ledger of the store forgets them.
///
/// # Errors
///
/// If the folder or the store cannot be read.
pub fn collect(
    folder: &MirrorFolder,
    snapshot: &mut Snapshot<'_>,
    retention: MirrorRetention,
    apply: Option<&Ledger>,
) -> Result<Vec<CollectedMirror>, GcError> {
    let mut collected = Vec::new();
    for lifetime in folder.mirrors()? {
        let last_push_at = snapshot.last_push_at(&lifetime)?;
        let repo = display_name(snapshot, &lifetime)?;
        let mut action = decide(last_push_at, retention);
        if let Some(ledger) = apply
            && action == GcAction::Removed
        {
            // The ledger comes first, so that an interruption leaves an extra mirror rather than a
            // false claim of one.
            ledger.forget_mirror(&lifetime)?;
            if remove(folder, &lifetime).is_err() {
                action = GcAction::Kept(GcReason::RemoveFailed);
            }
        }
        collected.push(CollectedMirror {
            lifetime,
            repo,
            last_push_at,
            action,
        });
    }
    Ok(collected)
}

fn decide(last_push_at: Option<Instant>, retention: MirrorRetention) -> GcAction {
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    let kept = i64::from(retention.days).saturating_mul(DAY);
    let since = retention.now.microseconds().saturating_sub(kept);
    match last_push_at {
        None => GcAction::Kept(GcReason::QuarantineAmbiguous),
        Some(at) if at.microseconds() >= since => GcAction::Kept(GcReason::WithinRetention),
        Some(_) => GcAction::Removed,
    }
}

fn display_name(
    snapshot: &mut Snapshot<'_>,
    lifetime: &Lifetime,
) -> Result<Option<RepositoryName>, StoreError> {
    match lifetime {
        Lifetime::Named(name) => Ok(Some(name.clone())),
        Lifetime::Identified(identity) => {
            let boundary = snapshot.boundary(None)?;
            let claims = snapshot.repository_claims(
                &std::collections::BTreeSet::new(),
                &std::iter::once(identity.clone()).collect(),
                boundary,
            )?;
            Ok(claims.into_iter().map(|claim| claim.name).min())
        }
    }
}

/// Removes a mirror while nobody is using it.
fn remove(folder: &MirrorFolder, lifetime: &Lifetime) -> Result<(), LockError> {
    let wait = Allowance::until(Deadline::after(LOCK_WAIT));
    let lock = folder.lock(lifetime, &wait)?;
    folder.remove(lifetime, &lock, &wait)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use svc_engine_fact::Push;
    use svc_engine_fact::testing::builders::{at, push, repository};
    use svc_engine_store::testing::{Backend, TestStore};
    use svc_engine_store::{Append, NewQuarantineEntry, QuarantineAction};
    use svc_model::id::OrgId;

    use super::*;

    const DAY: i64 = 24 * 60 * 60;

    #[rstest::rstest]
    fn only_mirrors_without_a_recent_push_are_removed(
        #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    ) {
        let Some(database) = TestStore::create(backend) else {
            return;
        };
        let store = database.open("acme");
        let folder = MirrorFolder::new(&database.folder().join("m"), OrgId::new("acme").unwrap());
        let add = |number: u32, name: &str, day: i64| {
            let push = Push {
                repository: Some(repository(number)),
                repo: name.to_owned(),
                r#ref: format!("refs/heads/{day}"),
                captured_at: at(day * DAY),
                ..push(u128::from(number) * 1_000 + u128::try_from(day).unwrap())
            };
            let facts = vec![Append::Push(Box::new(push))];
            store.append_blocking(facts).unwrap();
            let path = folder.path(&Lifetime::Identified(repository(number)));
            fs::create_dir_all(path.join("objects")).unwrap();
            fs::write(path.join("HEAD"), "").unwrap();
        };
        add(1, "own/old", 0);
        add(1, "own/abandoned", 9);
        add(2, "own/fresh", 10);
        add(3, "own/hidden", 0);
        let unknown = folder.path(&Lifetime::parse("own/unknown").unwrap());
        fs::create_dir_all(&unknown).unwrap();
        fs::write(unknown.join("HEAD"), "").unwrap();
        let hidden = NewQuarantineEntry {
            quarantine_id: uuid::Uuid::from_u128(1),
            table: svc_model::facts::FactTable::Pushes,
            fact_id: svc_engine_fact::testing::builders::id(3_000).to_string(),
            action: QuarantineAction::Quarantine,
            reason: "test".to_owned(),
            recorded_at: at(0),
            client_id: "operator".to_owned(),
        };
        let ledger = database.ledger("acme");
        ledger.quarantine(&[hidden]).unwrap();

        let fetched =
            "INSERT INTO mirror_jobs (org_id, mirror, repo, attempts, last_success_at_us, notes)
            VALUES ('acme', 'github/github.com/1', 'own/old', 0, 1, '')";
        svc_engine_store::testing::change_rows(database.url(), fetched).unwrap();
        let retention = MirrorRetention {
            now: at(100 * DAY),
            days: 90,
        };
        let run = |apply: bool| {
            let mut snapshot = store.snapshot_now();
            let apply = apply.then_some(&ledger);
            let collected = collect(&folder, &mut snapshot, retention, apply).unwrap();
            let shown = |mirror: CollectedMirror| {
                let repo = mirror.repo.map(String::from);
                (
                    mirror.lifetime.to_string(),
                    repo,
                    mirror.last_push_at,
                    mirror.action,
                )
            };
            collected.into_iter().map(shown).collect::<Vec<_>>()
        };
        let row = |lifetime: &str, repo: Option<&str>, day: Option<i64>, action| {
            let repo = repo.map(str::to_owned);
            (
                lifetime.to_owned(),
                repo,
                day.map(|day| at(day * DAY)),
                action,
            )
        };
        let ambiguous = GcAction::Kept(GcReason::QuarantineAmbiguous);
        let within = GcAction::Kept(GcReason::WithinRetention);
        let expected = vec![
            row(
                "github/github.com/1",
                Some("own/abandoned"),
                Some(9),
                GcAction::Removed,
            ),
            row("github/github.com/2", Some("own/fresh"), Some(10), within),
            row("github/github.com/3", None, None, ambiguous),
            row("own/unknown", Some("own/unknown"), None, ambiguous),
        ];
        assert_eq!(run(false), expected, "a dry run removes nothing");
        assert_eq!(store.snapshot_now().mirrors(at(0)).unwrap().len(), 1);
        let first = Lifetime::Identified(repository(1));
        assert!(folder.exists(&first));
        let wait = Allowance::until(Deadline::after(Duration::from_secs(9)));
        let working = folder.lock(&first, &wait).unwrap();
        assert_eq!(run(true)[0].3, GcAction::Kept(GcReason::RemoveFailed));
        assert!(folder.exists(&first));
        drop(working);
        assert_eq!(run(true), expected);
        assert!(!folder.path(&first).exists());
        assert_eq!(
            store.snapshot_now().mirrors(at(0)).unwrap(),
            [],
            "forgotten"
        );
        assert_eq!(run(true), expected[1..]);
    }
}
