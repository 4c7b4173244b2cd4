//! Finding evidence, and reading it exactly.

use std::fs;

use harness::server::RETRIEVAL_TOKEN;
use svc_model::json::Json;

use super::{DEMO, LAST_CALL, at, done, planted, refused, svc, svc_with};

#[test]
fn discovered_context_leads_to_the_exact_part() {
    let server = planted();
    let discovered = done(&svc(
        &server,
        &["context", "discover", "half-open", "window"],
    ));
    assert!(
        discovered
            .ends_with("\nnext:\n  svc context retrieve --session svc-demo 'half-open window'\n"),
        "{discovered}"
    );

    let retrieved = svc(
        &server,
        &[
            "context",
            "retrieve",
            "--session",
            DEMO,
            "pages_do_not_overlap",
            "--max-bytes",
            "65536",
        ],
    );
    let retrieved = done(&retrieved);
    assert!(retrieved.starts_with("matched: "), "{retrieved}");
    assert!(
        retrieved.contains("calls edit_file (tool call call_demo_write)"),
        "{retrieved}"
    );
    assert!(
        retrieved.contains(&format!("  svc evidence manifest svc-demo {LAST_CALL}\n")),
        "{retrieved}"
    );

    let nothing = done(&svc(
        &server,
        &["context", "retrieve", "--session", DEMO, "zeppelin"],
    ));
    assert!(nothing.starts_with("no_match: 0 of 40 parts"), "{nothing}");
    // The service has several Sessions configured, so one must be named.
    let error = refused(&svc(&server, &["context", "retrieve", "pager"]), 1);
    assert!(error.contains("--session"), "{error}");
}

#[test]
fn evidence_goes_from_the_inventory_to_the_exact_bytes() {
    let server = planted();
    let inventory = done(&svc(&server, &["evidence", "inventory", DEMO]));
    assert!(
        inventory.starts_with("Session svc-demo: 4 visible calls, 0 quarantined\n"),
        "{inventory}"
    );
    assert!(
        inventory.ends_with(&format!("  svc evidence manifest svc-demo {LAST_CALL}\n")),
        "{inventory}"
    );
    let unknown = done(&svc(&server, &["evidence", "inventory", "nobody"]));
    assert!(
        unknown.starts_with("Session nobody is not known\n"),
        "{unknown}"
    );

    let manifest = done(&svc(&server, &["evidence", "manifest", DEMO, LAST_CALL]));
    assert!(
        manifest.starts_with(&format!(
            "call {LAST_CALL} of Session svc-demo: 10 messages, "
        )),
        "{manifest}"
    );
    assert!(manifest.contains("finish reason"), "{manifest}");

    let reference = format!("{LAST_CALL}:input:1:0");
    let read = done(&svc(&server, &["evidence", "read", DEMO, &reference]));
    assert!(read.ends_with("  user\n    Page 2 of the orders report starts with the last row of page 1. Find out why and fix it.\n"), "{read}");

    let folder = tempfile::tempdir().unwrap();
    let selection = folder.path().join("selection.json");
    let selected = format!(
        r#"{{"schema_version":1,"references":[{{"inference_call_id":"{LAST_CALL}","side":"input","message_index":1,"part_index":0}}]}}"#
    );
    fs::write(&selection, selected).unwrap();
    let reply = folder.path().join("reply.json");
    let arguments = [
        "evidence",
        "read",
        DEMO,
        "--references",
        selection.to_str().unwrap(),
        "--output",
        reply.to_str().unwrap(),
    ];
    assert_eq!(
        done(&svc(&server, &arguments)),
        format!("{}: 1 items\n", reply.display())
    );
    let exact = done(&svc(
        &server,
        &["evidence", "read", DEMO, &reference, "--json"],
    ));
    assert_eq!(fs::read_to_string(&reply).unwrap() + "\n", exact);
    let error = refused(&svc(&server, &arguments), 1);
    assert!(error.contains("never overwritten"), "{error}");
}

#[test]
fn a_retrieval_token_reads_within_its_grant() {
    let server = planted();
    let retrieval = [("SVC_TOKEN", RETRIEVAL_TOKEN)];
    let granted = done(&svc_with(
        &server,
        &retrieval,
        &["evidence", "inventory", DEMO],
    ));
    assert!(granted.contains("4 visible calls"), "{granted}");
    let foreign = svc_with(
        &server,
        &retrieval,
        &["evidence", "inventory", "foreign", "--json"],
    );
    let error = refused(&foreign, 1);
    let error = Json::parse(error.as_bytes()).unwrap();
    assert_eq!(at(&error, &["error", "code"]), &Json::from("outside_grant"));
}
