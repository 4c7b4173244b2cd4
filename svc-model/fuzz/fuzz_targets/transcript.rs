//! Any bytes are read as a transcript. The first byte picks the agent. Run this with
//! `cargo +nightly fuzz run transcript`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use svc_transcripts::Agent;

mod any_transcript;

fuzz_target!(|bytes: &[u8]| {
    if let Some((first, file)) = bytes.split_first() {
        let agent = Agent::ALL[usize::from(*first) % Agent::ALL.len()];
        any_transcript::check(agent, file);
    }
});
