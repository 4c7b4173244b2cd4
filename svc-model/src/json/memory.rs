//! Counts the memory that values take, while they are created.
//!
//! Three bytes of a document, `[],`, become a value of 32 bytes, and six bytes, `"a":0,`, become a
//! member of 56. So a reader that wants to limit its memory must limit the values, not the bytes:
//! it gives the parser a [`NodeBudget`], and every allocation is taken from the budget before it is
//! made.

use std::cell::Cell;

use super::compact::INLINE_MAX;
use super::object::{self, Object};
use super::text::Text;
use super::value::Json;

/// The bytes that an allocator adds to an allocation before it rounds up.
const ALLOCATION_OVERHEAD: usize = 8;
const ALLOCATION_STEP: usize = 16;
const ALLOCATION_MIN: usize = 32;

/// The bytes of memory that values may still take, for one or more documents of any format.
///
/// The count is never less than what a usual allocator reserves. Dropping a value gives nothing
/// back; only temporary memory of the parser is returned. Once a budget has refused something, it
/// is exhausted and refuses everything. So a caller that reads many things can check once, at the
/// end, whether all of them were read.
#[derive(Debug)]
pub struct NodeBudget {
    left: Cell<usize>,
    exhausted: Cell<bool>,
}

/// The error for values that would take too much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("values over their budget of memory")]
pub struct OverBudget;

impl NodeBudget {
    /// Returns a budget of this many bytes.
    pub const fn new(bytes: usize) -> Self {
        Self {
            left: Cell::new(bytes),
            exhausted: Cell::new(false),
        }
    }

    /// Returns a budget that never runs out, for the service's own documents.
    pub const fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Returns how many bytes are left.
    pub fn left(&self) -> usize {
        self.left.get()
    }

    /// Returns whether the budget has refused something.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Takes bytes from the budget.
    ///
    /// # Errors
    ///
    /// If fewer bytes are left, or the budget is exhausted. Then none are taken.
    pub fn take(&self, bytes: usize) -> Result<(), OverBudget> {
        match self.left.get().checked_sub(bytes) {
            Some(left) if !self.exhausted.get() => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.exhausted.set(true);
                Err(OverBudget)
            }
        }
    }

    /// Takes the memory of a text of this many bytes, without the value that contains it.
    ///
    /// # Errors
    ///
    /// As [`NodeBudget::take`].
    pub fn text(&self, length: usize) -> Result<(), OverBudget> {
        if length <= INLINE_MAX {
            return Ok(());
        }
        self.take(allocation(length))
    }

    /// Takes the memory of an array of this many values, without the value that contains it.
    ///
    /// # Errors
    ///
    /// As [`NodeBudget::take`].
    pub fn array(&self, length: usize) -> Result<(), OverBudget> {
        self.take(list::<Json>(length))
    }

    /// Takes the memory of an object with this many members, without the value that contains it.
    ///
    /// # Errors
    ///
    /// As [`NodeBudget::take`].
    pub fn object(&self, length: usize) -> Result<(), OverBudget> {
        self.take(list::<(Text, Json)>(length).saturating_add(object::index_bytes(length)))
    }

    /// Returns a budget of what is left of this one, which is to be [settled](Self::settle) at the
    /// end.
    #[must_use]
    pub fn rest(&self) -> Self {
        Self {
            left: self.left.clone(),
            exhausted: self.exhausted.clone(),
        }
    }

    /// Takes what was taken from a budget that [`NodeBudget::rest`] returned.
    ///
    /// # Errors
    ///
    /// If that budget is exhausted. Then this one is exhausted too.
    pub fn settle(&self, rest: &Self) -> Result<(), OverBudget> {
        if rest.is_exhausted() {
            self.exhausted.set(true);
            return Err(OverBudget);
        }
        self.take(self.left.get().saturating_sub(rest.left.get()))
    }

    /// Gives back bytes that were taken for room that is free again.
    pub(super) fn give_back(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_add(bytes));
    }
}

/// Returns the bytes that an allocation of this size takes.
pub(super) const fn allocation(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let rounded = bytes
        .saturating_add(ALLOCATION_OVERHEAD)
        .div_ceil(ALLOCATION_STEP)
        .saturating_mul(ALLOCATION_STEP);
    if rounded < ALLOCATION_MIN {
        ALLOCATION_MIN
    } else {
        rounded
    }
}

/// Returns the bytes that a list with room for exactly this many items takes.
pub(super) const fn list<T>(length: usize) -> usize {
    allocation(length.saturating_mul(size_of::<T>()))
}

impl Json {
    /// Returns the bytes of memory that the value takes beyond its own size, as a [`NodeBudget`]
    /// counts them. Takes time in proportion to the value.
    pub fn memory(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(number) => text(number.as_str().len()),
            Self::String(string) => text(string.len()),
            Self::Array(items) => {
                list::<Self>(items.capacity()) + items.iter().map(Self::memory).sum::<usize>()
            }
            Self::Object(object) => object.memory(),
        }
    }
}

impl Object {
    /// Returns the bytes of memory that the object takes beyond its own size, as [`Json::memory`]
    /// does.
    pub fn memory(&self) -> usize {
        let members = self.iter();
        self.own_memory()
            + members
                .map(|(name, value)| text(name.len()) + value.memory())
                .sum::<usize>()
    }
}

fn text(length: usize) -> usize {
    if length <= INLINE_MAX {
        0
    } else {
        allocation(length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::ParseErrorKind;
    use super::*;

    /// Returns the bytes that are taken once a document has been read.
    fn taken(document: &str) -> usize {
        let budget = NodeBudget::new(usize::MAX);
        let value = Json::parse_within(document.as_bytes(), &budget).unwrap();
        let taken = usize::MAX - budget.left();
        assert!(value.memory() <= taken, "{document}");
        taken
    }

    #[test]
    fn the_estimated_memory_of_a_value_is_what_it_holds() {
        assert_eq!(size_of::<Json>(), 32);
        assert_eq!(size_of::<(Text, Json)>(), 56);
        for (document, expected) in [
            ("null", 0),
            ("\"twenty-two characters!\"", 0),
            ("\"twenty-three characters\"", 32),
            ("[]", 0),
            ("{}", 0),
            ("[0]", 48),
            ("[0,0]", 80),
            ("[[],[]]", 80),
            ("[[0]]", 96),
            (r#"{"a":0}"#, 64),
            (r#"{"a":{"b":0},"c":[0]}"#, 128 + 64 + 48),
        ] {
            assert_eq!(taken(document), expected, "{document}");
        }
    }

    #[test]
    fn reading_charges_the_memory_of_the_value_read() {
        let many = |item: &str, count: usize| vec![item; count].join(",");
        for item in [
            "0",
            "[]",
            "{}",
            "[0]",
            r#"{"":0}"#,
            r#"["a string that is not kept in place"]"#,
        ] {
            for count in [1, 3, 1_000, 100_000] {
                let document = format!("[{}]", many(item, count));
                let value = Json::parse(document.as_bytes()).unwrap();
                assert_eq!(taken(&document), value.memory(), "{item} {count}");
            }
        }
        let members: Vec<String> = (0..10_000)
            .map(|n| format!(r#""member {n}":[{n}]"#))
            .collect();
        let document = format!("{{{}}}", members.join(","));
        let value = Json::parse(document.as_bytes()).unwrap();
        assert_eq!(taken(&document), value.memory());
    }

    #[test]
    fn a_memory_budget_is_exact_to_the_byte() {
        for document in [
            r#"[[1,2],{"a":["a string that is not kept in place"]}]"#,
            r#"{"a":1,"a":2,"b":{"c":[[],{}]}}"#,
            "[1234567890123456789012345678901234567890]",
            r#"["an \u0065scaped string that is not kept in place"]"#,
        ] {
            let enough = (0..4_096)
                .find(|bytes| {
                    let budget = NodeBudget::new(*bytes);
                    Json::parse_within(document.as_bytes(), &budget).is_ok()
                })
                .unwrap();
            assert!(enough > 0);
            for bytes in 0..enough {
                let budget = NodeBudget::new(bytes);
                let error = Json::parse_within(document.as_bytes(), &budget).unwrap_err();
                assert_eq!(error.kind, ParseErrorKind::OverBudget, "{document} {bytes}");
                assert_eq!(budget.left(), bytes, "a refused document takes nothing");
            }
        }
    }

    #[test]
    fn several_documents_share_a_budget() {
        let budget = NodeBudget::new(300);
        assert!(Json::parse_within(b"[0]", &budget).is_ok());
        assert_eq!(budget.left(), 252);
        assert!(Json::parse_within(b"[0]", &budget).is_ok());
        assert!(Json::parse_within(b"[0]", &budget).is_ok());
        assert!(!budget.is_exhausted());
        let third = Json::parse_within(b"[0]", &budget).unwrap_err();
        assert_eq!(third.kind, ParseErrorKind::OverBudget);
        assert!(budget.is_exhausted() && budget.left() > 0);
        assert_eq!(budget.take(1), Err(OverBudget), "it gives nothing more");
    }

    #[test]
    fn memory_taken_from_the_rest_is_settled_later() {
        let budget = NodeBudget::new(100);
        let rest = budget.rest();
        assert_eq!((rest.take(60), budget.left()), (Ok(()), 100));
        assert_eq!((budget.settle(&rest), budget.left()), (Ok(()), 40));
        let rest = budget.rest();
        assert_eq!(rest.take(41), Err(OverBudget));
        assert_eq!(budget.settle(&rest), Err(OverBudget));
        assert!(budget.is_exhausted());
    }

    #[test]
    fn costs_beyond_all_memory_do_not_overflow() {
        let budget = NodeBudget::new(usize::MAX - 1);
        for refused in [
            budget.array(usize::MAX),
            budget.object(usize::MAX),
            budget.text(usize::MAX),
        ] {
            assert_eq!(refused, Err(OverBudget));
        }
    }
}
