//! The parts to read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;
use svc_model::evidence::{Reference, Side};
use svc_model::id::InferenceCallId;
use svc_model::json;
use svc_model::limit::EVIDENCE_READ_BODY_BYTES_MAX;
use svc_model::open::Open;
use svc_model::version::Version1;

use crate::error::CommandError;
use crate::output::escape;

/// A file of references.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferencesFile {
    #[expect(dead_code, reason = "reading it is what checks it")]
    schema_version: Version1,
    references: Vec<Reference>,
}

/// Parses `CALL:SIDE:MESSAGE:PART`. The call may contain colons.
pub(super) fn parse_reference(text: &str) -> Option<Reference> {
    let mut fields = text.rsplitn(4, ':');
    let part_index = fields.next()?.parse().ok()?;
    let message_index = fields.next()?.parse().ok()?;
    let side = Side::from_wire(fields.next()?)?;
    let inference_call_id = InferenceCallId::new(fields.next()?).ok()?;
    Some(Reference {
        inference_call_id,
        side: Open::Known(side),
        message_index,
        part_index,
    })
}

pub(super) fn selection(file: &Path) -> Result<Vec<Reference>, CommandError> {
    let unreadable = |what: String| CommandError::refused("references", what);
    let name = escape(&file.display().to_string());
    // One byte over the limit shows that the file is too large.
    let bytes_max = EVIDENCE_READ_BODY_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(bytes_max).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes))
    };
    read.map_err(|error| unreadable(format!("{name} cannot be read: {error}")))?;
    if bytes.len() > EVIDENCE_READ_BODY_BYTES_MAX {
        return Err(unreadable(format!(
            "{name} is over {EVIDENCE_READ_BODY_BYTES_MAX} bytes"
        )));
    }
    let selection: ReferencesFile = json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("{name} holds no references: {error}")))?;
    Ok(selection.references)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::output::reference;

    use super::*;

    #[test]
    fn a_reference_is_parsed_from_its_end() {
        let parsed = parse_reference("a:b:output:10:2").unwrap();
        assert_eq!(parsed.inference_call_id.as_str(), "a:b");
        assert_eq!(
            (parsed.side.clone(), parsed.message_index, parsed.part_index),
            (Open::Known(Side::Output), 10, 2)
        );
        assert_eq!(reference(&parsed), "a:b:output:10:2");
        for wrong in [
            "",
            "a",
            "a:output:1",
            ":output:1:2",
            "a:both:1:2",
            "a:input:-1:2",
            "a:input:1:x",
        ] {
            assert_eq!(parse_reference(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn references_are_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("selection.json");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            selection(&file)
        };
        let one = r#"{"schema_version":1,"references":[{"inference_call_id":"c","side":"input","message_index":0,"part_index":1}]}"#;
        assert_eq!(
            read(one).unwrap(),
            [parse_reference("c:input:0:1").unwrap()]
        );
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"schema_version":2,"references":[]}"#,
            r#"{"schema_version":1,"references":[],"x":1}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&" ".repeat(EVIDENCE_READ_BODY_BYTES_MAX + 1)).is_err());
        assert!(selection(&folder.path().join("absent")).is_err());
    }
}
