use std::io::{self, BufRead, Read as _};

use svc_model::repository::CommitSha;

use super::objects::ObjectLookup;
use super::{COMMIT_BYTES_MAX, CommitObject, LINE_BYTES_MAX, MirrorReader, ObjectKind, ReadError};
use super::{ReadDecline, read_header};
use crate::bare::lines;
use crate::object_id::ObjectId;
use crate::process::Input;

impl MirrorReader {
    /// Returns these commits, in their order, each `None` if the mirror has none with the id or
    /// cannot read it.
    ///
    /// # Errors
    ///
    /// Only errors that end all reading: [`ReadError::Passed`] and [`ReadError::Folder`].
    pub fn commits(
        &mut self,
        commits: &[CommitSha],
    ) -> Result<Vec<Option<CommitObject>>, ReadError> {
        let ids: Vec<ObjectId> = commits.iter().map(ObjectId::of).collect();
        let mut found = vec![None; ids.len()];
        self.objects(&ids, COMMIT_BYTES_MAX, |place, object| {
            if let ObjectLookup::Object(ObjectKind::Commit, text) = object {
                found[place] = CommitObject::parse(text);
            }
        })?;
        Ok(found)
    }

    /// Returns the head of a pull request as the forge shows it in a ref of its own, or `None` if
    /// the mirror has no such ref.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn pull_request_head(&mut self, number: u64) -> Result<Option<CommitSha>, ReadError> {
        let name = format!("refs/pull/{number}/head").into_bytes();
        let question = [b"info ", &name[..], b"\0"].concat();
        let header = self.ask_objects(&question, |output| read_header(output, &name))?;
        Ok(header
            .filter(|header| header.kind == ObjectKind::Commit)
            .map(|header| header.id.commit()))
    }

    /// Returns the commits that one of these heads reaches and none of these bases does, each after
    /// its parents. If there are more than `commits_max`, it returns `None`. The mirror must have
    /// all heads and bases.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn reached_beyond(
        &mut self,
        heads: &[CommitSha],
        bases: &[CommitSha],
        commits_max: usize,
    ) -> Result<Option<Vec<CommitSha>>, ReadError> {
        let heads: Vec<ObjectId> = heads.iter().map(ObjectId::of).collect();
        let (mut input, _) = lines(heads.iter());
        for base in bases {
            input.extend_from_slice(format!("^{}\n", ObjectId::of(base)).as_bytes());
        }
        let mut found = Vec::new();
        self.call("rev-list")
            .args(["rev-list", "--topo-order", "--reverse"])
            .arg(format!("--max-count={}", commits_max.saturating_add(1)))
            .arg("--stdin")
            .run(Input::Bytes(input), &self.allowance, |output| {
                found = read_ids(output)?;
                Ok(())
            })?;
        if found.len() > commits_max {
            return Ok(None);
        }
        let found: Option<Vec<CommitSha>> = found.into_iter().collect();
        found
            .map(Some)
            .ok_or(ReadError::Declined(ReadDecline::Malformed))
    }
}

/// Reads one id from each line.
fn read_ids(output: &mut dyn BufRead) -> io::Result<Vec<Option<CommitSha>>> {
    let mut ids = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(ids);
        }
        let id = ObjectId::parse(line.trim_ascii_end());
        ids.push(id.map(ObjectId::commit));
    }
}
