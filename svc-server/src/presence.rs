//! Finds the server of a store on this machine.
//!
//! Each server keeps its URL in a private file of its own beside its database, and keeps the file
//! locked while it runs. So a shell finds the last started server on any port, and recognises the
//! file of a dead one by the missing lock.
//!
//! No process id is compared, which may be somebody else's by then. Generated tokens go only to the
//! address in the file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use svc_engine::clock::{Clock, Ids};
use svc_engine::private;
use svc_engine::store::DatabaseUrl;

use crate::source::data_folder;

/// The maximum bytes of such a URL.
const URL_BYTES_MAX: u64 = 256;
/// How the names of the files end, after an id.
const ENDING: &str = ".address";
const ID_CHARACTERS: usize = 32;

/// The announcement of a running server.
#[derive(Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    /// The file, which stays locked until it is closed.
    _file: File,
}

impl Presence {
    /// Announces where a server of this store listens, beside the store's other servers.
    pub(crate) fn announce(database: &DatabaseUrl, address: SocketAddr) -> io::Result<Self> {
        let place = AnnouncementFolder::of(database).ok_or(io::ErrorKind::NotFound)?;
        Self::write(&place, &url(address))
    }

    fn write(place: &AnnouncementFolder, url: &str) -> io::Result<Self> {
        place.remove_dead();
        // The ids are in the order in which the servers started.
        let id = Ids::ordered(Clock::system()).fresh().simple();
        let path = place.folder.join(format!("{}.{id}{ENDING}", place.name));
        private::create_folder_of(&path)?;
        // The file is locked before it gets its name, so whoever finds it finds it locked.
        let aside = path.with_extension("tmp");
        let mut file = private::create_file(&aside)?;
        let placed = file
            .lock()
            .and_then(|()| file.write_all(url.as_bytes()))
            .and_then(|()| fs::rename(&aside, &path));
        match placed {
            Ok(()) => Ok(Self { path, _file: file }),
            Err(error) => {
                fs::remove_file(&aside)?;
                Err(error)
            }
        }
    }

    /// Removes the announcement.
    pub(crate) fn withdraw(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Where the servers of a store keep their announcements.
struct AnnouncementFolder {
    folder: PathBuf,
    /// How the names of the announcements begin.
    name: String,
}

impl AnnouncementFolder {
    fn of(database: &DatabaseUrl) -> Option<Self> {
        match database {
            DatabaseUrl::Sqlite(path) => Some(Self {
                // A path without a folder is in the current one.
                folder: Path::new(".").join(path.parent()?),
                name: path.file_stem()?.to_string_lossy().into_owned(),
            }),
            DatabaseUrl::Postgres(_) => Self::postgres(),
        }
    }

    fn postgres() -> Option<Self> {
        Some(Self {
            folder: data_folder()?,
            name: "postgres".to_owned(),
        })
    }

    /// Returns the announcements, latest first.
    fn announcements(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| self.is_announcement(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        paths.sort_unstable_by(|a, b| b.cmp(a));
        paths
    }

    fn is_announcement(&self, name: &str) -> bool {
        let id = name.strip_prefix(&self.name).and_then(|rest| {
            let id = rest.strip_prefix('.')?;
            id.strip_suffix(ENDING)
        });
        id.is_some_and(|id| {
            id.len() == ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }

    /// Removes what dead servers left behind.
    fn remove_dead(&self) {
        for path in self.announcements() {
            let Ok(file) = File::open(&path) else {
                continue;
            };
            if file.try_lock().is_ok() {
                // Another server may have removed it already.
                drop(fs::remove_file(&path));
            }
        }
    }

    fn find(&self) -> Option<String> {
        self.announcements().iter().find_map(|path| read(path))
    }
}

/// Returns the URL of the last started server of this store that is still running.
pub fn find(database: &DatabaseUrl) -> Option<String> {
    AnnouncementFolder::of(database)?.find()
}

/// Returns the URL of the last started server of a PostgreSQL database that is still running.
pub(crate) fn find_postgres() -> Option<String> {
    AnnouncementFolder::postgres()?.find()
}

fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    // Tokens are sent to this URL, so the file must belong to this user.
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !is_own || metadata.mode() & 0o077 != 0 {
        return None;
    }
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        // The server is gone, or the lock cannot be checked.
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut url = String::new();
    file.take(URL_BYTES_MAX).read_to_string(&mut url).ok()?;
    let address = url.strip_prefix("http://")?;
    address.parse::<SocketAddr>().is_ok().then_some(url)
}

/// Returns the URL at which this machine reaches a server with this address.
pub(crate) fn url(mut address: SocketAddr) -> String {
    // A server that listens on every address is reached on the loopback address.
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place(folder: &Path) -> AnnouncementFolder {
        AnnouncementFolder {
            folder: folder.to_owned(),
            name: "svc".to_owned(),
        }
    }

    fn count(place: &AnnouncementFolder) -> usize {
        fs::read_dir(&place.folder).unwrap().count()
    }

    #[test]
    fn the_most_recently_started_server_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder.path().join("new"));
        assert_eq!(place.find(), None);
        let first = Presence::write(&place, "http://127.0.0.1:8301").unwrap();
        assert_eq!(place.find().as_deref(), Some("http://127.0.0.1:8301"));
        let mode = fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        std::thread::sleep(std::time::Duration::from_millis(2));
        let second = Presence::write(&place, "http://[::1]:8302").unwrap();
        assert_eq!(place.find().as_deref(), Some("http://[::1]:8302"));
        second.withdraw().unwrap();
        assert_eq!(
            place.find().as_deref(),
            Some("http://127.0.0.1:8301"),
            "it still runs"
        );
        first.withdraw().unwrap();
        assert_eq!(count(&place), 0);
    }

    #[test]
    fn files_of_dead_servers_and_invalid_addresses_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        // Dropped as if the process was killed: the file remains, but not its lock.
        drop(Presence::write(&place, "http://127.0.0.1:8301").unwrap());
        assert_eq!(place.find(), None);
        fs::write(folder.path().join("svc.db"), "a store").unwrap();
        for wrong in [
            "",
            "https://evil.example",
            "http://evil.example:80",
            "http://",
        ] {
            let held = Presence::write(&place, wrong).unwrap();
            assert_eq!(place.find(), None, "{wrong}");
            assert_eq!(count(&place), 2, "files of dead servers are removed");
            drop(held);
        }
        let held = Presence::write(&place, "http://127.0.0.1:8301").unwrap();
        fs::set_permissions(&held.path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(place.find(), None, "other users may have written it");
    }

    #[test]
    fn a_database_without_a_folder_uses_the_current_one() {
        let place = AnnouncementFolder::of(&DatabaseUrl::sqlite(Path::new("svc.db"))).unwrap();
        assert!(fs::read_dir(&place.folder).is_ok(), "{:?}", place.folder);
        assert_eq!(place.name, "svc");
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_loopback() {
        for (address, expected) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
            ("10.0.0.1:1", "http://10.0.0.1:1"),
        ] {
            assert_eq!(url(address.parse().unwrap()), expected);
        }
    }
}
