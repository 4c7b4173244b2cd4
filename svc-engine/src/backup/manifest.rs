//! The manifest of a backup.

use serde::{Deserialize, Serialize};
use svc_engine_store::backup::{FetchedMirror, KeptOrganization, TableFile};
use svc_model::id::OrgId;
use svc_model::time::Instant;

/// The name of the format.
pub const FORMAT: &str = "svc-backup";
/// The version of the format, which covers the manifest, the blocks and the values in them.
pub const FORMAT_VERSION: u64 = 1;

/// The manifest of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`FORMAT_VERSION`].
    pub format_version: u64,
    /// The version of svc that created it.
    pub svc_version: String,
    /// The backend of the store. A backup can be restored into either backend.
    pub backend: String,
    /// The revision of the database schema.
    pub schema_revision: i64,
    /// When the backup was started.
    pub taken_at: Instant,
    /// The organizations, each with the time of its last row and its counts.
    pub organizations: Vec<KeptOrganization>,
    /// The tables.
    pub tables: Vec<TableFile>,
    /// The mirrors. `None` if the backup excludes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<Vec<MirrorFile>>,
    /// The mirrors that the service had fetched but that are not in the backup, because they were
    /// not in the folder of the mirrors or because the backup excludes all mirrors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors_missing: Vec<FetchedMirror>,
}

/// A mirror in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorFile {
    /// The organization.
    pub org_id: OrgId,
    /// The repository: PROVIDER/HOST/ID, or OWNER/NAME.
    pub repository: String,
    /// The path of the file in the backup.
    pub file: String,
    /// The number of blocks.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The SHA-256 digest of the file, in hexadecimal.
    pub sha256: String,
}

impl Manifest {
    /// Returns the backup's other files: name, bytes and digest.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        let tables = self.tables.iter();
        let tables = tables.map(|table| (&*table.file, table.bytes, &*table.sha256));
        let mirrors = self.mirrors.iter().flatten();
        tables.chain(mirrors.map(|mirror| (&*mirror.file, mirror.bytes, &*mirror.sha256)))
    }
}
