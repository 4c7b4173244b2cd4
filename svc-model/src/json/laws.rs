//! Laws that the whole module must keep, for values and bytes of every kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Json, Number, RawJson, Text, WriteError, from_slice, from_value, to_value, to_vec};

#[path = "../../fuzz/fuzz_targets/round_trip.rs"]
mod round_trip;

/// Returns texts of any UTF-16 units, with the interesting ones often.
fn text() -> impl Strategy<Value = Text> {
    let unit = prop_oneof![
        4 => 0x20_u16..0x7f,
        1 => 0_u16..0x20,
        1 => 0xd800_u16..0xe000,
        1 => select(vec![0x22, 0x5c, 0x7f, 0xe9, 0xd83d, 0xde42, 0xfeff]),
        1 => any::<u16>(),
    ];
    vec(unit, 0..12).prop_map(|units| {
        let escapes: Vec<_> = units.iter().map(|unit| format!("\\u{unit:04X}")).collect();
        let parsed = Json::parse(format!("\"{}\"", escapes.concat()).as_bytes());
        parsed
            .ok()
            .and_then(Json::into_text)
            .expect("escapes make a string")
    })
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<f64>().prop_map(Number::from_f64),
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?"
            .prop_filter_map("a number", |spelling| Number::parse(&spelling)),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        number().prop_map(Json::from),
        text().prop_map(Json::from),
    ];
    scalar.prop_recursive(4, 24, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Json::from),
            vec((text(), inner), 0..20)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns values that other libraries can represent as well.
fn common() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            vec((any::<String>(), inner), 0..8).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Returns bytes that are often nearly a document.
fn document() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        select(vec![
            &b"{"[..],
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\"",
            b"\\",
            b"\\u",
            b"d83d",
            b"\\ud800",
            b"\\ude42",
            b"null",
            b"true",
            b"NaN",
            b"-Infinity",
            b"-",
            b"0",
            b"12",
            b".5",
            b"e+9",
            b" ",
            b"\n",
            b"\0",
            b"\xff",
            b"\xed\xa0\x80",
            b"\xed\xb0\x80",
            b"\xc3\xa9",
            b"\xef\xbb\xbf",
            b"\"a\":",
            b"\"a\"",
            b"[1,2]",
            b"{\"a\":1,\"a\":2}",
        ])
        .prop_map(<[u8]>::to_vec),
        vec(any::<u8>(), 0..4),
    ];
    vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
#[serde(deny_unknown_fields)]
struct Record {
    exact: Json,
    text: Text,
    number: Option<Number>,
    string: String,
    count: u64,
    delta: i128,
    ratio: f64,
    kind: Kind,
    raw: RawJson,
    members: BTreeMap<Text, Json>,
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    Wrapped(Text),
    Pair(Json, bool),
    Named { inner: Option<Box<Self>> },
}

fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Plain),
        text().prop_map(Kind::Wrapped),
        (json(), any::<bool>()).prop_map(|(value, flag)| Kind::Pair(value, flag)),
    ];
    leaf.prop_recursive(3, 4, 1, |inner| {
        proptest::option::of(inner).prop_map(|inner| Kind::Named {
            inner: inner.map(Box::new),
        })
    })
}

fn record() -> impl Strategy<Value = Record> {
    let plain = (
        any::<String>(),
        any::<u64>(),
        any::<i128>(),
        proptest::num::f64::NORMAL,
    );
    let members = proptest::collection::btree_map(text(), json(), 0..4);
    let exact = (
        json(),
        text(),
        proptest::option::of(number()),
        kind(),
        json(),
        members,
    );
    (plain, exact).prop_map(
        |((string, count, delta, ratio), (exact, text, number, kind, raw, members))| Record {
            exact,
            text,
            number,
            string,
            count,
            delta,
            ratio,
            kind,
            raw: RawJson::from(&raw),
            members,
        },
    )
}

proptest! {
    #[test]
    fn written_values_are_read_back(value in json()) {
        let canonical = value.to_canonical();
        prop_assert!(canonical.is_ascii());
        prop_assert_eq!(Json::parse(&canonical), Ok(value.clone()));
        prop_assert_eq!(canonical.len(), value.canonical_len());
        prop_assert_eq!(to_value(&value), Ok(value));
    }

    #[test]
    fn sorting_changes_only_the_order(value in json()) {
        let mut sorted = Vec::new();
        value.write_sorted(&mut sorted);
        prop_assert_eq!(sorted.len(), value.canonical_len());
        let reread = Json::parse(&sorted).expect("sorted text is JSON");
        prop_assert_eq!(reread.to_canonical(), sorted.clone());
        let mut again = Vec::new();
        reread.write_sorted(&mut again);
        prop_assert_eq!(again, sorted);
    }

    #[test]
    fn strict_is_canonical_or_refused(value in json()) {
        let strict = to_vec(&value, usize::MAX);
        if value.is_finite() {
            prop_assert_eq!(strict, Ok(value.to_canonical()));
        } else {
            prop_assert_eq!(strict, Err(WriteError::NonFinite));
        }
    }

    #[test]
    fn the_budget_of_a_writer_is_exact_to_the_byte(value in common(), budget in any::<Index>()) {
        let whole = to_vec(&value, usize::MAX).expect("there is no non-finite number");
        let budget = budget.index(whole.len() + 4);
        match to_vec(&value, budget) {
            Ok(written) => prop_assert!(written == whole && written.len() <= budget),
            Err(error) => prop_assert!(error == WriteError::Budget && whole.len() > budget),
        }
    }

    #[test]
    fn documents_mean_the_same_to_serde_json(value in common()) {
        let theirs = value.to_string();
        let ours = Json::parse(theirs.as_bytes()).expect("what is JSON to others is to us");
        prop_assert_eq!(serde_json::to_value(&ours).unwrap(), value.clone());
        prop_assert_eq!(from_value::<Value>(ours.clone()), Ok(value.clone()));
        prop_assert_eq!(from_slice::<Json>(theirs.as_bytes()), Ok(ours.clone()));
        prop_assert_eq!(from_slice::<Value>(&to_vec(&value, usize::MAX).unwrap()), Ok(value));
        // Compared as the other library reads it, because it may miss a double by the last bit.
        let canonical = ours.to_canonical();
        let read = serde_json::from_slice::<Value>(&canonical).unwrap();
        prop_assert_eq!(read, serde_json::from_str::<Value>(&theirs).unwrap());
    }

    #[test]
    fn documents_without_extensions_are_refused_as_by_serde_json(bytes in document()) {
        // If the text uses none of our extensions, the two agree on what a document is.
        let ours = Json::parse(&bytes);
        let theirs = serde_json::from_slice::<Value>(&bytes);
        let extended = ours.as_ref().is_ok_and(|value| !value.is_finite())
            || bytes.contains(&0)
            || bytes.starts_with(b"\xef\xbb\xbf")
            || [b"\\u", b"\xed\xa0", b"\xed\xb0"].iter().any(|extension| {
                bytes.windows(2).any(|pair| pair == *extension)
            });
        if !extended {
            prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        }
    }

    #[test]
    fn derived_types_are_read_back_unchanged(record in record()) {
        let value = to_value(&record).expect("non-finite numbers are kept");
        prop_assert_eq!(from_value::<Record>(value.clone()), Ok(record.clone()));
        match to_vec(&record, usize::MAX) {
            Ok(written) => {
                prop_assert_eq!(written.clone(), value.to_canonical());
                prop_assert_eq!(from_slice::<Record>(&written), Ok(record));
            }
            Err(error) => prop_assert!(error == WriteError::NonFinite && !value.is_finite()),
        }
    }

    #[test]
    fn no_bytes_break_the_parser(bytes in document()) {
        round_trip::check(&bytes);
    }
}

#[test]
fn the_fuzzing_corpus_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/json_roundtrip");
    let mut files = 0;
    for entry in fs::read_dir(corpus).expect("the corpus is checked in") {
        round_trip::check(&fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0);
}
