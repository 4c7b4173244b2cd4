use std::error::Error;

use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use rusqlite::types::{ToSqlOutput, ValueRef};
use svc_model::time::Instant;

use super::StoreError;
use super::error::corrupt;

/// One value that is bound to a statement: the narrow set both backends share.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
    /// A text that was made for the row.
    OwnText(String),
    /// Bytes that were made for the row.
    OwnBlob(Vec<u8>),
}

impl Value<'_> {
    /// Returns the bytes of a text or blob.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::OwnText(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
            Self::OwnBlob(bytes) => bytes,
            Self::Null | Self::Integer(_) | Self::Real(_) => &[],
        }
    }

    fn as_sqlite(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::OwnText(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::OwnBlob(bytes) => ValueRef::Blob(bytes),
        }
    }

    /// Returns whether this is a text.
    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::OwnText(_))
    }
}

impl From<i64> for Value<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Self::Integer(i64::from(truth))
    }
}

impl From<f64> for Value<'_> {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<Instant> for Value<'_> {
    fn from(instant: Instant) -> Self {
        Self::Integer(instant.microseconds())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(bytes)
    }
}

impl<T> From<Option<T>> for Value<'_>
where
    Self: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_sqlite()))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        column: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(integer) => integer.to_sql(column, out),
            Self::Real(real) => real.to_sql(column, out),
            Self::Text(text) => text.to_sql(column, out),
            Self::OwnText(text) => text.to_sql(column, out),
            Self::Blob(bytes) => bytes.to_sql(column, out),
            Self::OwnBlob(bytes) => bytes.to_sql(column, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// One row that is being read, whichever backend it comes from.
pub(super) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r postgres::Row),
}

impl Row<'_> {
    /// Returns whether a column holds this value.
    pub(super) fn holds(&self, index: usize, value: &Value<'_>) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(index)? == value.as_sqlite()),
            Self::Postgres(row) => {
                let AsSent(sent) = row.try_get(index)?;
                Ok(match value {
                    Value::Null => sent.is_none(),
                    Value::Integer(integer) => sent == Some(&integer.to_be_bytes()),
                    Value::Real(real) => sent == Some(&real.to_be_bytes()),
                    Value::Text(_) | Value::OwnText(_) | Value::Blob(_) | Value::OwnBlob(_) => {
                        sent == Some(value.as_bytes())
                    }
                })
            }
        }
    }

    pub(super) fn integer(&self, index: usize) -> Result<i64, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }

    pub(super) fn optional_integer(&self, index: usize) -> Result<Option<i64>, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }

    pub(super) fn count(&self, index: usize) -> Result<u64, StoreError> {
        u64::try_from(self.integer(index)?).map_err(|_| corrupt("a count", "it is negative"))
    }

    pub(super) fn text(&self, index: usize) -> Result<String, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }

    pub(super) fn optional_text(&self, index: usize) -> Result<Option<String>, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }

    pub(super) fn real(&self, index: usize) -> Result<f64, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }

    pub(super) fn blob(&self, index: usize) -> Result<Vec<u8>, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }
}

/// A column as PostgreSQL sends it: integers and reals big-endian, texts and bytes as they are.
struct AsSent<'r>(Option<&'r [u8]>);

impl<'r> FromSql<'r> for AsSent<'r> {
    fn from_sql(_: &Type, bytes: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(bytes)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
