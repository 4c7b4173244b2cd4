//! The published schema of a commit note. The shell writes notes, and the service reads them from
//! mirrors. They are in no request and no reply.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// One object of a note in `refs/notes/svc`.
#[derive(Clone, Copy, Debug)]
pub enum CommitNote {}

impl JsonSchema for CommitNote {
    fn schema_name() -> Cow<'static, str> {
        "CommitNote".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "One object of a note on a commit in `refs/notes/svc`. A note is one or \
                            more such objects, one after another, of at most 65,536 bytes; a note \
                            with any other content is ignored.",
            "required": ["v", "sessions"],
            "additionalProperties": false,
            "properties": {
                "v": { "type": "integer", "const": 1, "description": "Always 1." },
                "sessions": {
                    "type": "array",
                    "description": "The Sessions that worked on the commit.",
                    "items": {
                        "type": "object",
                        "required": ["tool", "session_id", "stamped_at"],
                        "additionalProperties": false,
                        "properties": {
                            "tool": { "type": "string", "description": "The agent." },
                            "session_id": { "type": "string", "description": "The Session." },
                            "stamped_at": { "type": "string", "description": "When it was stamped, in RFC 3339." },
                        },
                    },
                },
            },
            "examples": [{
                "v": 1,
                "sessions": [{
                    "tool": "claude-code",
                    "session_id": "fix-the-pager",
                    "stamped_at": "2026-11-20T12:00:00Z",
                }],
            }],
        })
    }
}
