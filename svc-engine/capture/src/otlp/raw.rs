//! The record or span that is kept with a call.

use svc_engine_fact::{RawPayload, Repeats, Segment};
use svc_model::json::{Json, Object};

/// From this many canonical bytes on, an attribute is assumed to repeat within the Session.
const LARGE: usize = 1_024;

/// Returns a payload with the segments that repeat from call to call: large attributes, and the
/// items of those that are lists.
pub(super) fn payload(payload: Json) -> RawPayload {
    let segments = payload.as_object().map_or_else(Vec::new, segments);
    RawPayload { payload, segments }
}

fn segments(record: &Object) -> Vec<Segment> {
    let Some((list, attributes)) = member(record, "attributes") else {
        return Vec::new();
    };
    let mut segments = Vec::new();
    for (place, attribute) in attributes.as_array().unwrap_or_default().iter().enumerate() {
        if attribute.canonical_len() < LARGE {
            continue;
        }
        let at = vec![list, place];
        match items(attribute) {
            Some((inside, count)) => segments.extend((0..count).map(|item| {
                let place = at.iter().chain(&inside).chain([&item]);
                segment(place.copied().collect())
            })),
            None => segments.push(segment(at)),
        }
    }
    segments
}

/// Returns the place of the items of an attribute that is a list, and their number.
fn items(attribute: &Json) -> Option<([usize; 3], usize)> {
    let (value, wrapper) = member(attribute.as_object()?, "value")?;
    let (array, list) = member(wrapper.as_object()?, "arrayValue")?;
    let (values, items) = member(list.as_object()?, "values")?;
    Some(([value, array, values], items.as_array()?.len()))
}

fn member<'j>(object: &'j Object, name: &str) -> Option<(usize, &'j Json)> {
    let mut members = object.iter().enumerate();
    members.find_map(|(place, (own, value))| (*own == *name).then_some((place, value)))
}

const fn segment(place: Vec<usize>) -> Segment {
    Segment {
        place,
        repeats: Repeats::InSession,
        message: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::json;
    use super::*;

    #[test]
    fn large_attributes_and_the_items_of_large_lists_are_segments() {
        let large = "x".repeat(LARGE);
        let record = format!(
            r#"{{"name":"chat","attributes":[{{"key":"small","value":{{"stringValue":"x"}}}},
                {{"key":"text","value":{{"stringValue":"{large}"}}}},
                {{"key":"list","value":{{"arrayValue":{{"values":[{{"stringValue":"{large}"}},{{}}]}}}}}}]}}"#
        );
        let places = payload(json(&record)).segments.into_iter();
        let places: Vec<Vec<usize>> = places.map(|segment| segment.place).collect();
        let expected = [vec![1, 1], vec![1, 2, 1, 0, 0, 0], vec![1, 2, 1, 0, 0, 1]];
        assert_eq!(places, expected);
        assert_eq!(payload(Json::Null).segments, []);
    }
}
