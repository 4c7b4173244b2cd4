//! Any bytes are either refused, or a document that reads back unchanged after it was written. Run
//! this with `cargo +nightly fuzz run json_roundtrip`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use svc_model::json::Json;

mod round_trip;

fuzz_target!(|bytes: &[u8]| round_trip::check(bytes));
