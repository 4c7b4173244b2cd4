//! The search index: the words of captured content, in a file of its own beside the facts.
//!
//! The index is a cache. It is built from the facts by a thread that follows them, and may be
//! deleted at any time. Nothing is answered from it: it only says where to look. Whoever asks it
//! checks in a snapshot of the store what it finds, and reads it there.
//!
//! The file is SQLite's, whichever database has the facts, and FTS5 keeps the lists of words. A row
//! of FTS5 is a passage: a part, or 2,000 characters of a longer one. The words are those of
//! [`svc_model::search::words`]. In memory are eight bytes for each passage.

mod changed_files;
mod directory;
mod error;
mod file;
mod follower;
mod index;
mod lookup;
mod part;
mod rank;
mod sample;
mod typing_error;
mod writer;

pub use changed_files::{ChangedFiles, followed_tables};
pub use error::{IndexError, SearchPathError};
pub use file::{IndexState, SearchFile, request_rebuild, state_of};
#[cfg(feature = "testing")]
pub use index::StillFollower;
pub use index::{IndexReading, SearchIndex, SearchPlace, SearchStatus};
pub use lookup::{Found, FoundPart, FoundSession, IndexQuery, PartPlace, SearchableSessions};
pub use part::{PartDigest, kind};
pub use rank::session_score;
pub use sample::{IndexSample, sample};
