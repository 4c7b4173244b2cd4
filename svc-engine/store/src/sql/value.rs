use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgRow, PgTypeInfo, Postgres};
use sqlx::{Decode, Encode, Row as _, Type, ValueRef as _};
use svc_model::id::FactId;
use svc_model::time::Instant;
use uuid::Uuid;

use super::error::{StoreError, corrupt};

/// A value that is bound to a statement: the few types that both backends share.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
    /// The id of a fact: a blob of 16 bytes.
    FactId(Uuid),
    /// A text that the value owns.
    OwnText(String),
    /// Bytes that the value owns.
    OwnBlob(Vec<u8>),
}

impl Value<'_> {
    /// Returns the bytes of a text, blob or id.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::OwnText(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
            Self::OwnBlob(bytes) => bytes,
            Self::FactId(id) => id.as_bytes(),
            Self::Null | Self::Integer(_) | Self::Real(_) => &[],
        }
    }

    /// Returns whether this is a text.
    pub(crate) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::OwnText(_))
    }

    /// Returns the text, if this is one.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::OwnText(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes, if this is a blob or an id.
    pub(crate) fn as_blob(&self) -> Option<&[u8]> {
        match self {
            Self::Blob(bytes) => Some(bytes),
            Self::OwnBlob(bytes) => Some(bytes),
            Self::FactId(id) => Some(id.as_bytes()),
            _ => None,
        }
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

impl From<FactId> for Value<'_> {
    fn from(fact_id: FactId) -> Self {
        Self::FactId(fact_id.uuid())
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

impl Value<'_> {
    fn as_sqlite(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(_) | Self::OwnText(_) => ValueRef::Text(self.as_bytes()),
            Self::Blob(_) | Self::OwnBlob(_) | Self::FactId(_) => ValueRef::Blob(self.as_bytes()),
        }
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_sqlite()))
    }
}

/// The server infers the type of each placeholder: a NULL has no type, and no value is bound where
/// another type is expected.
impl Type<Postgres> for &Value<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for &Value<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(integer) => Encode::<Postgres>::encode_by_ref(integer, buffer),
            Value::Real(real) => Encode::<Postgres>::encode_by_ref(real, buffer),
            Value::Text(_)
            | Value::OwnText(_)
            | Value::Blob(_)
            | Value::OwnBlob(_)
            | Value::FactId(_) => {
                buffer.extend_from_slice(self.as_bytes());
                Ok(IsNull::No)
            }
        }
    }
}

/// Returns the id of a fact in these bytes.
pub(crate) fn fact_id(bytes: &[u8]) -> Option<FactId> {
    Uuid::from_slice(bytes).ok().map(FactId::new)
}

/// Appends a row in PostgreSQL's binary format: the number of columns, and each column after its
/// length.
pub(crate) fn binary_row(values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), StoreError> {
    let columns = i16::try_from(values.len()).map_err(|_| corrupt("a row", "its columns"))?;
    out.extend_from_slice(&columns.to_be_bytes());
    for value in values {
        let number;
        let bytes = match value {
            Value::Null => {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            Value::Integer(integer) => {
                number = integer.to_be_bytes();
                &number[..]
            }
            Value::Real(real) => {
                number = real.to_bits().to_be_bytes();
                &number[..]
            }
            Value::Text(_)
            | Value::OwnText(_)
            | Value::Blob(_)
            | Value::OwnBlob(_)
            | Value::FactId(_) => value.as_bytes(),
        };
        let length = i32::try_from(bytes.len()).map_err(|_| corrupt("a row", "its length"))?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(bytes);
    }
    Ok(())
}

/// A row that is read, from either backend or from a backup.
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r PgRow),
    /// A row that a backup keeps.
    Kept(&'r [Value<'static>]),
}

/// A type that a column of a kept row is read as.
trait OfKept: Sized {
    fn of_kept(value: &Value<'static>) -> Option<Self>;
}

impl OfKept for i64 {
    fn of_kept(value: &Value<'static>) -> Option<Self> {
        match value {
            Value::Integer(integer) => Some(*integer),
            _ => None,
        }
    }
}

impl OfKept for f64 {
    fn of_kept(value: &Value<'static>) -> Option<Self> {
        match value {
            Value::Real(real) => Some(*real),
            _ => None,
        }
    }
}

impl OfKept for String {
    fn of_kept(value: &Value<'static>) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl OfKept for Vec<u8> {
    fn of_kept(value: &Value<'static>) -> Option<Self> {
        value.as_blob().map(<[u8]>::to_vec)
    }
}

impl<T: OfKept> OfKept for Option<T> {
    fn of_kept(value: &Value<'static>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::of_kept(value).map(Some),
        }
    }
}

/// A column of a kept row holds something unexpected.
const KEPT: StoreError = corrupt("a kept row", "a column");

impl<'r> Row<'r> {
    /// Reads a column. The statement determines its type, so the type is not checked again.
    fn get<T>(&self, index: usize) -> Result<T, StoreError>
    where
        T: FromSql + Decode<'r, Postgres> + OfKept,
    {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get_unchecked(index)?,
            Self::Kept(_) => T::of_kept(self.kept(index)?).ok_or(KEPT)?,
        })
    }

    /// Returns a column of a kept row.
    fn kept(&self, index: usize) -> Result<&Value<'static>, StoreError> {
        match self {
            Self::Kept(values) => values.get(index).ok_or(KEPT),
            Self::Sqlite(_) | Self::Postgres(_) => Err(KEPT),
        }
    }

    /// Returns whether a column holds this value.
    pub(crate) fn holds(&self, index: usize, value: &Value<'_>) -> Result<bool, StoreError> {
        let row = match self {
            Self::Sqlite(row) => return Ok(row.get_ref(index)? == value.as_sqlite()),
            Self::Kept(_) => return Ok(self.kept(index)?.as_sqlite() == value.as_sqlite()),
            Self::Postgres(row) => row,
        };
        if row.try_get_raw(index)?.is_null() {
            return Ok(matches!(value, Value::Null));
        }
        Ok(match value {
            Value::Null => false,
            Value::Integer(integer) => self.integer(index)? == *integer,
            Value::Real(real) => self.real(index)?.to_bits() == real.to_bits(),
            Value::Text(_) | Value::OwnText(_) => {
                row.try_get_unchecked::<&str, _>(index)?.as_bytes() == value.as_bytes()
            }
            Value::Blob(_) | Value::OwnBlob(_) | Value::FactId(_) => {
                row.try_get_unchecked::<&[u8], _>(index)? == value.as_bytes()
            }
        })
    }

    pub(crate) fn integer(&self, index: usize) -> Result<i64, StoreError> {
        self.get(index)
    }

    pub(crate) fn optional_integer(&self, index: usize) -> Result<Option<i64>, StoreError> {
        self.get(index)
    }

    pub(crate) fn count(&self, index: usize) -> Result<u64, StoreError> {
        u64::try_from(self.integer(index)?).map_err(|_| corrupt("a count", "it is negative"))
    }

    pub(crate) fn text(&self, index: usize) -> Result<String, StoreError> {
        self.get(index)
    }

    /// Reads a text without copying it.
    pub(crate) fn with_text<T>(
        &self,
        index: usize,
        read: impl FnOnce(&str) -> T,
    ) -> Result<T, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => {
                let text = row.get_ref(index)?.as_str();
                read(text.map_err(rusqlite::Error::from)?)
            }
            Self::Postgres(row) => read(row.try_get_unchecked(index)?),
            Self::Kept(_) => read(self.kept(index)?.as_str().ok_or(KEPT)?),
        })
    }

    /// Reads bytes without copying them.
    pub(crate) fn with_blob<T>(
        &self,
        index: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => {
                let bytes = row.get_ref(index)?.as_blob();
                read(bytes.map_err(rusqlite::Error::from)?)
            }
            Self::Postgres(row) => read(row.try_get_unchecked(index)?),
            Self::Kept(_) => read(self.kept(index)?.as_blob().ok_or(KEPT)?),
        })
    }

    /// Reads the id of a fact.
    pub(crate) fn fact_id(&self, index: usize) -> Result<FactId, StoreError> {
        self.with_blob(index, fact_id)?
            .ok_or(corrupt("a row", "the id of a fact"))
    }

    pub(crate) fn optional_text(&self, index: usize) -> Result<Option<String>, StoreError> {
        self.get(index)
    }

    pub(crate) fn real(&self, index: usize) -> Result<f64, StoreError> {
        self.get(index)
    }

    pub(crate) fn blob(&self, index: usize) -> Result<Vec<u8>, StoreError> {
        self.get(index)
    }

    pub(crate) fn optional_blob(&self, index: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(index)
    }
}
