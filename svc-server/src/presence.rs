//! Finds the server of a store on this machine.
//!
//! A server keeps its URL in a private file beside its database, and keeps the file locked while it
//! runs. So a shell finds the last started server on any port, and recognises what a dead one left
//! by the missing lock.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use svc_engine::clock::Ids;
use svc_engine::private;
use svc_engine::store::DatabaseUrl;

use crate::source::data_folder;

/// The maximum length of such a URL.
const URL_BYTES_MAX: u64 = 256;

/// The announcement of a running server.
#[derive(Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    /// Locked until it is closed.
    file: File,
}

impl Presence {
    /// Announces where the server of this store listens, replacing an earlier announcement.
    pub(crate) fn announce(database: &DatabaseUrl, address: SocketAddr) -> io::Result<Self> {
        let path = file_of(database).ok_or(io::ErrorKind::NotFound)?;
        Self::write(path, &url(address))
    }

    fn write(path: PathBuf, url: &str) -> io::Result<Self> {
        private::create_folder_of(&path)?;
        // It is locked before it gets its name, so whoever finds it finds it locked.
        let aside = path.with_extension(format!("{}.tmp", Ids::random().fresh().simple()));
        let mut file = private::create_file(&aside)?;
        let placed = file
            .lock()
            .and_then(|()| file.write_all(url.as_bytes()))
            .and_then(|()| fs::rename(&aside, &path));
        match placed {
            Ok(()) => Ok(Self { path, file }),
            Err(error) => {
                fs::remove_file(&aside)?;
                Err(error)
            }
        }
    }

    /// Removes the announcement, unless another server has replaced it.
    pub(crate) fn withdraw(self) -> io::Result<()> {
        let (there, own) = (fs::symlink_metadata(&self.path)?, self.file.metadata()?);
        if (there.dev(), there.ino()) == (own.dev(), own.ino()) {
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

/// Returns the URL of the last started server of this store, if it runs.
pub fn find(database: &DatabaseUrl) -> Option<String> {
    read(&file_of(database)?)
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
        // Its server is gone, or the lock cannot be checked.
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut url = String::new();
    file.take(URL_BYTES_MAX).read_to_string(&mut url).ok()?;
    let address = url.strip_prefix("http://")?;
    address.parse::<SocketAddr>().is_ok().then_some(url)
}

/// Returns the URL at which a server with this address is reached from this machine.
pub(crate) fn url(mut address: SocketAddr) -> String {
    // A server that listens on every address is reached on the loopback one.
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    format!("http://{address}")
}

fn file_of(database: &DatabaseUrl) -> Option<PathBuf> {
    match database {
        DatabaseUrl::Sqlite(path) => Some(path.with_extension("address")),
        DatabaseUrl::Postgres(_) => Some(data_folder()?.join("postgres.address")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_last_server_is_found_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/svc.address");
        assert_eq!(read(&path), None);
        let first = Presence::write(path.clone(), "http://127.0.0.1:8301").unwrap();
        assert_eq!(read(&path).as_deref(), Some("http://127.0.0.1:8301"));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let second = Presence::write(path.clone(), "http://[::1]:8302").unwrap();
        assert_eq!(read(&path).as_deref(), Some("http://[::1]:8302"));
        first.withdraw().unwrap();
        assert_eq!(
            read(&path).as_deref(),
            Some("http://[::1]:8302"),
            "it is that of another server"
        );
        second.withdraw().unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_server_left_or_another_wrote_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("svc.address");
        // Dropped as if the process was killed: the file remains, its lock does not.
        drop(Presence::write(path.clone(), "http://127.0.0.1:8301").unwrap());
        assert!(path.exists());
        assert_eq!(read(&path), None);
        for wrong in [
            "",
            "https://evil.example",
            "http://evil.example:80",
            "http://",
        ] {
            let held = Presence::write(path.clone(), wrong).unwrap();
            assert_eq!(read(&path), None, "{wrong}");
            drop(held);
        }
        let held = Presence::write(path.clone(), "http://127.0.0.1:8301").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&path), None, "others may have written it");
        drop(held);
    }

    #[test]
    fn a_server_of_every_address_is_reached_on_this_machine() {
        for (address, expected) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
            ("10.0.0.1:1", "http://10.0.0.1:1"),
        ] {
            assert_eq!(url(address.parse().unwrap()), expected);
        }
    }
}
