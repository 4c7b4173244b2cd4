//! One call and its messages.

use svc_model::evidence::LeftOut;

use crate::surface::Surface;

impl Surface {
    /// Says what the capture left out of a call, if anything.
    pub fn left_out(self, left_out: LeftOut) -> Option<String> {
        let LeftOut {
            unsupported_content,
            opaque_reasoning,
            missing_id,
            malformed_arguments,
            truncated,
        } = left_out;
        let counts = [
            (
                unsupported_content,
                "of a kind that is not kept (images, files, searches)",
            ),
            (opaque_reasoning, "of reasoning that cannot be read"),
            (missing_id, "tool calls or results without an id"),
            (
                malformed_arguments,
                "arguments of a tool call that are not an object",
            ),
            (truncated, "parts that the client had cut"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{} {what}", self.whole(count)))
            .collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }
}
