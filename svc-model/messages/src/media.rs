//! Images, audio and files in the results of tools. They are left out, as they are in messages.

use svc_model::json::{Json, Object};

/// Returns a copy in which a marker stands for each image and file, with their number; `None` if
/// there are none.
pub(crate) fn without(value: &Json) -> Option<(Json, u64)> {
    let mut left_out = 0;
    let copy = copied(value, &mut left_out)?;
    Some((copy, left_out))
}

/// Returns a copy without media; `None` if the value has none.
fn copied(value: &Json, left_out: &mut u64) -> Option<Json> {
    match value {
        Json::String(text) => {
            let (media_type, data) = data_url(text.as_str()?)?;
            *left_out += 1;
            Some(marker(None, Some(media_type), Some(data)))
        }
        Json::Array(items) => {
            let items = items.iter();
            let copies: Vec<_> = items.map(|item| (item, copied(item, left_out))).collect();
            copies.iter().any(|(_, copy)| copy.is_some()).then(|| {
                let copies = copies.into_iter();
                Json::Array(
                    copies
                        .map(|(item, copy)| copy.unwrap_or_else(|| item.clone()))
                        .collect(),
                )
            })
        }
        Json::Object(object) => {
            if let Some(marker) = of_object(object) {
                *left_out += 1;
                return Some(marker);
            }
            let members = object.iter();
            let copies: Vec<_> = members
                .map(|(name, value)| (name, value, copied(value, left_out)))
                .collect();
            copies.iter().any(|(_, _, copy)| copy.is_some()).then(|| {
                let copies = copies.into_iter().map(|(name, value, copy)| {
                    (name.clone(), copy.unwrap_or_else(|| value.clone()))
                });
                copies.collect::<Object>().into()
            })
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
    }
}

/// Returns the marker for a block that is an image or a file, in the form of any interface. Other
/// objects may have the same `type`, so the member with the content decides.
fn of_object(block: &Object) -> Option<Json> {
    let text = |holder: &Object, names: &[&str]| {
        let found = names.iter().find_map(|name| holder.get(name)?.as_str());
        found.map(str::to_owned)
    };
    let kind = block.get("type").and_then(Json::as_str)?;
    let names: &[&str] = match kind {
        "image" => &["source", "data", "image_url", "file_id", "image"],
        "image_url" | "input_image" => &["image_url", "file_id"],
        "audio" | "input_audio" => &["input_audio", "audio", "data"],
        "video" | "video_url" => &["video_url", "source", "data"],
        "file" | "input_file" => &["file_data", "file_id", "file_url", "file"],
        "document" => &["source"],
        "resource" => &["resource"],
        _ => return None,
    };
    let content = names.iter().find_map(|name| block.get(name))?;
    let (holder, content) = match content {
        Json::Object(holder) => {
            let inner = ["data", "blob", "url", "file_data", "file_id", "file_url"];
            (holder, inner.iter().find_map(|name| holder.get(name))?)
        }
        content => (block, content),
    };
    let is_text = |name: &str, word: &str| {
        holder
            .get(name)
            .is_some_and(|value| value.as_str() == Some(word))
    };
    // The text of a document or of a resource stays.
    if kind == "document" && (is_text("type", "text") || is_text("type", "content")) {
        return None;
    }
    let content = content.as_str()?;
    let media_type = text(holder, &["media_type", "mimeType", "mime_type", "format"])
        .or_else(|| text(block, &["media_type", "mimeType", "mime_type"]));
    if let Some((media_type, data)) = data_url(content) {
        return Some(marker(Some(kind), Some(media_type), Some(data)));
    }
    let is_reference = content.contains("://") || holder.get("file_id").is_some();
    let data = (!is_reference).then_some(content);
    Some(marker(Some(kind), media_type.as_deref(), data))
}

/// Splits the URL of an image, audio or file that it contains into its type and its data.
fn data_url(text: &str) -> Option<(&str, &str)> {
    let (media_type, data) = text.strip_prefix("data:")?.split_once(";base64,")?;
    let is_media = ["image/", "audio/", "video/", "application/"]
        .iter()
        .any(|family| media_type.starts_with(family));
    is_media.then_some((media_type, data))
}

/// Returns what stands for what is left out.
fn marker(kind: Option<&str>, media_type: Option<&str>, base64: Option<&str>) -> Json {
    let bytes = base64.map(|data| {
        let length = data.trim_end_matches('=').len() as u64;
        Json::from(length / 4 * 3 + length % 4 * 3 / 4)
    });
    let members = [
        ("type", kind.map(Json::from)),
        ("media_type", media_type.map(Json::from)),
        ("bytes", bytes),
        ("left_out", Some(true.into())),
    ];
    let members = members.into_iter();
    members
        .filter_map(|(name, value)| Some((name, value?)))
        .collect::<Object>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::json;

    #[test]
    fn a_marker_stands_for_each_image_and_file_and_their_text_stays() {
        for (result, expected, count) in [
            (
                r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},{"type":"text","text":"shot"}]"#,
                r#"[{"type":"image","media_type":"image/png","bytes":5,"left_out":true},{"type":"text","text":"shot"}]"#,
                1,
            ),
            (
                r#"{"content":[{"type":"image","data":"aGVs","mimeType":"image/png"},{"type":"audio","data":"aGVs","mimeType":"audio/wav"}],"isError":false}"#,
                r#"{"content":[{"type":"image","media_type":"image/png","bytes":3,"left_out":true},{"type":"audio","media_type":"audio/wav","bytes":3,"left_out":true}],"isError":false}"#,
                2,
            ),
            (
                r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVs"}},{"type":"input_image","image_url":"https://x/y.png"}]"#,
                r#"[{"type":"image_url","media_type":"image/png","bytes":3,"left_out":true},{"type":"input_image","left_out":true}]"#,
                2,
            ),
            (
                r#"{"screenshot":"data:image/png;base64,aGVs","url":"x"}"#,
                r#"{"screenshot":{"media_type":"image/png","bytes":3,"left_out":true},"url":"x"}"#,
                1,
            ),
            (
                r#"[{"type":"resource","resource":{"uri":"f","mimeType":"application/pdf","blob":"aGVs"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGVs"}}]"#,
                r#"[{"type":"resource","media_type":"application/pdf","bytes":3,"left_out":true},{"type":"document","media_type":"application/pdf","bytes":3,"left_out":true}]"#,
                2,
            ),
        ] {
            assert_eq!(
                without(&json(result)),
                Some((json(expected), count)),
                "{result}"
            );
        }
    }

    #[test]
    fn what_only_looks_like_a_file_stays() {
        for result in [
            r#"[{"type":"file","path":"src/a.rs","content":"fn main() {}"}]"#,
            r#"{"type":"image","name":"nginx:latest"}"#,
            r#"[{"type":"resource","resource":{"uri":"f","text":"words"}}]"#,
            r#"[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}]"#,
            r#"{"type":"file","file":{"name":"a.rs"}}"#,
            r#"{"text":"data:image/png is a prefix"}"#,
            r#""data:text/plain;base64,aGVs""#,
        ] {
            assert_eq!(without(&json(result)), None, "{result}");
        }
    }
}
