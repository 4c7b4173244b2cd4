use std::path::Path;
use std::sync::OnceLock;

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_model::id::OrgId;

use super::folder::MirrorFolder;
use super::git::Git;
use super::reader::{MirrorReader, ReadError};

/// The mirrors of an organization, for reading. git is looked for when the first mirror is read.
#[derive(Debug)]
pub struct MirrorReading {
    folder: MirrorFolder,
    git: OnceLock<Git>,
}

impl MirrorReading {
    /// Creates a handle to the folder of the mirrors.
    pub fn new(root: &Path, org_id: OrgId) -> Self {
        Self {
            folder: MirrorFolder::new(root, org_id),
            git: OnceLock::new(),
        }
    }

    /// Opens the mirror of a repository, or returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// If git cannot be used, and see [`MirrorReader::open`].
    pub fn open(
        &self,
        lifetime: &Lifetime,
        deadline: &Deadline,
    ) -> Result<Option<MirrorReader>, ReadError> {
        deadline.check()?;
        if !self.folder.exists(lifetime) {
            return Ok(None);
        }
        let git = if let Some(git) = self.git.get() {
            git
        } else {
            let found = Git::find(deadline);
            // A git that was stopped at the deadline may still be usable.
            deadline.check()?;
            let found = found.map_err(|error| ReadError::Git(error.to_string()))?;
            self.git.get_or_init(|| found)
        };
        MirrorReader::open(git, &self.folder, lifetime, deadline)
    }
}
