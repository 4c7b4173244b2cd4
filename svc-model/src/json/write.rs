//! Writes values as canonical bytes: compact ASCII.

use super::escape;
use super::object::Object;
use super::text::Text;
use super::value::Json;

impl Object {
    /// Appends the canonical form, as [`Json::write_canonical`] does.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        members(self.iter(), Order::Kept, out);
    }
}

impl Json {
    /// Appends the canonical form: compact ASCII, members in order, numbers as they are spelled. It
    /// reads back as the same value. Non-finite numbers are written as their tokens, so this is a
    /// form to store, not to send.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        value(self, Order::Kept, out);
    }

    /// Returns the canonical form.
    pub fn to_canonical(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_canonical(&mut out);
        out
    }

    /// Appends the canonical form with the members of each object sorted by name, in the order of
    /// code points. Objects that differ only in the order of their members have the same form.
    pub fn write_sorted(&self, out: &mut Vec<u8>) {
        value(self, Order::Sorted, out);
    }

    /// Returns the length of the canonical form in bytes.
    pub fn canonical_len(&self) -> usize {
        match self {
            Self::Null | Self::Bool(true) => 4,
            Self::Bool(false) => 5,
            Self::Number(number) => number.as_str().len(),
            Self::String(text) => escape::string_len(text.as_bytes()),
            Self::Array(items) => {
                brackets_and_commas(items.len())
                    + items.iter().map(Self::canonical_len).sum::<usize>()
            }
            Self::Object(object) => {
                let member = |(name, value): (&Text, &Self)| {
                    escape::string_len(name.as_bytes()) + 1 + value.canonical_len()
                };
                brackets_and_commas(object.len()) + object.iter().map(member).sum::<usize>()
            }
        }
    }
}

impl Json {
    /// Returns whether the canonical form has at most this many bytes. It stops as soon as the
    /// answer is certain.
    pub fn fits(&self, bytes_max: usize) -> bool {
        without(self, bytes_max).is_some()
    }
}

/// Returns how many of `left` bytes are left after the canonical form of a value; `None` if it is
/// longer.
fn without(json: &Json, left: usize) -> Option<usize> {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            left.checked_sub(json.canonical_len())
        }
        Json::Array(items) => {
            let left = left.checked_sub(brackets_and_commas(items.len()))?;
            items
                .iter()
                .try_fold(left, |left, item| without(item, left))
        }
        Json::Object(object) => {
            let left = left.checked_sub(brackets_and_commas(object.len()))?;
            object.iter().try_fold(left, |left, (name, value)| {
                let left = left.checked_sub(escape::string_len(name.as_bytes()) + 1)?;
                without(value, left)
            })
        }
    }
}

#[derive(Clone, Copy)]
enum Order {
    Kept,
    Sorted,
}

fn value(json: &Json, order: Order, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => out.extend_from_slice(number.as_str().as_bytes()),
        Json::String(text) => text.write_escaped(out),
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                value(item, order, out);
            }
            out.push(b']');
        }
        Json::Object(object) => match order {
            Order::Kept => members(object.iter(), order, out),
            Order::Sorted => {
                let mut sorted: Vec<_> = object.iter().collect();
                sorted.sort_unstable_by_key(|&(name, _)| name);
                members(sorted.into_iter(), order, out);
            }
        },
    }
}

fn members<'a>(
    members: impl Iterator<Item = (&'a Text, &'a Json)>,
    order: Order,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (index, (name, member)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        name.write_escaped(out);
        out.push(b':');
        value(member, order, out);
    }
    out.push(b'}');
}

fn brackets_and_commas(count: usize) -> usize {
    2 + count.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_is_by_code_point_at_every_level() {
        let value = Json::parse(
            r#"{"b":1,"\ue000":[{"z":1,"a":NaN}],"🙂":2,"":0,"a\u0000":3,"a":4}"#.as_bytes(),
        )
        .unwrap();
        let mut out = b"> ".to_vec();
        value.write_sorted(&mut out);
        let expected =
            r#"> {"":0,"a":4,"a\u0000":3,"b":1,"\ue000":[{"a":NaN,"z":1}],"\ud83d\ude42":2}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_length_is_known_before_writing() {
        for document in [
            "null",
            "true",
            "false",
            "[]",
            "{}",
            "[1,2.50]",
            r#"{"a":[],"é\n":"🙂"}"#,
        ] {
            let value = Json::parse(document.as_bytes()).unwrap();
            let length = value.to_canonical().len();
            assert_eq!(length, value.canonical_len(), "{document}");
            assert!(value.fits(length) && !value.fits(length - 1), "{document}");
        }
    }
}
