use std::collections::{BTreeMap, HashMap};

use svc_model::repository::CommitSha;

use super::objects::ObjectLookup;
use super::tree::{self, EntryKind};
use super::{MirrorReader, ObjectKind, PATH_BYTES_MAX, ReadDecline, ReadError};
use crate::object_id::ObjectId;

/// The maximum entries of a folder that is searched for a file.
const FOLDER_ENTRIES_MAX: usize = 100_000;

/// A file to find.
#[derive(Clone, Copy, Debug)]
pub struct WantedFile<'w> {
    /// The commit.
    pub commit: &'w CommitSha,
    /// The path, in any encoding.
    pub path: &'w [u8],
}

/// The state of the search for a file: the current folder, and the path from there.
#[derive(Clone, Copy, Debug)]
struct Search<'w> {
    folder: ObjectId,
    path: &'w [u8],
}

impl<'w> Search<'w> {
    /// Returns the next part of the path, and the rest, if any.
    fn parts(self) -> (&'w [u8], Option<&'w [u8]>) {
        match self.path.iter().position(|byte| *byte == b'/') {
            Some(slash) => (&self.path[..slash], Some(&self.path[slash + 1..])),
            None => (self.path, None),
        }
    }
}

impl MirrorReader {
    /// Returns the ids of the contents of many regular files, each at a commit. The id is `None` if
    /// there is nothing at the path, or if it is a link, a folder or a commit of another
    /// repository. Each folder is read once, however many of its files are wanted.
    ///
    /// # Errors
    ///
    /// Only errors that end all reading: [`ReadError::Passed`] and [`ReadError::Folder`]. A single
    /// file can be declined with [`ReadDecline::Path`], [`ReadDecline::Malformed`], or
    /// [`ReadDecline::TooManyEntries`] if it is not among the first 100,000 entries of a folder
    /// that has more.
    pub fn find_files(
        &mut self,
        wanted: &[WantedFile<'_>],
    ) -> Result<Vec<Result<Option<ObjectId>, ReadError>>, ReadError> {
        self.learn(wanted.iter().map(|file| ObjectId::of(file.commit)))?;
        let mut found = Vec::with_capacity(wanted.len());
        let mut searches: Vec<(usize, Search<'_>)> = Vec::new();
        for (place, file) in wanted.iter().enumerate() {
            let folder = if may_exist(file.path) {
                self.link(ObjectId::of(file.commit))
            } else {
                Err(ReadError::Declined(ReadDecline::Path))
            };
            found.push(match folder {
                Ok(Some(link)) => {
                    let (folder, path) = (link.tree, file.path);
                    searches.push((place, Search { folder, path }));
                    Ok(None)
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error.of_one()?),
            });
        }
        while !searches.is_empty() {
            searches = self.descend(&searches, &mut found)?;
        }
        Ok(found)
    }

    /// Takes each search one folder further, and returns the unfinished ones.
    fn descend<'w>(
        &mut self,
        searches: &[(usize, Search<'w>)],
        found: &mut [Result<Option<ObjectId>, ReadError>],
    ) -> Result<Vec<(usize, Search<'w>)>, ReadError> {
        let mut folders: BTreeMap<ObjectId, HashMap<&[u8], Vec<usize>>> = BTreeMap::new();
        for (at, (_, search)) in searches.iter().enumerate() {
            let names = folders.entry(search.folder).or_default();
            names.entry(search.parts().0).or_default().push(at);
        }
        let (ids, mut names): (Vec<ObjectId>, Vec<_>) = folders.into_iter().unzip();
        let mut further = Vec::new();
        self.objects(
            &ids,
            tree::bytes_max(FOLDER_ENTRIES_MAX),
            |place, folder| {
                let names = &mut names[place];
                let decline = match folder {
                    ObjectLookup::Object(ObjectKind::Tree, bytes) => {
                        let read =
                            tree::each(bytes, ids[place], FOLDER_ENTRIES_MAX, |kind, name, id| {
                                // If a name appears twice, the first one counts.
                                for at in names.remove(name).into_iter().flatten() {
                                    let (place, search) = searches[at];
                                    match (kind, search.parts().1) {
                                        (EntryKind::File, None) => found[place] = Ok(Some(id)),
                                        (EntryKind::Folder, Some(path)) => {
                                            further.push((place, Search { folder: id, path }));
                                        }
                                        _ => {}
                                    }
                                }
                            });
                        read.err().map(ReadError::Declined)
                    }
                    ObjectLookup::Absent | ObjectLookup::Object(..) => {
                        Some(ReadError::Declined(ReadDecline::Malformed))
                    }
                    ObjectLookup::Start(..) => {
                        Some(ReadError::Declined(ReadDecline::TooManyEntries))
                    }
                    ObjectLookup::Unread(error) => Some(error),
                };
                if let Some(error) = decline {
                    let text = error.to_string();
                    for at in names.drain().flat_map(|(_, searches)| searches) {
                        found[searches[at].0] = Err(match &error {
                            ReadError::Declined(decline) => ReadError::Declined(*decline),
                            _ => ReadError::Git(text.clone()),
                        });
                    }
                }
            },
        )?;
        Ok(further)
    }

    /// Reads the contents of many files by id, see [`find_files`](Self::find_files). `each` gets
    /// the index of the id. For a file of more than `bytes_max` bytes, it gets the beginning, one
    /// byte longer than that.
    ///
    /// # Errors
    ///
    /// Only errors that end all reading: [`ReadError::Passed`] and [`ReadError::Folder`]. A single
    /// file can be declined with [`ReadDecline::Malformed`].
    pub fn contents_of(
        &mut self,
        ids: &[ObjectId],
        bytes_max: u64,
        mut each: impl FnMut(usize, Result<&[u8], ReadError>),
    ) -> Result<(), ReadError> {
        self.objects(ids, bytes_max, |place, found| {
            each(
                place,
                match found {
                    ObjectLookup::Object(ObjectKind::Blob, bytes)
                    | ObjectLookup::Start(ObjectKind::Blob, bytes) => Ok(bytes),
                    ObjectLookup::Unread(error) => Err(error),
                    ObjectLookup::Absent | ObjectLookup::Object(..) | ObjectLookup::Start(..) => {
                        Err(ReadError::Declined(ReadDecline::Malformed))
                    }
                },
            );
        })
    }

    /// Returns for each commit whether the mirror has it.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn holds(&mut self, commits: &[&CommitSha]) -> Result<Vec<bool>, ReadError> {
        let ids: Vec<ObjectId> = commits.iter().map(|commit| ObjectId::of(commit)).collect();
        self.learn(ids.iter().copied())?;
        let is_there = |id: ObjectId| match self.link(id) {
            Ok(link) => Ok(link.is_some()),
            Err(error) => error.of_one().map(|_| false),
        };
        ids.into_iter().map(is_there).collect()
    }
}

/// Returns whether a file may have this path. No tree that git writes has names such as `..`.
fn may_exist(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    let is_odd = |part: &[u8]| matches!(part, b"" | b"." | b"..");
    path.len() <= PATH_BYTES_MAX && !path.contains(&0) && !parts.any(is_odd)
}
