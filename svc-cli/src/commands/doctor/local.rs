//! The store and the mirrors on this machine, if any.

use svc_engine::clock::Clock;
use svc_engine::mirror::free_space;
use svc_engine::store::{self, DatabaseUrl, JobState, Ledger, Obstacle, SchemaState, StoreError};
use svc_server::{MirrorSettings, Origin};

use super::Check;
use crate::commands::mirror::MirrorOptions;
use crate::error::chain;

/// A disk with fewer free bytes than this counts as full: about a day's evidence of a busy team.
const FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

pub(super) fn checks(options: &MirrorOptions) -> Vec<Check> {
    let settings = match options.settings() {
        Ok(settings) => settings,
        Err(error) => return vec![Check::failed("settings", error.message(), "svc db status")],
    };
    let url = &settings.store.url;
    let is_there = match url {
        DatabaseUrl::Sqlite(path) => path.exists(),
        DatabaseUrl::Postgres(_) => true,
    };
    if !is_there && settings.store.origin == Origin::Default {
        return vec![Check::absent("store", "none on this machine")];
    }
    let mut checks = vec![schema(url)];
    if let DatabaseUrl::Sqlite(path) = url {
        checks.push(disk("disk of the store", path));
    }
    match &settings.mirror {
        Some(mirror) => {
            checks.push(disk("disk of the mirrors", &mirror.path));
            checks.push(mirrors(&settings));
        }
        None => checks.push(Check::warning(
            "mirrors",
            "none here, so notes are not read and reports know no commits",
            "SVC_MIRROR_PATH=FOLDER svc serve",
        )),
    }
    checks
}

fn schema(url: &DatabaseUrl) -> Check {
    let shown = url.shown();
    match store::schema_state(url) {
        Ok(SchemaState::AtHead(_)) => match store::check_writing(url) {
            Ok(()) => Check::ok("store", shown),
            Err(error) => unusable(&shown, &error),
        },
        Ok(SchemaState::Absent) => {
            Check::failed("store", format!("{shown} has no tables"), "svc db upgrade")
        }
        Ok(SchemaState::Behind(_)) => Check::failed(
            "store",
            format!("{shown} has an older schema"),
            "svc db upgrade",
        ),
        Ok(SchemaState::Ahead(_)) => Check::failed(
            "store",
            format!("the schema of {shown} is newer than this svc"),
            "install the version of svc that the store needs",
        ),
        Err(error) => unusable(&shown, &error),
    }
}

fn unusable(shown: &str, error: &StoreError) -> Check {
    let mend = error.obstacle().map_or("svc db status", Obstacle::mend);
    Check::failed("store", format!("{shown}: {}", chain(error)), mend)
}

fn disk(name: &'static str, path: &std::path::Path) -> Check {
    let Some(free) = free_space(path) else {
        return Check::absent(name, "the free space is unknown");
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "one digit after the decimal point is shown"
    )]
    let shown = format!("{:.1} GiB free", free as f64 / (1024.0 * 1024.0 * 1024.0));
    if free < FREE_BYTES_MIN {
        let mend = format!("free some space on the disk of {}", path.display());
        Check::failed(name, shown, mend)
    } else {
        Check::ok(name, shown)
    }
}

fn mirrors(settings: &MirrorSettings) -> Check {
    match failing(settings) {
        Ok(failing) if failing.is_empty() => Check::ok("mirrors", "all up to date"),
        Ok(failing) => Check::failed(
            "mirrors",
            format!("not fetched: {}", failing.join(", ")),
            "svc mirror status",
        ),
        Err(error) => Check::failed("mirrors", error.to_string(), "svc mirror status"),
    }
}

/// Returns the names of the repositories whose last fetch failed.
fn failing(settings: &MirrorSettings) -> Result<Vec<String>, StoreError> {
    let ledger = Ledger::open(&settings.store.url, settings.store.org_id.clone())?;
    let mirrors = ledger.snapshot()?.mirrors(Clock::system().now())?;
    let failing = mirrors
        .into_iter()
        .filter(|mirror| matches!(mirror.state, JobState::Retrying(_) | JobState::GivenUp));
    Ok(failing.map(|mirror| mirror.repo).collect())
}
