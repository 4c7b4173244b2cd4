use svc_model::open::Open;
use svc_model::overview::Attention;
use svc_model::time::Instant;

use crate::surface::Surface;

/// The characters that a commit id is shortened to.
const COMMIT_CHARACTERS: usize = 10;

impl Surface {
    /// Says what needs a look, and why.
    pub fn attention(self, attention: &Open<Attention>, now: Instant) -> String {
        match attention {
            Open::Known(attention) => self.known_attention(attention, now),
            Open::Unknown(other) => self.word(other.word()),
        }
    }

    fn known_attention(self, attention: &Attention, now: Instant) -> String {
        match attention {
            Attention::FailedCommit {
                repo,
                commit_sha,
                pr_number,
                workflows,
                session_ids,
                ..
            } => {
                let sha: String = commit_sha
                    .as_str()
                    .chars()
                    .take(COMMIT_CHARACTERS)
                    .collect();
                let merged = pr_number.map_or_else(String::new, |number| {
                    format!(", which holds pull request {number}")
                });
                let workflows = match workflows.len() {
                    0 => String::new(),
                    _ => format!(" ({})", self.list(workflows.iter().map(String::as_str))),
                };
                let sessions = self.many(session_ids.len() as u64, "Session is", "Sessions are");
                let repo = self.escape(repo);
                format!("{repo}: CI failed at {sha}{merged}{workflows}; {sessions} behind it")
            }
            Attention::DeletedEdits { session_id, calls } => {
                let calls = self.calls_of_models(*calls);
                let session = self.escape(session_id.as_str());
                format!("Session {session}: all edits of {calls} were gone before its end")
            }
            Attention::NotesAbsent { repo, commits, .. } => {
                let commits = self.many(*commits, "commit", "commits");
                let repo = self.escape(repo);
                format!("{repo}: {commits} near agents' calls, and no note names a Session")
            }
            Attention::PushesAbsent {
                repo,
                last_push_at,
                usual_seconds,
                ..
            } => {
                let (last, usual) = (
                    self.relative(*last_push_at, now),
                    self.length(*usual_seconds),
                );
                let repo = self.escape(repo);
                format!(
                    "{repo}: the last push was received {last}; usually one comes every {usual}"
                )
            }
            Attention::SilentSource {
                source,
                last_delivery_at,
                usual_seconds,
            } => {
                let (last, usual) = (
                    self.relative(*last_delivery_at, now),
                    self.length(*usual_seconds),
                );
                let source = self.word(source.as_str());
                format!(
                    "{source}: the last delivery arrived {last}; usually one comes every {usual}"
                )
            }
        }
    }
}
