//! Reads transcripts as their agents write them. `files` has some of each agent, made up for these
//! tests; a file stays as it is for ever, because people keep old transcripts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../svc-model/fuzz/fuzz_targets/any_transcript.rs"]
mod any_transcript;
mod claude_code;
mod codex;
mod copilot_cli;
mod gemini;
mod opencode;
mod pi;
mod properties;
mod support;
