//! What a backup says of itself.

use serde::{Deserialize, Serialize};
use svc_model::id::OrgId;
use svc_model::time::Instant;

use crate::store::backup::{KeptOrganization, TableFile};

/// The name of the format.
pub const FORMAT: &str = "svc-backup";
/// The version of the format: of the manifest, of the blocks and of the values in them.
pub const FORMAT_VERSION: u64 = 1;

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`FORMAT_VERSION`].
    pub format_version: u64,
    /// The version of svc that made it.
    pub svc_version: String,
    /// The backend that it was made of. It goes into either.
    pub backend: String,
    /// The revision of the schema.
    pub schema_revision: i64,
    /// When the backup was begun.
    pub taken_at: Instant,
    /// The organizations, with the moment up to which each is kept, and its counts.
    pub organizations: Vec<KeptOrganization>,
    /// The tables.
    pub tables: Vec<TableFile>,
    /// The mirrors; absent where none were to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<Vec<MirrorFile>>,
}

/// A mirror in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorFile {
    /// The organization.
    pub org_id: OrgId,
    /// The repository: PROVIDER/HOST/ID, or OWNER/NAME.
    pub repository: String,
    /// The file, below the folder of the backup.
    pub file: String,
    /// How many pieces.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    /// Returns the files beside the manifest: name, bytes and digest.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        let tables = self.tables.iter();
        let tables = tables.map(|table| (&*table.file, table.bytes, &*table.sha256));
        let mirrors = self.mirrors.iter().flatten();
        tables.chain(mirrors.map(|mirror| (&*mirror.file, mirror.bytes, &*mirror.sha256)))
    }
}
