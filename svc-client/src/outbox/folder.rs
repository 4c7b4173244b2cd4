use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use svc_model::json;

use super::disk::{self, LockedFile, NewFile};
use super::name::Name;
use super::record::{DeliveryRecord, RecordHeader};
use super::{OutboxError, Reason, RefusedDelivery};

/// The ending of a delivery that is whole.
const DELIVERY: &str = "delivery";
/// The ending of a delivery that is being written.
const PARTIAL: &str = "partial";
/// The ending of the note on why a delivery was refused.
const REASON: &str = "reason";

/// The maximum bytes of a note that are read.
const REASON_BYTES_MAX: u64 = 64 * 1024;

/// The folder of an outbox.
///
/// ```text
/// writers                      how many deliveries were put; locked while one is admitted
/// sender                       locked while somebody sends
/// stopped                      why sending has stopped until a person acts
/// SEQUENCE-BYTES-ID.delivery   waits
/// SEQUENCE-BYTES-ID.partial    is being written, and locked by its writer
/// refused/                     what the service refused, each with a note of the reason
/// ```
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
    refused: PathBuf,
}

/// The result of reading a file.
#[derive(Debug)]
pub(super) enum DeliveryLookup {
    /// A delivery.
    Record(DeliveryRecord),
    /// A damaged file.
    Damaged,
    /// There is no file; it was removed.
    Nothing,
}

impl Folder {
    pub(super) fn open(root: PathBuf) -> Result<Self, OutboxError> {
        let folder = Self::at(root);
        disk::private_folder(&folder.root)?;
        disk::private_folder(&folder.refused)?;
        Ok(folder)
    }

    /// Returns the folder without opening it.
    pub(super) fn at(root: PathBuf) -> Self {
        let refused = root.join("refused");
        Self { root, refused }
    }

    pub(super) fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the file that is locked while a delivery is admitted.
    pub(super) fn writers(&self) -> PathBuf {
        self.root.join("writers")
    }

    /// Returns the file that is locked while somebody sends.
    pub(super) fn sender(&self) -> PathBuf {
        self.root.join("sender")
    }

    /// Takes the lock of the sender; nothing if another sender has it.
    pub(super) fn try_send_alone(&self) -> Result<Option<LockedFile>, OutboxError> {
        let path = self.sender();
        let file = disk::private_file(&path, NewFile::WhenAbsent)?;
        LockedFile::try_new(file, &path)
    }

    /// Returns the waiting deliveries, in order.
    pub(super) fn waiting(&self) -> Result<Vec<Name>, OutboxError> {
        names(&self.root, DELIVERY)
    }

    /// Returns the deliveries that are being written.
    pub(super) fn partial(&self) -> Result<Vec<Name>, OutboxError> {
        names(&self.root, PARTIAL)
    }

    /// Returns the refused deliveries, in order.
    pub(super) fn refused(&self) -> Result<Vec<Name>, OutboxError> {
        names(&self.refused, DELIVERY)
    }

    /// Creates the file of a delivery. It stays locked until it is written.
    pub(super) fn create(&self, name: Name) -> Result<PartialFile, OutboxError> {
        let path = file(&self.root, name, PARTIAL);
        let file = disk::private_file(&path, NewFile::Always)?;
        // Nobody else knows the name yet.
        let file = LockedFile::try_new(file, &path)?.ok_or(OutboxError::Locked)?;
        Ok(PartialFile {
            file,
            path: Some(path),
            whole: self::file(&self.root, name, DELIVERY),
            folder: self.root.clone(),
        })
    }

    /// Removes a file if its writer no longer runs.
    pub(super) fn remove_abandoned(&self, name: Name) -> Result<(), OutboxError> {
        let path = file(&self.root, name, PARTIAL);
        let opened =
            disk::present(disk::read_only(&path)).map_err(OutboxError::disk("open", &path))?;
        let abandoned = opened
            .map(|file| LockedFile::try_new(file, &path))
            .transpose()?;
        match abandoned.flatten() {
            Some(_locked) => disk::remove(&path),
            None => Ok(()),
        }
    }

    pub(super) fn read(&self, name: Name) -> Result<DeliveryLookup, OutboxError> {
        let path = file(&self.root, name, DELIVERY);
        read(name, &path)
    }

    /// Reads a delivery that was set aside.
    pub(super) fn read_refused(&self, name: Name) -> Result<DeliveryLookup, OutboxError> {
        read(name, &file(&self.refused, name, DELIVERY))
    }

    /// Puts a delivery that was set aside back into the queue, in its old place, with another
    /// content.
    pub(super) fn restore_as(
        &self,
        name: Name,
        record: &DeliveryRecord,
    ) -> Result<(), OutboxError> {
        let bytes = record.encode()?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let new = Name {
            bytes: length,
            ..name
        };
        self.create(new)?.finish(&bytes)?;
        disk::remove(&file(&self.refused, name, DELIVERY))?;
        disk::remove(&file(&self.refused, name, REASON))
    }

    /// Returns the header of a waiting delivery, if it can be read.
    pub(super) fn header(&self, name: Name) -> Option<RecordHeader> {
        let mut beginning = vec![0; RecordHeader::BYTES_MAX];
        let mut file = disk::read_only(&file(&self.root, name, DELIVERY)).ok()?;
        let mut length = 0;
        while length < beginning.len() {
            match file.read(&mut beginning[length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        RecordHeader::decode(&beginning[..length])
    }

    /// Removes a delivery. After a power failure it may be there again, and is then sent again.
    pub(super) fn remove(&self, name: Name) -> Result<(), OutboxError> {
        disk::remove(&file(&self.root, name, DELIVERY))
    }

    /// Sets a delivery aside. The reason is written first, so that every refused delivery has one.
    pub(super) fn set_aside(&self, name: Name, reason: &Reason) -> Result<(), OutboxError> {
        let note = json::to_vec(reason, usize::MAX)?;
        disk::replace(&file(&self.refused, name, REASON), &note)?;
        disk::rename(
            &file(&self.root, name, DELIVERY),
            &file(&self.refused, name, DELIVERY),
        )?;
        disk::sync_folder(&self.refused)
    }

    /// Puts a refused delivery back into the queue, in its old place.
    pub(super) fn restore(&self, name: Name) -> Result<(), OutboxError> {
        disk::rename(
            &file(&self.refused, name, DELIVERY),
            &file(&self.root, name, DELIVERY),
        )?;
        disk::remove(&file(&self.refused, name, REASON))
    }

    pub(super) fn refused_delivery(&self, name: Name) -> RefusedDelivery {
        RefusedDelivery {
            id: name.id,
            path: file(&self.refused, name, DELIVERY),
            reason: read_reason(&file(&self.refused, name, REASON)),
        }
    }

    /// Records why sending has stopped until a person acts.
    pub(super) fn stop(&self, reason: &Reason) -> Result<(), OutboxError> {
        disk::replace(&self.stopped_path(), &json::to_vec(reason, usize::MAX)?)
    }

    /// Records that sending has resumed.
    pub(super) fn go_on(&self) -> Result<(), OutboxError> {
        disk::remove(&self.stopped_path())
    }

    pub(super) fn stopped(&self) -> Option<Reason> {
        read_reason(&self.stopped_path())
    }

    fn stopped_path(&self) -> PathBuf {
        self.root.join("stopped")
    }
}

/// A delivery that is being written. If it is not finished, its file is removed.
#[derive(Debug)]
pub(super) struct PartialFile {
    file: LockedFile,
    path: Option<PathBuf>,
    whole: PathBuf,
    folder: PathBuf,
}

impl PartialFile {
    /// Writes the file and adds it to the queue. When this returns, the delivery is durable.
    pub(super) fn finish(mut self, bytes: &[u8]) -> Result<(), OutboxError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        self.file
            .write_all(bytes)
            .and_then(|()| self.file.sync_all())
            .map_err(OutboxError::disk("write", path))?;
        fs::rename(path, &self.whole).map_err(OutboxError::disk("rename", path))?;
        // If something fails from here on, the whole file has to be removed.
        self.path = Some(self.whole.clone());
        disk::sync_folder(&self.folder)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Only the failure that led here is reported.
            drop(disk::remove(path));
        }
    }
}

fn file(folder: &Path, name: Name, ending: &str) -> PathBuf {
    folder.join(format!("{name}.{ending}"))
}

fn read_reason(path: &Path) -> Option<Reason> {
    let mut bytes = Vec::new();
    let mut file = disk::read_only(path).ok()?.take(REASON_BYTES_MAX);
    file.read_to_end(&mut bytes).ok()?;
    json::from_slice(&bytes).ok()
}

fn read(name: Name, path: &Path) -> Result<DeliveryLookup, OutboxError> {
    let opened = match disk::present(disk::read_only(path)) {
        // A link, or another thing that is no file.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) => {
            return Ok(DeliveryLookup::Damaged);
        }
        opened => opened.map_err(OutboxError::disk("read", path))?,
    };
    let Some(file) = opened else {
        return Ok(DeliveryLookup::Nothing);
    };
    let mut bytes = Vec::new();
    // No more than its name says, and one byte to see that there is more.
    file.take(name.bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(OutboxError::disk("read", path))?;
    let whole = u64::try_from(bytes.len()) == Ok(name.bytes);
    let record = whole.then(|| DeliveryRecord::decode(bytes)).flatten();
    Ok(record.map_or(DeliveryLookup::Damaged, DeliveryLookup::Record))
}

/// Returns the names with this ending, in order. Other files are ignored.
fn names(folder: &Path, ending: &str) -> Result<Vec<Name>, OutboxError> {
    let failed = |error| OutboxError::disk("read", folder)(error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        let stem = file
            .to_str()
            .and_then(|file| file.strip_suffix(ending)?.strip_suffix('.'));
        names.extend(stem.and_then(Name::parse));
    }
    names.sort_unstable();
    Ok(names)
}
