//! Which commits of a mirror have an abbreviated id.
//!
//! A first call of git says which of all the ids may name a commit. Only these are then looked up
//! one by one, because git lists all objects that begin with an id only for ids in its arguments.

use std::collections::HashSet;
use std::io::{BufRead as _, Read as _};

use svc_model::repository::CommitSha;

use super::allowance::Allowance;
use super::bare::{MERGED_HEADS, Mirror, Object, lines};
use super::git::GitError;
use super::object_id::ObjectId;
use super::process::Input;
use super::reader::{MirrorReader, ReadError};

/// The maximum bytes of a line in git's answers.
const LINE_BYTES_MAX: u64 = 1_024;
/// The ids in the arguments of one call.
const ARGUMENTS_MAX: usize = 1_000;

impl MirrorReader {
    /// Returns the commits that begin with one of these ids, whole or abbreviated, and that a branch
    /// or the head of a pull request reaches. Each comes with the index of the id.
    ///
    /// # Errors
    ///
    /// If git does not answer before the deadline.
    pub fn commits_beginning_with(
        &self,
        ids: &[&str],
    ) -> Result<Vec<(usize, CommitSha)>, ReadError> {
        let mirror = Mirror::at(&self.git, self.path.clone());
        Ok(mirror.commits_beginning_with(ids, &self.allowance)?)
    }
}

impl Mirror<'_> {
    fn commits_beginning_with(
        &self,
        ids: &[&str],
        allowance: &Allowance,
    ) -> Result<Vec<(usize, CommitSha)>, GitError> {
        let likely = self.likely(ids, allowance)?;
        let mut listed = HashSet::new();
        for some in likely.chunks(ARGUMENTS_MAX) {
            listed.extend(self.beginning_with(some.iter().map(|place| ids[*place]), allowance)?);
        }
        let mut commits = self.reached_commits(listed.into_iter().collect(), allowance)?;
        commits.sort_unstable();
        let mut found = Vec::new();
        for place in likely {
            let first = commits.partition_point(|(digits, _)| digits.as_str() < ids[place]);
            let fitting = commits[first..]
                .iter()
                .take_while(|(digits, _)| digits.starts_with(ids[place]));
            found.extend(fitting.map(|(_, commit)| (place, commit.commit())));
        }
        Ok(found)
    }

    /// Returns the indices of the ids that may name a commit: some object begins with the id, or a
    /// branch is named like it.
    fn likely(&self, ids: &[&str], allowance: &Allowance) -> Result<Vec<usize>, GitError> {
        let (input, count) = lines(ids);
        if count == 0 {
            return Ok(Vec::new());
        }
        self.git
            .on("cat-file", &self.path)
            .args(["cat-file", "--buffer", "--batch-check=%(objectname)"])
            .run(Input::Bytes(input), allowance, |output| {
                let mut likely = Vec::new();
                let mut line = Vec::new();
                for place in 0..count {
                    line.clear();
                    output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
                    if !line.ends_with(b"\n") {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    if !line.ends_with(b" missing\n") {
                        likely.push(place);
                    }
                }
                Ok(likely)
            })
    }

    /// Returns all objects that begin with one of these ids.
    fn beginning_with<'i>(
        &self,
        ids: impl Iterator<Item = &'i str>,
        allowance: &Allowance,
    ) -> Result<Vec<ObjectId>, GitError> {
        self.git
            .on("rev-parse", &self.path)
            .arg("rev-parse")
            .args(ids.map(|id| format!("--disambiguate={id}")))
            .run(Input::Nothing, allowance, |output| {
                let mut objects = Vec::new();
                let mut line = Vec::new();
                loop {
                    line.clear();
                    if output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
                        return Ok(objects);
                    }
                    objects.extend(ObjectId::parse(line.trim_ascii_end()));
                }
            })
    }

    /// Returns which of these objects are commits that a branch or the head of a pull request
    /// reaches, each with its digits.
    fn reached_commits(
        &self,
        objects: Vec<ObjectId>,
        allowance: &Allowance,
    ) -> Result<Vec<(String, ObjectId)>, GitError> {
        let kinds = self.objects(&objects, allowance)?;
        let commits = objects.into_iter().zip(kinds);
        let commits = commits.filter(|(_, kind)| *kind == Object::Commit);
        let commits: Vec<ObjectId> = commits.map(|(commit, _)| commit).collect();
        let heads = format!("--glob={MERGED_HEADS}");
        let tips = ["--branches", "--glob=refs/pull", &heads];
        let unreached = self.unreached_from(&tips, &commits, allowance)?;
        let reached = commits
            .into_iter()
            .filter(|commit| !unreached.contains(commit));
        Ok(reached.map(|commit| (commit.to_string(), commit)).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::bare::tests::{Mirrored, long};
    use crate::testing::git::Repository;

    fn mirrored(forge: &Repository) -> Mirrored {
        forge.push();
        let mirrored = Mirrored::new();
        mirrored.fetch(forge).unwrap();
        mirrored
    }

    fn found(mirrored: &Mirrored, ids: &[&str]) -> Vec<(usize, String)> {
        let found = mirrored.mirror().commits_beginning_with(ids, &long());
        let found = found.unwrap().into_iter();
        found
            .map(|(place, commit)| (place, commit.into()))
            .collect()
    }

    #[test]
    fn a_commit_is_found_by_its_first_digits() {
        let forge = Repository::create();
        let (first, second) = (forge.commit("first"), forge.commit("second"));
        // A branch that is named like an id is not asked for its commit.
        forge.run(&["branch", &first[..7], &second]);
        forge.run(&["branch", "0123456", &second]);
        let mirrored = mirrored(&forge);
        let unknown = "0123456789abcdef";
        let ids = [
            &second[..9],
            unknown,
            &first,
            &first[..7],
            "0123456",
            &"a".repeat(64),
        ];
        let expected = [(0, second.clone()), (2, first.clone()), (3, first.clone())];
        assert_eq!(found(&mirrored, &ids), expected);
        assert_eq!(found(&mirrored, &[unknown]), []);
        assert_eq!(found(&mirrored, &[]), []);
    }

    #[test]
    fn only_what_a_branch_or_a_pull_request_reaches_is_found() {
        let forge = Repository::create();
        let kept = forge.commit("kept");
        forge.run(&["checkout", "-q", "--detach"]);
        let proposed = forge.commit("proposed");
        forge.run(&["update-ref", "refs/pull/7/head", &proposed]);
        let gone = forge.commit("gone");
        forge.run(&["branch", "gone", &gone]);
        let tree = forge.run(&["rev-parse", "HEAD^{tree}"]);
        forge.run(&["tag", "-a", "-m", "tag", "v1", &kept]);
        let tag = forge.run(&["rev-parse", "v1"]);
        let mirrored = mirrored(&forge);
        let ids = [
            &*kept,
            &proposed,
            &gone[..8],
            &tree,
            &tag,
            &tree[..8],
            &tag[..8],
        ];
        let all = [(0, kept.clone()), (1, proposed.clone()), (2, gone.clone())];
        assert_eq!(found(&mirrored, &ids), all);
        forge.run(&["branch", "-D", "gone"]);
        forge.push();
        mirrored.fetch(&forge).unwrap();
        assert_eq!(found(&mirrored, &ids), all[..2]);
    }

    #[test]
    fn every_commit_with_the_same_first_digits_is_found() {
        let forge = Repository::create();
        let mut commits = forge.add_stamped(400, "s");
        let mirrored = mirrored(&forge);
        commits.sort_unstable();
        let pair = commits.windows(2).find(|pair| pair[0][..4] == pair[1][..4]);
        let pair = pair.unwrap();
        let expected: Vec<(usize, String)> =
            pair.iter().map(|commit| (0, commit.clone())).collect();
        assert_eq!(found(&mirrored, &[&pair[0][..4]]), expected);
    }

    #[test]
    fn ids_of_either_length_are_found() {
        let forge = Repository::create_with("sha256");
        let commit = forge.commit("only");
        let mirrored = mirrored(&forge);
        let ids = [&commit[..7], &commit[..40], &commit];
        let expected = [
            (0, commit.clone()),
            (1, commit.clone()),
            (2, commit.clone()),
        ];
        assert_eq!(found(&mirrored, &ids), expected);
    }
}
