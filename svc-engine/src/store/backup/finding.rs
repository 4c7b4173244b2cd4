//! What a verification finds.

use std::collections::BTreeMap;

use super::super::StoreError;

/// Findings that are listed. All are counted.
pub const FINDINGS_MAX: usize = 1_000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// The file of a table or a mirror is not the one that was written.
    FileDamaged,
    /// SQLite finds its own pages damaged.
    Structure,
    /// Rows that cannot be read.
    RowsUnreadable,
    /// A row that cannot be read as what it is.
    RowUnreadable,
    /// A content is not what its key says.
    DigestDiffers,
    /// A content that a call refers to is absent.
    ContentAbsent,
    /// The size of a call is not that of its contents.
    SizeDiffers,
    /// The raw payload of a call is absent.
    RawPayloadAbsent,
    /// An alias of a call is absent.
    AliasAbsent,
    /// A row about a call that is absent.
    CallAbsent,
    /// The Session of a fact is absent.
    SessionAbsent,
    /// What a fact says of its Session or of the name of a repository is not written down.
    ClaimAbsent,
    /// The push that an observation comes from is absent.
    PushAbsent,
    /// The writer that gave the id of a content is absent.
    WriterAbsent,
    /// A kept count is not that of the rows.
    CountDiffers,
    /// A fact was captured after the last moment of its organization.
    CapturedBeyond,
    /// The content of a fact is there that was erased.
    ContentRemains,
    /// The row of the log is absent that says why content was erased.
    ErasureAbsent,
    /// A fact is absent whose content was erased.
    FactAbsent,
    /// A mirror is not in the backup, although the store says that it was fetched.
    MirrorAbsent,
    /// The grants in force are not what their log amounts to.
    GrantDiffers,
    /// Rows refer to others that were not found, and that may be among those that cannot be read.
    CannotTell,
}

impl Damage {
    /// Returns the word.
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

/// One damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table, or another part of the whole.
    pub table: String,
    /// The fact, the content or the row, where one can be named.
    pub id: Option<String>,
    /// What is wrong.
    pub damage: Damage,
    /// What is known of it beside.
    pub detail: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first of them.
    pub findings: Vec<Finding>,
    /// How many there are.
    pub total: u64,
    /// The rows that were looked at, by table.
    pub rows: BTreeMap<String, u64>,
    /// How often something of a table was not found that may be among its unreadable rows, by that
    /// table and the one that was looked at.
    pub(super) untold: BTreeMap<(String, String), u64>,
}

impl Findings {
    /// Adds one.
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

    /// Adds that something of `lost` was not found that may be among its unreadable rows.
    pub(super) fn cannot_tell(&mut self, lost: &str, of: &str) {
        let place = (lost.to_owned(), of.to_owned());
        *self.untold.entry(place).or_default() += 1;
    }

    /// Adds a finding for each table of which something cannot be told.
    pub(super) fn tell(&mut self) {
        for ((lost, of), count) in std::mem::take(&mut self.untold) {
            let said = format!(
                "of {of}: {count} not found, which may be among the rows of {lost} that cannot be read"
            );
            self.add(&lost, None, Damage::CannotTell, said);
        }
    }
}

/// Returns whether an error is of what is stored, and not of the way to it.
pub(super) fn is_of_rows(error: &StoreError) -> bool {
    match error {
        StoreError::Postgres(sqlx::Error::Database(_)) => !error.is_connection_lost(),
        StoreError::Corrupt { .. }
        | StoreError::Sqlite(_)
        | StoreError::Postgres(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => true,
        _ => false,
    }
}

/// Returns what an error says of a row.
pub(super) fn said(error: &StoreError) -> String {
    match error {
        StoreError::Corrupt { what, .. } => (*what).to_owned(),
        StoreError::Sqlite(error) => error.to_string(),
        StoreError::Postgres(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Returns whether an error is of one row alone, so that the next one may be read.
pub(super) fn is_of_one_row(error: &StoreError) -> bool {
    match error {
        StoreError::Sqlite(rusqlite::Error::SqliteFailure(..))
        | StoreError::Postgres(sqlx::Error::Database(_)) => false,
        error => is_of_rows(error),
    }
}
