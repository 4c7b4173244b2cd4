//! What a verification finds.

use std::collections::BTreeMap;

use crate::sql::error::{DriverError, StoreError};

/// Maximum number of findings that are listed. All are counted.
pub const FINDINGS_MAX: usize = 1_000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// The file of a table or a mirror is not the one that was written.
    FileDamaged,
    /// SQLite finds its own pages damaged.
    Structure,
    /// Rows cannot be read.
    RowsUnreadable,
    /// A single row cannot be read, or holds a wrong value.
    RowUnreadable,
    /// A content does not match its digest.
    DigestDiffers,
    /// A content that a call refers to is absent.
    ContentAbsent,
    /// The size of a call does not match its contents.
    SizeDiffers,
    /// The raw payload of a call is absent.
    RawPayloadAbsent,
    /// An alias of a call is absent.
    AliasAbsent,
    /// A row refers to a call that is absent.
    CallAbsent,
    /// The Session of a fact is absent.
    SessionAbsent,
    /// A claim of a fact, about its Session or the name of a repository, is not recorded.
    ClaimAbsent,
    /// The push of an observation is absent.
    PushAbsent,
    /// The observation that a reported commit became is absent.
    ObservationAbsent,
    /// The writer that gave a content its id is absent.
    WriterAbsent,
    /// A stored count does not match the rows.
    CountDiffers,
    /// A fact was captured after the last moment of its organization.
    CapturedBeyond,
    /// Erased content is still there.
    ContentRemains,
    /// The row of the log that explains an erasure is absent.
    ErasureAbsent,
    /// A fact whose content was erased is absent.
    FactAbsent,
    /// The backup lacks a mirror that was fetched according to the store.
    MirrorAbsent,
    /// The grants in force do not follow from their log.
    GrantDiffers,
    /// Rows refer to others that were not found but may be among those that cannot be read.
    CannotTell,
}

impl Damage {
    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileDamaged => "file_damaged",
            Self::Structure => "structure",
            Self::RowsUnreadable => "rows_unreadable",
            Self::RowUnreadable => "row_unreadable",
            Self::DigestDiffers => "digest_differs",
            Self::ContentAbsent => "content_absent",
            Self::SizeDiffers => "size_differs",
            Self::RawPayloadAbsent => "raw_payload_absent",
            Self::AliasAbsent => "alias_absent",
            Self::CallAbsent => "call_absent",
            Self::SessionAbsent => "session_absent",
            Self::ClaimAbsent => "claim_absent",
            Self::PushAbsent => "push_absent",
            Self::ObservationAbsent => "observation_absent",
            Self::WriterAbsent => "writer_absent",
            Self::CountDiffers => "count_differs",
            Self::CapturedBeyond => "captured_beyond",
            Self::ContentRemains => "content_remains",
            Self::ErasureAbsent => "erasure_absent",
            Self::FactAbsent => "fact_absent",
            Self::MirrorAbsent => "mirror_absent",
            Self::GrantDiffers => "grant_differs",
            Self::CannotTell => "cannot_tell",
        }
    }
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table, or another part of the store or backup.
    pub table: String,
    /// The id of the fact, content or row, if known.
    pub id: Option<String>,
    /// What is wrong.
    pub damage: Damage,
    /// More about the damage.
    pub detail: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first findings.
    pub findings: Vec<Finding>,
    /// The number of all findings.
    pub total: u64,
    /// The number of rows that were read, by table.
    pub rows: BTreeMap<String, u64>,
    /// How many rows were not found but may be among the unreadable rows of a table, by that table
    /// and by the table that refers to them.
    pub(crate) undecided: BTreeMap<(String, String), u64>,
}

impl Findings {
    /// Adds a finding.
    pub fn add(
        &mut self,
        table: &str,
        id: Option<&str>,
        damage: Damage,
        detail: impl Into<String>,
    ) {
        self.total += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding {
                table: table.to_owned(),
                id: id.map(str::to_owned),
                damage,
                detail: detail.into(),
            });
        }
    }

    /// Counts a row that was not found but may be among the unreadable rows of `lost`.
    pub(crate) fn cannot_tell(&mut self, lost: &str, of: &str) {
        let place = (lost.to_owned(), of.to_owned());
        *self.undecided.entry(place).or_default() += 1;
    }

    /// Adds a finding for each pair of tables in `undecided`.
    pub(crate) fn add_undecided(&mut self) {
        for ((lost, of), count) in std::mem::take(&mut self.undecided) {
            let detail = format!(
                "of {of}: {count} not found, which may be among the rows of {lost} that cannot be read"
            );
            self.add(&lost, None, Damage::CannotTell, detail);
        }
    }
}

/// Returns whether an error is about stored data, rather than about access to it.
pub(crate) fn is_of_rows(error: &StoreError) -> bool {
    match error {
        StoreError::Postgres(DriverError(sqlx::Error::Database(_))) => !error.is_connection_lost(),
        StoreError::Corrupt { .. }
        | StoreError::Sqlite(_)
        | StoreError::Postgres(DriverError(
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_),
        )) => true,
        _ => false,
    }
}

/// Returns the text of an error about stored data.
pub(crate) fn error_text(error: &StoreError) -> String {
    match error {
        StoreError::Corrupt { what, .. } => (*what).to_owned(),
        StoreError::Sqlite(error) => error.to_string(),
        StoreError::Postgres(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Returns whether an error is about one row only, so that the next one may be readable.
pub(crate) fn is_of_one_row(error: &StoreError) -> bool {
    match error {
        StoreError::Sqlite(rusqlite::Error::SqliteFailure(..))
        | StoreError::Postgres(DriverError(sqlx::Error::Database(_))) => false,
        error => is_of_rows(error),
    }
}
