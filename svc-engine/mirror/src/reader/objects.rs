use std::io::{self, Read as _};
use std::ops::ControlFlow;

use super::{CAT_FILE, MirrorReader, ObjectKind, ReadError, read_header, why};
use crate::object_id::ObjectId;

/// What an id refers to.
#[derive(Debug)]
pub(super) enum ObjectLookup<'b> {
    /// Nothing.
    Absent,
    /// An object that git could not read.
    Unread(ReadError),
    /// The beginning of an object that is larger than requested. It is one byte longer than the
    /// limit.
    Start(ObjectKind, &'b [u8]),
    /// An object of this kind with these bytes.
    Object(ObjectKind, &'b [u8]),
}

impl MirrorReader {
    /// Reads many objects, each up to `bytes_max` bytes and one more. Git works on the next objects
    /// while `each` handles one. `each` gets the index of the id.
    ///
    /// # Errors
    ///
    /// Only errors that end all reading: [`ReadError::Passed`] and [`ReadError::Folder`].
    pub(super) fn objects(
        &mut self,
        ids: &[ObjectId],
        bytes_max: u64,
        mut each: impl FnMut(usize, ObjectLookup<'_>),
    ) -> Result<(), ReadError> {
        let question = |id: &ObjectId| format!("contents {id}\0").into_bytes();
        let questions: Vec<Vec<u8>> = ids.iter().map(question).collect();
        let mut buffer = Vec::new();
        let mut next = 0;
        while next < ids.len() {
            let mut conversation = self.objects_conversation()?;
            let mut is_whole = true;
            let answered = conversation.ask_all(&questions[next..], |at, output| {
                let name = questions[next + at].strip_prefix(b"contents ");
                let name = name.and_then(|name| name.strip_suffix(b"\0"));
                let Some(header) = read_header(output, name.unwrap_or_default())? else {
                    each(next + at, ObjectLookup::Absent);
                    return Ok(ControlFlow::Continue(()));
                };
                if header.bytes > bytes_max {
                    is_whole = false;
                    buffer.clear();
                    output.take(bytes_max + 1).read_to_end(&mut buffer)?;
                    each(next + at, ObjectLookup::Start(header.kind, &buffer));
                    // The rest is not read.
                    return Ok(ControlFlow::Break(()));
                }
                buffer.clear();
                output.take(header.bytes + 1).read_to_end(&mut buffer)?;
                // The line break after the object is not part of it.
                if buffer.pop() != Some(b'\n') || buffer.len() as u64 != header.bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                each(next + at, ObjectLookup::Object(header.kind, &buffer));
                Ok(ControlFlow::Continue(()))
            });
            match answered {
                Ok(count) => {
                    next += count;
                    if is_whole {
                        self.objects = Some(conversation);
                    }
                }
                Err((at, cause)) => {
                    let error = why(CAT_FILE, cause).of_one()?;
                    each(next + at, ObjectLookup::Unread(error));
                    next += at + 1;
                }
            }
        }
        Ok(())
    }
}
