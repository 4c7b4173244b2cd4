//! Mirrors: after a push the service fetches the repository, reads the notes of its commits, and
//! appends what they say as facts.

mod allowance;
mod bare;
mod folder;
mod git;
mod object_id;
mod process;
mod remote;
