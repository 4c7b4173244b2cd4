//! Places inside a JSON value, and replacing the value at one of them.

use harness::pattern::shown;
use svc_model::json::Json;

/// One step from a value to one inside it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Member(String),
    Item(usize),
}

/// Returns the places of all values inside a value.
pub(super) fn places(value: &Json) -> Vec<Vec<Step>> {
    let inside: Vec<(Step, &Json)> = match value {
        Json::Object(object) => object
            .iter()
            .map(|(name, value)| (Step::Member(name.to_string_lossy().into_owned()), value))
            .collect(),
        Json::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (Step::Item(index), item))
            .collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    };
    let mut all = Vec::new();
    for (step, value) in inside {
        all.push(vec![step.clone()]);
        for mut rest in places(value) {
            rest.insert(0, step.clone());
            all.push(rest);
        }
    }
    all
}

/// Returns the value with another one at a place, or with the place removed if none is given.
pub(super) fn with(value: &Json, place: &[Step], other: Option<&Json>) -> Json {
    let mut changed = value.clone();
    let (step, rest) = place.split_first().expect("a place inside");
    match (&mut changed, step) {
        (Json::Object(object), Step::Member(name)) => match (rest.is_empty(), other) {
            (true, None) => drop(object.remove(name)),
            (true, Some(other)) => drop(object.insert(name.as_str(), other.clone())),
            (false, _) => {
                let inner = with(object.get(name).expect("a member"), rest, other);
                object.insert(name.as_str(), inner);
            }
        },
        (Json::Array(items), Step::Item(index)) => match (rest.is_empty(), other) {
            (true, None) => drop(items.remove(*index)),
            (true, Some(other)) => items[*index] = other.clone(),
            (false, _) => items[*index] = with(&items[*index], rest, other),
        },
        _ => panic!("{place:?} is not in {}", shown(value)),
    }
    changed
}
