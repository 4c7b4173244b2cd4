//! The outline of a long reply: its numbers first, then the beginning of its lists.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use svc_model::json::{Json, Object};

use super::WHOLE_CHARACTERS_MAX;
use super::member::{counted, is_word, json, plain, quote};

/// The maximum number of characters of a value that is written in full.
const VALUE_CHARACTERS_MAX: usize = 1_000;
/// The maximum number of entries of a list that are written.
const ENTRIES_MAX: usize = 10;
/// The members by whose values the entries of a list are counted.
const COUNTED: [&str; 5] = ["event_type", "accepted", "explicit", "result", "model"];
/// The maximum number of values with a count of their own.
const VALUES_MAX: usize = 8;
/// The maximum number of characters of a name in a place.
const NAME_CHARACTERS_MAX: usize = 64;

/// Writes the members of a reply, top level first, so that the entries of a list never displace
/// what describes the whole.
pub(super) fn outline(body: &Object) -> String {
    let mut text = format!(
        "This is too long to show whole: here are its numbers, and at most {ENTRIES_MAX} entries of \
         each list. The structured content has all of it."
    );
    let mut left = WHOLE_CHARACTERS_MAX;
    let mut queue: VecDeque<(String, &Json)> = members("", body).collect();
    while let Some((place, value)) = queue.pop_front() {
        let whole = json(value);
        let line = match value {
            _ if whole.chars().count() <= VALUE_CHARACTERS_MAX => format!("\n- {place}: {whole}"),
            Json::Object(object) => {
                queue.extend(members(&format!("{place}."), object));
                continue;
            }
            Json::Array(entries) => {
                let first = entries.iter().enumerate().take(ENTRIES_MAX);
                queue.extend(first.map(|(index, entry)| (format!("{place}[{index}]"), entry)));
                format!("\n- {place}: {}", list(entries))
            }
            Json::String(text) => format!("\n- {place}: {}", quote(text)),
            // No number or word is that long.
            Json::Null | Json::Bool(_) | Json::Number(_) => continue,
        };
        let characters = line.chars().count();
        if characters > left {
            text.push_str("\n- and more, which only the structured content has");
            break;
        }
        left -= characters;
        text.push_str(&line);
    }
    text
}

fn members<'a>(before: &str, object: &'a Object) -> impl Iterator<Item = (String, &'a Json)> {
    object.iter().map(move |(name, value)| {
        let plain = name
            .as_str()
            .filter(|name| name.len() <= NAME_CHARACTERS_MAX && is_word(name));
        let name = plain.map_or_else(|| quote(name), str::to_owned);
        (format!("{before}{name}"), value)
    })
}

/// Writes how many entries a list has, and how many have each value of the counted members.
fn list(entries: &[Json]) -> String {
    let mut text = counted(entries.len() as u64, "entry", "entries");
    for member in COUNTED {
        let mut values: BTreeMap<String, u64> = BTreeMap::new();
        for entry in entries.iter().filter_map(Json::as_object) {
            if entry.contains_key(member) {
                *values.entry(plain(entry, member)).or_default() += 1;
            }
        }
        if values.is_empty() {
            continue;
        }
        let first = values.iter().take(VALUES_MAX);
        let mut counts: Vec<String> = first
            .map(|(value, count)| format!("{count} {value}"))
            .collect();
        if values.len() > VALUES_MAX {
            counts.push(format!("{} other values", values.len() - VALUES_MAX));
        }
        let _ = write!(text, "; by {member}: {}", counts.join(", "));
    }
    text
}
