//! A program that OpenTelemetry's SDK instruments, and what its spans and log records become.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use harness::foreign::{self, cases, install, left_out};
use harness::pattern::{dig, shown};
use harness::process;
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server};
use svc_model::json::Json;

const PROGRAM: &str = "opentelemetry-openai";
const PACKAGES: [&str; 6] = [
    "openai==2.54.0",
    "httpx==0.28.1",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-http==1.45.2",
    "opentelemetry-instrumentation-openai-v2==2.4b0",
    "opentelemetry-util-genai==1.1b0",
];

/// How long the program may take.
const PROGRAM_MAX: Duration = Duration::from_mins(1);

/// Where the content of calls is recorded, and what should arrive: calls, usage reports, and where
/// the calls were captured.
const MODES: [(&str, u64, u64, &str); 4] = [
    ("SPAN_AND_EVENT", 2, 0, ""),
    ("SPAN_ONLY", 2, 0, "span"),
    ("EVENT_ONLY", 2, 2, "telemetry"),
    ("NO_CONTENT", 0, 2, ""),
];

fn total(server: &Server, table: &str) -> u64 {
    let counts = server.read_json("/v1/facts");
    let total = dig(&counts, &format!("tables.{table}.total"));
    total
        .and_then(Json::as_number)
        .and_then(svc_model::json::Number::as_u64)
        .unwrap_or(0)
}

#[test]
fn the_calls_of_an_instrumented_program_are_captured_in_every_content_mode() {
    let folder = foreign::folder(Path::new(env!("CARGO_TARGET_TMPDIR")), PROGRAM);
    let packages = [&["venv/bin/pip", "install", "--quiet"][..], &PACKAGES].concat();
    let steps: [&[&str]; 2] = [&["python3", "-m", "venv", "venv"], &packages];
    if let Err(why) = install(PROGRAM, &folder, &steps) {
        return left_out(&why);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/open_telemetry.py");
    for (mode, calls, receipts, source) in cases(&MODES) {
        let server = Server::start(Backend::Sqlite, &Configuration::default());
        let server = server.expect("SQLite is never skipped");
        let mut program = Command::new(folder.join("venv/bin/python"));
        program
            .arg(&script)
            .args([&server.base_url(), INGEST_TOKEN, "s-otel"])
            .env(
                "OTEL_SEMCONV_STABILITY_OPT_IN",
                "gen_ai_latest_experimental",
            )
            .env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", mode);
        let output = process::run(&mut program, b"", PROGRAM_MAX).expect("it ends");
        assert!(output.status.success(), "{mode}: {}", output.stderr_text());
        assert_eq!(total(&server, "inference_calls"), *calls, "{mode}");
        let reports = total(&server, "usage_receipts");
        assert_eq!(reports, *receipts, "{mode}");
        let dossier = server.read_json("/query/session/s-otel");
        let text = shown(&dossier);
        if *calls > 0 {
            let tokens = dig(&dossier, "timeline.0.input_tokens");
            assert_eq!(tokens, Some(&Json::from(100_u64)), "{mode}: {text}");
            let found = dig(&dossier, "timeline.0.capture_source").and_then(Json::as_str);
            assert!(
                source.is_empty() || found == Some(*source),
                "{mode}: {text}"
            );
            let transcript = server.shell().args(["transcript", "s-otel"]).output();
            let transcript = String::from_utf8(transcript.expect("it runs").stdout).expect("text");
            for said in ["Be brief.", "src/pager.rs", "fn window() {}", "half-open"] {
                assert!(transcript.contains(said), "{mode}: {transcript}");
            }
        }
    }
}
