//! Mirrors. After a push, the service fetches the repository, reads the notes of its commits, and
//! stores the Sessions that they name as facts.

mod allowance;
mod archive;
mod bare;
mod failure;
mod folder;
mod gate;
mod gc;
mod git;
mod heads;
mod notes;
mod obeyed;
mod object_id;
mod observe;
mod prefixes;
mod process;
mod progress;
mod reader;
mod reading;
mod refresh;
mod remote;
mod retry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unfinished;
mod workers;

pub use allowance::free_space;
pub use archive::{ArchiveError, belongs, keep, put_back};
pub use failure::MirrorFailure;
pub use folder::MirrorFolder;
pub use gc::{
    CollectedMirror, GC_POLICY_VERSION, GcAction, GcError, GcReason, MirrorRetention, collect,
};
pub use git::{Git, GitUnusable};
pub use object_id::ObjectId;
pub use observe::NotesBudget;
pub use reader::{
    Ancestry, ChangeKind, ChangedFile, CommitObject, Diff, DiffQuestion, MirrorReader, PushRange,
    ReadDecline, ReadError, Rename, WantedFile,
};
pub use reading::MirrorReading;
pub use refresh::{MirrorConfig, OnRefreshed, RefreshOutcome, Refresher};
pub use remote::{AllowedHosts, CloneUrlRefusal, Remotes, Resolve};
pub use svc_engine_capture::notes::NotesRef;
pub use workers::Mirrors;
