use std::error::Error;

use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::StoreError;
use super::error::corrupt;

/// One value that is bound to a statement: the narrow set both backends share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl Value<'_> {
    /// Returns the bytes of a text or blob.
    pub(super) const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
            Self::Null | Self::Integer(_) => &[],
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
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
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
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
            Self::Text(text) => text.to_sql(column, out),
            Self::Blob(bytes) => bytes.to_sql(column, out),
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

    pub(super) fn blob(&self, index: usize) -> Result<Vec<u8>, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        })
    }
}
