//! Exact JSON: captured values are read back unchanged.
//!
//! Agents and gateways send documents that ordinary JSON libraries refuse or quietly change:
//! strings with NUL or half a surrogate pair, integers of forty digits, `1.10`, `NaN`. Evidence
//! must not change on its way through the service. So this module keeps a string as generalised
//! UTF-8 ([`Text`]), a number as its spelling ([`Number`]), and the order of an object's members
//! ([`Object`]).
//!
//! | Direction | Entry points |
//! |---|---|
//! | bytes to value | [`Json::parse`]; [`from_slice`] and [`from_value`] for derived types |
//! | value to bytes | [`Json::write_canonical`], the form to store; [`to_vec`], the form to send |
//!
//! # Two written forms
//!
//! Both are compact ASCII. The *storage form* writes every number as it is spelled, `NaN` included,
//! so that parsing gives the same value back. The *reply form* ([`to_vec`]) is strict JSON: it
//! refuses non-finite numbers and stops at a budget of bytes.
//!
//! # Inside derived types
//!
//! [`Json`], [`Text`], [`Number`] and [`RawJson`] may be fields of any type that derives the serde
//! traits; through [`to_vec`], [`from_slice`] and their siblings they keep every byte. One
//! exception is serde's own: internally tagged and untagged enums and flattened members read their
//! content through a buffer of serde's data model, in which a number is no more than an `i64`,
//! `u64` or `f64`. Types that must be exact are therefore read as plain structs or externally
//! tagged enums. Writing is exact everywhere.
//!
//! # Limits
//!
//! Parsing takes time in proportion to its input, and constant stack: nesting is limited to
//! [`DEPTH_MAX`], and integers to [`INTEGER_DIGITS_MAX`] digits. The caller limits the size of a
//! document. The memory that its values take may be thirty times as much. It is counted while
//! parsing: [`Json::parse_within`] stops when a [`NodeBudget`] runs out.

mod bridge;
mod compact;
mod de;
mod decimal;
mod encoding;
mod error;
mod escape;
#[cfg(test)]
mod laws;
mod memory;
mod number;
mod object;
mod parse;
mod raw;
mod ser;
mod shape;
mod text;
mod value;
mod word;
mod write;

pub use self::de::{from_slice, from_value, from_written, from_written_within};
pub(crate) use self::encoding::in_utf8;
pub use self::error::{ParseError, ParseErrorKind};
pub use self::memory::{NodeBudget, OverBudget};
pub use self::number::{INTEGER_DIGITS_MAX, Number};
pub use self::object::Object;
pub use self::parse::DEPTH_MAX;
pub use self::raw::RawJson;
pub use self::ser::{WriteError, to_value, to_vec};
pub use self::shape::{FromSliceError, PathSegment, ShapeError, ShapeErrorKind};
pub use self::text::Text;
pub use self::value::Json;
