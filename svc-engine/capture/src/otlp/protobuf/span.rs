//! The fields of a span.

use svc_model::json::Json;

use super::wire::fields;
use super::{Decoder, LogsResult, Single, nanoseconds, number};

impl Decoder<'_> {
    pub(super) fn span(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let (mut start, mut end, mut kind) = (0, 0, 0);
        let (mut trace_id, mut span_id): (&[u8], &[u8]) = (b"", b"");
        let (mut parent_id, mut name): (&[u8], &[u8]) = (b"", b"");
        let mut status = Single::default();
        for field in fields(message) {
            let field = field?;
            match field.number {
                1 => trace_id = field.bytes()?,
                2 => span_id = field.bytes()?,
                4 => parent_id = field.bytes()?,
                5 => name = field.bytes()?,
                6 => kind = field.int_32()?,
                7 => start = field.fixed_64()?,
                8 => end = field.fixed_64()?,
                15 => status.add(field.bytes()?, self.memory)?,
                _ => {}
            }
        }
        let members = [
            ("traceId", self.hexadecimal(trace_id)?),
            ("spanId", self.hexadecimal(span_id)?),
            ("parentSpanId", self.hexadecimal(parent_id)?),
            ("name", self.some_text(name)?),
            ("kind", number(kind.into())),
            ("startTimeUnixNano", nanoseconds(start)),
            ("endTimeUnixNano", nanoseconds(end)),
            ("attributes", self.list(message, 9, depth, Self::key_value)?),
            ("events", self.list(message, 11, depth, Self::span_event)?),
            ("status", self.one(status, depth, Self::status)?),
        ];
        Ok(Json::Object(self.object(members)?))
    }

    fn span_event(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let mut time = 0;
        let mut name: &[u8] = b"";
        for field in fields(message) {
            let field = field?;
            match field.number {
                1 => time = field.fixed_64()?,
                2 => name = field.bytes()?,
                _ => {}
            }
        }
        let members = [
            ("timeUnixNano", nanoseconds(time)),
            ("name", self.some_text(name)?),
            ("attributes", self.list(message, 3, depth, Self::key_value)?),
        ];
        Ok(Json::Object(self.object(members)?))
    }

    fn status(&mut self, message: &[u8], _: usize) -> LogsResult<Json> {
        let mut text: &[u8] = b"";
        let mut code = 0;
        for field in fields(message) {
            let field = field?;
            match field.number {
                2 => text = field.bytes()?,
                3 => code = field.int_32()?,
                _ => {}
            }
        }
        let members = [
            ("message", self.some_text(text)?),
            ("code", number(code.into())),
        ];
        Ok(Json::Object(self.object(members)?))
    }
}
