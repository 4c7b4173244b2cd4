//! How members of facts are written to columns and read back.
//!
//! Writing and reading go through the same trait, in the same order, so they cannot disagree.

use std::sync::Arc;

use svc_engine_fact::GitCommitId;
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::{CiProvider, CiResult, GatewayProvider};
use svc_model::json::{Json, Text};
use svc_model::query::ObservationSource;
use svc_model::repository::{
    Branch, CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName,
    RepositoryProvider,
};
use svc_model::time::Instant;
use svc_model::usage::{CallSource, CallUsage, TokenCounts, UsageSource};

use super::packing;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{self, Row, Value};

/// Returns the letter of a gateway in the row of a call and in an index of calls.
pub(crate) const fn gateway_letter(gateway: GatewayProvider) -> &'static str {
    match gateway {
        GatewayProvider::GatewayA => "a",
        GatewayProvider::GatewayB => "b",
        GatewayProvider::GatewayC => "c",
        GatewayProvider::Unknown => "u",
    }
}

fn gateway_of_letter(letter: &str) -> Option<GatewayProvider> {
    let mut all = GatewayProvider::ALL.iter().copied();
    all.find(|gateway| gateway_letter(*gateway) == letter)
}

/// Returns the letter of the place where a call was captured.
pub(crate) const fn source_letter(source: CallSource) -> &'static str {
    match source {
        CallSource::Gateway => "g",
        CallSource::Telemetry => "t",
        CallSource::Span => "s",
        CallSource::Transcript => "r",
        CallSource::Sdk => "k",
    }
}

/// Returns the place with this letter.
pub(crate) fn source_of_letter(letter: &str) -> Option<CallSource> {
    let mut all = CallSource::ALL.iter().copied();
    all.find(|source| source_letter(*source) == letter)
}

/// Reads the gateway of a call.
pub(crate) fn gateway_provider(row: &Row<'_>, index: usize) -> Result<GatewayProvider, StoreError> {
    row.with_text(index, gateway_of_letter)?
        .ok_or(corrupt("inference_calls", "gateway_provider"))
}

/// A member of a fact, in one or several columns.
pub(crate) trait Column: Sized {
    /// The number of columns.
    const WIDTH: usize = 1;

    /// Appends the values of the columns.
    fn write(self, row: &mut Vec<Value<'static>>);

    /// Reads the columns.
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError>;
}

/// A different form of a member in its column.
pub(crate) trait ColumnForm<T> {
    fn write(value: T, row: &mut Vec<Value<'static>>);
    fn read(columns: &mut Columns<'_>) -> Result<T, StoreError>;
}

/// The columns of a row that are not read yet.
pub(crate) struct Columns<'r> {
    row: &'r Row<'r>,
    table: &'static str,
    names: &'static [&'static str],
    place: usize,
}

impl<'r> Columns<'r> {
    /// Starts with the first column.
    pub(crate) const fn of(
        row: &'r Row<'r>,
        table: &'static str,
        names: &'static [&'static str],
    ) -> Self {
        Self {
            row,
            table,
            names,
            place: 0,
        }
    }

    /// Skips the first columns.
    pub(crate) const fn behind(mut self, columns: usize) -> Self {
        self.place = columns;
        self
    }

    /// Reads the next member.
    pub(crate) fn next<T: Column>(&mut self) -> Result<T, StoreError> {
        T::read(self)
    }

    /// Reads the next column with `read`, which returns nothing for a value that cannot have been
    /// written.
    fn take<T>(
        &mut self,
        read: impl FnOnce(&Row<'_>, usize) -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let place = self.place;
        self.place += 1;
        let column = self.names.get(place).copied().unwrap_or_default();
        read(self.row, place)?.ok_or(corrupt(self.table, column))
    }

    /// Reads the bytes of the next column.
    pub(crate) fn bytes<T>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        self.take(|row, place| row.with_blob(place, read)?)
    }

    fn text<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, StoreError> {
        self.take(|row, place| row.with_text(place, parse))
    }
}

/// An absent value is NULL in each column.
impl<T: Column> Column for Option<T> {
    const WIDTH: usize = T::WIDTH;

    fn write(self, row: &mut Vec<Value<'static>>) {
        match self {
            Some(value) => value.write(row),
            None => row.extend(std::iter::repeat_n(Value::Null, T::WIDTH)),
        }
    }

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        if columns.row.holds(columns.place, &Value::Null)? {
            columns.place += T::WIDTH;
            return Ok(None);
        }
        T::read(columns).map(Some)
    }
}

macro_rules! columns {
    ($($member:ty: $write:expr, $read:expr;)+) => {
        $(impl Column for $member {
            fn write(self, row: &mut Vec<Value<'static>>) {
                let write: fn(Self) -> Value<'static> = $write;
                row.push(write(self));
            }

            fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
                let read: fn(&mut Columns<'_>) -> Result<Self, StoreError> = $read;
                read(columns)
            }
        })+
    };
}

columns! {
    String: Value::OwnText, |columns| columns.take(|row, place| row.text(place).map(Some));
    Arc<str>: |text| Value::OwnText((*text).to_owned()),
        |columns| columns.text(|text| Some(text.into()));
    i64: Value::Integer, |columns| columns.take(|row, place| row.integer(place).map(Some));
    f64: Value::Real, |columns| columns.take(|row, place| row.real(place).map(Some));
    bool: Value::from, |columns| columns.take(|row, place| Ok(match row.integer(place)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }));
    Instant: Value::from,
        |columns| columns.take(|row, place| Ok(Self::from_microseconds(row.integer(place)?)));
    FactId: Value::from, |columns| columns.bytes(|bytes| Ok(value::fact_id(bytes)));
    SessionId: |id| Value::OwnText(id.into()), |columns| columns.text(|text| Self::new(text).ok());
    UserId: |id| Value::OwnText(id.into()), |columns| columns.text(|text| Self::new(text).ok());
    AgentHarness: |harness| harness.as_str().into(), |columns| columns.text(Self::from_wire);
    InteractionMode: |mode| mode.as_str().into(), |columns| columns.text(Self::from_wire);
    CiProvider: |provider| provider.as_str().into(), |columns| columns.text(Self::from_wire);
    CiResult: |result| result.as_str().into(), |columns| columns.text(Self::from_wire);
    GatewayProvider: |provider| gateway_letter(provider).into(),
        |columns| columns.text(gateway_of_letter);
    UsageSource: |source| source.as_str().into(), |columns| columns.text(Self::from_wire);
    ObservationSource: |source| source.as_str().into(), |columns| columns.text(Self::from_wire);
    GitCommitId: |id| Value::OwnText(id.into()), |columns| columns.text(Self::new);
    CallSource: |source| source_letter(source).into(), |columns| columns.text(source_of_letter);
    RepositoryProvider: |provider| provider.as_str().into(),
        |columns| columns.text(Self::from_wire);
    RepositoryHost: |host| Value::OwnText(host.into()), |columns| columns.text(Self::new);
    RepositoryId: |id| Value::OwnText(id.into()), |columns| columns.text(Self::new);
    RepositoryName: |name| Value::OwnText(name.into()), |columns| columns.text(Self::new);
    CommitSha: |sha| Value::OwnText(sha.into()), |columns| columns.text(Self::new);
    Branch: |branch| Value::OwnText(branch.into()), |columns| columns.text(Self::new);
    // A text that may contain NUL or a surrogate is stored as its escaped JSON string.
    Text: |text| Value::OwnText(String::from_utf8(text.document()).expect("escaped JSON is ASCII")),
        |columns| columns.text(|text| Self::of_document(text.as_bytes()));
}

/// Declares a structure that is stored in the columns of its members, in order.
macro_rules! structure {
    ($structure:ident: $width:literal, $($member:ident),+ $(,)?) => {
        impl $crate::pack::column::Column for $structure {
            const WIDTH: usize = $width;

            fn write(self, row: &mut Vec<$crate::sql::value::Value<'static>>) {
                $($crate::pack::column::Column::write(self.$member, row);)+
            }

            fn read(
                columns: &mut $crate::pack::column::Columns<'_>,
            ) -> Result<Self, $crate::sql::error::StoreError> {
                Ok(Self { $($member: columns.next()?),+ })
            }
        }
    };
}
pub(crate) use structure;

structure!(RepositoryIdentity: 3, repository_provider, repository_host, repository_id);
structure!(
    CallUsage: 7,
    cost_usd_micros,
    cache_read_tokens,
    cache_write_tokens,
    cache_write_5m_tokens,
    cache_write_1h_tokens,
    reasoning_tokens,
    tier,
);
structure!(
    TokenCounts: 7,
    input_tokens_uncached,
    cache_read_tokens,
    cache_write_tokens,
    cache_write_5m_tokens,
    cache_write_1h_tokens,
    output_tokens,
    reasoning_tokens,
);

/// A value with a canonical JSON text.
pub(crate) trait Document: Sized {
    fn document(&self) -> Vec<u8>;
    fn of_document(bytes: &[u8]) -> Option<Self>;
}

impl Document for Json {
    fn document(&self) -> Vec<u8> {
        self.to_canonical()
    }

    fn of_document(bytes: &[u8]) -> Option<Self> {
        Self::parse(bytes).ok()
    }
}

impl Document for Text {
    fn document(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() + 2);
        self.write_escaped(&mut out);
        out
    }

    fn of_document(bytes: &[u8]) -> Option<Self> {
        Json::parse(bytes).ok()?.into_text()
    }
}

/// A value that may be large, compressed if that saves space.
pub(crate) struct PackedColumn;

impl<T: Document> ColumnForm<T> for PackedColumn {
    fn write(value: T, row: &mut Vec<Value<'static>>) {
        row.push(Value::OwnBlob(packing::cell(value.document())));
    }

    fn read(columns: &mut Columns<'_>) -> Result<T, StoreError> {
        columns.bytes(|cell| Ok(T::of_document(&packing::of_cell(cell)?)))
    }
}

/// An absent number is stored as 0, so that a unique index includes it. A present one is never 0.
pub(crate) struct OrZero;

impl ColumnForm<Option<i64>> for OrZero {
    fn write(value: Option<i64>, row: &mut Vec<Value<'static>>) {
        row.push(value.unwrap_or(0).into());
    }

    fn read(columns: &mut Columns<'_>) -> Result<Option<i64>, StoreError> {
        let number: i64 = columns.next()?;
        Ok((number != 0).then_some(number))
    }
}
