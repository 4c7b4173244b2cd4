//! Checks the store and the mirrors on this machine, if there are any.

use svc_engine::clock::Clock;
use svc_engine::mirror::{MirrorFailure, MirrorFolder, free_space};
use svc_engine::search;
use svc_engine::store::{
    self, DatabaseUrl, Ledger, MirrorStatus, Obstacle, SchemaState, StoreError,
};
use svc_server::{MirrorSettings, SettingOrigin, StoreSettings};

use super::{CheckState, DoctorCheck};
use crate::commands::mirror::{MirrorOptions, is_gone, refresh_command};
use crate::commands::service;
use crate::credentials::Credentials;
use crate::error::chain;
use crate::options::ServiceOptions;

/// A disk with fewer free bytes than this counts as full. This is about a day's evidence of a busy
/// team.
const FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

pub(super) fn checks(
    options: &MirrorOptions,
    service: &ServiceOptions,
    keeps_mirrors: Option<bool>,
) -> Vec<DoctorCheck> {
    let settings = match options.settings() {
        Ok(settings) => settings,
        Err(error) => {
            return vec![DoctorCheck::failed(
                "settings",
                error.message(),
                "correct this setting",
            )];
        }
    };
    let url = &settings.store.url;
    let is_there = match url.is_there() {
        Ok(is_there) => is_there,
        Err(error) => return vec![unusable(&url.shown(), &error)],
    };
    let is_named = settings.store.origin != SettingOrigin::Default;
    if !is_there {
        let store = if let Some(service) = svc_server::running_at(url) {
            DoctorCheck::failed(
                "store",
                format!(
                    "{} is gone, and the service at {service} refuses everything",
                    url.shown()
                ),
                "move the database back, or stop the service and bring it back: svc restore DIR",
            )
        } else if is_named {
            DoctorCheck::failed(
                "store",
                format!("there is no file {}", url.shown()),
                "name the database in SVC_DATABASE_URL, or bring it back: svc restore DIR",
            )
        } else {
            DoctorCheck::absent("store", "none on this machine")
        };
        return [store]
            .into_iter()
            .chain(none_kept(keeps_mirrors))
            .collect();
    }
    if !is_named && let Some(service) = another_service(url, service) {
        let store = DoctorCheck::absent(
            "store",
            format!(
                "not checked: {} has another one",
                service::without_password(&service)
            ),
        );
        return [store]
            .into_iter()
            .chain(none_kept(keeps_mirrors))
            .collect();
    }
    let store = schema(url);
    let mirrors = mirrors(&settings, &store, keeps_mirrors);
    let mut checks = vec![store];
    checks.extend(clock(url));
    checks.extend(captured_ahead(&settings.store));
    if let DatabaseUrl::Sqlite(path) = url {
        checks.push(disk("disk of the store", path));
    }
    if let Some(mirror) = &settings.mirror
        && mirror.path.exists()
    {
        checks.push(disk("disk of the mirrors", &mirror.path));
    }
    checks.push(mirrors);
    checks.extend(search_index(&settings.store));
    checks
}

/// Compares a sample of the search index on this machine with the store.
fn search_index(store: &StoreSettings) -> Option<DoctorCheck> {
    /// Parts that are compared.
    const PARTS: u64 = 100;
    const NAME: &str = "search index";
    const MEND: &str = "svc search --rebuild";
    let path = store.search.path().filter(|path| path.exists())?;
    let ledger = Ledger::open(&store.url, store.org_id.clone()).ok()?;
    let mut snapshot = ledger.snapshot().ok()?;
    let shown = path.display();
    Some(match search::sample(path, &mut snapshot, PARTS) {
        Ok(sample) if sample.differing == 0 => {
            let parts = sample.parts;
            DoctorCheck::ok(
                NAME,
                format!("{shown}: {parts} parts compared with the store"),
            )
        }
        Ok(sample) => DoctorCheck::warning(
            NAME,
            format!(
                "{shown}: {} of {} parts are not in the store; they are not answered",
                sample.differing, sample.parts
            ),
            MEND,
        ),
        Err(error) => DoctorCheck::warning(NAME, format!("{shown}: {}", chain(&error)), MEND),
    })
}

/// Returns the URL of the service that this shell uses, unless that service works on this store.
fn another_service(store: &DatabaseUrl, options: &ServiceOptions) -> Option<String> {
    let credentials = Credentials::load().ok()?;
    let asked = service::named(options, &credentials).ok()??;
    let own = svc_server::running_at(store);
    let asked = svc_server::as_local(&asked).unwrap_or(asked);
    (own.as_ref() != Some(&asked)).then_some(asked)
}

fn schema(url: &DatabaseUrl) -> DoctorCheck {
    let shown = url.shown();
    match store::schema_state(url) {
        Ok(SchemaState::AtHead(_)) => match store::check_writing(url) {
            Ok(()) => DoctorCheck::ok("store", shown),
            Err(error) => unusable(&shown, &error),
        },
        Ok(SchemaState::Absent) => {
            DoctorCheck::failed("store", format!("{shown} has no tables"), "svc db upgrade")
        }
        Ok(SchemaState::Behind(_)) => DoctorCheck::failed(
            "store",
            format!("{shown} has an older schema"),
            "svc db upgrade",
        ),
        Ok(SchemaState::Ahead(_)) => DoctorCheck::failed(
            "store",
            format!("the schema of {shown} is newer than this svc"),
            "install the version of svc that the store needs",
        ),
        Err(error) => unusable(&shown, &error),
    }
}

/// Compares this clock with the database server's. A store that cannot be reached is named elsewhere.
fn clock(url: &DatabaseUrl) -> Option<DoctorCheck> {
    match store::check_clock(url, &Clock::system()) {
        Err(error @ StoreError::Clock(_)) => Some(DoctorCheck::failed(
            "clock of the store",
            error.to_string(),
            Obstacle::Clock.mend(),
        )),
        Ok(()) | Err(_) => None,
    }
}

/// Returns what fails if the last fact was captured ahead of this clock.
fn captured_ahead(store: &StoreSettings) -> Option<DoctorCheck> {
    let ledger = Ledger::open(&store.url, store.org_id.clone()).ok()?;
    let mut snapshot = ledger.snapshot().ok()?;
    let last = snapshot.captured_ahead_of(Clock::system().now()).ok()??;
    Some(DoctorCheck::failed(
        "capture times",
        format!(
            "the last fact was captured at {last}, ahead of this clock; until then, every new fact is \
             captured at that moment"
        ),
        format!(
            "set the clocks of all servers by NTP; questions up to now count everything all the same, \
             those up to an earlier moment what was captured by then; for true capture times again: \
             svc restore DIR --replace, with a backup made before the clock was wrong, or wait until \
             {last}"
        ),
    ))
}

fn unusable(shown: &str, error: &StoreError) -> DoctorCheck {
    let mend = match error {
        StoreError::MigrationChanged(_) => "install the version of svc that made the store",
        _ => error.obstacle().map_or(
            "is SVC_DATABASE_URL right? if it is, look at the database, its log and its disk",
            Obstacle::mend,
        ),
    };
    DoctorCheck::failed("store", format!("{shown}: {}", chain(error)), mend)
}

fn disk(name: &'static str, path: &std::path::Path) -> DoctorCheck {
    let Some(free) = free_space(path) else {
        return DoctorCheck::absent(name, "the free space is unknown");
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "one digit after the decimal point is shown"
    )]
    let shown = format!("{:.1} GiB free", free as f64 / (1024.0 * 1024.0 * 1024.0));
    if free < FREE_BYTES_MIN {
        let mend = format!("free some space on the disk of {}", path.display());
        DoctorCheck::failed(name, shown, mend)
    } else {
        DoctorCheck::ok(name, shown)
    }
}

/// What to do if no mirrors are kept.
const KEEP_MIRRORS: &str =
    "start the service with SVC_MIRROR_PATH=FOLDER; on SQLite, without an empty SVC_MIRROR_PATH";

/// Returns a warning if the service says that it keeps no mirrors, whatever earlier servers fetched.
fn none_kept(keeps: Option<bool>) -> Option<DoctorCheck> {
    let found = "the service keeps none, so notes are not read and reports know no commits";
    (keeps == Some(false)).then(|| DoctorCheck::warning("mirrors", found, KEEP_MIRRORS))
}

/// Checks how up to date the mirrors are, according to the store. A service may keep them in a
/// folder that is not set here.
fn mirrors(settings: &MirrorSettings, store: &DoctorCheck, keeps: Option<bool>) -> DoctorCheck {
    let mirrors = match kept(settings) {
        Ok(mirrors) => mirrors,
        Err(_) if store.state == CheckState::Failed => {
            return DoctorCheck::absent("mirrors", "unknown: the store cannot be read");
        }
        Err(error) => {
            return DoctorCheck::failed("mirrors", error.to_string(), "svc mirror status");
        }
    };
    if let Some(none) = none_kept(keeps) {
        return none;
    }
    if keeps.is_none() && settings.mirror.is_none() && mirrors.iter().all(is_new) {
        let found = "none was fetched yet; whether a service keeps any is not known here";
        return DoctorCheck::warning("mirrors", found, KEEP_MIRRORS);
    }
    let failing: Vec<&MirrorStatus> = mirrors
        .iter()
        .filter(|mirror| mirror.is_failing())
        .collect();
    if let Some(first) = failing.first() {
        let names = failing.iter().map(|mirror| match &mirror.last_failure {
            Some(reason) => format!("{} ({reason})", mirror.repo),
            None => mirror.repo.clone(),
        });
        let found = format!("not fetched: {}", names.collect::<Vec<_>>().join(", "));
        let failure = first.last_failure.as_deref();
        let mend = match failure.and_then(MirrorFailure::of_word) {
            Some(failure) => failure.mend(&refresh_command(&first.repo)),
            None => "svc mirror status".to_owned(),
        };
        return DoctorCheck::failed("mirrors", found, mend);
    }
    let folder = settings
        .mirror
        .as_ref()
        .map(|mirror| MirrorFolder::new(&mirror.path, settings.store.org_id.clone()));
    let gone: Vec<&MirrorStatus> = mirrors
        .iter()
        .filter(|mirror| is_gone(folder.as_ref(), mirror))
        .collect();
    if let (Some(first), Some(folder)) = (gone.first(), &folder) {
        let names: Vec<&str> = gone.iter().map(|mirror| &*mirror.repo).collect();
        let names = names.join(", ");
        return DoctorCheck::failed(
            "mirrors",
            format!("fetched, but not in {}: {names}", folder.root().display()),
            format!(
                "set SVC_MIRROR_PATH to the folder that has them, or fetch each again: {}",
                refresh_command(&first.repo)
            ),
        );
    }
    let waiting = mirrors
        .iter()
        .filter(|mirror| mirror.waiting_pushes > 0)
        .count();
    let found = match (waiting, mirrors.len()) {
        (_, 0) => "none yet: no push has arrived".to_owned(),
        (0, _) => "all up to date".to_owned(),
        (count, all) => format!("{count} of {all} wait for a refresh"),
    };
    let whose = match (&settings.mirror, keeps) {
        (Some(_), _) => "",
        (None, Some(_)) => "; kept by the service, in a folder that is not known here",
        (None, None) => "; whether a service still keeps them is not known here",
    };
    DoctorCheck::ok("mirrors", found + whose)
}

/// Returns whether nobody has tried to fetch a mirror yet.
const fn is_new(mirror: &MirrorStatus) -> bool {
    mirror.last_success_at.is_none() && mirror.last_failure_at.is_none()
}

fn kept(settings: &MirrorSettings) -> Result<Vec<MirrorStatus>, StoreError> {
    let ledger = Ledger::open(&settings.store.url, settings.store.org_id.clone())?;
    ledger.snapshot()?.mirrors(Clock::system().now())
}
