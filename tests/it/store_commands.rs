//! The commands that work directly on the store, on both backends.

use harness::delivery::Call;
use harness::server::{Backend, Configuration, Server, Store};
use svc_engine::store::DatabaseUrl;
use svc_model::json::Json;

use crate::cli::{DEMO, LAST_CALL, account, at, done, json, refused, svc, svc_with};

on_both_backends!(
    the_db_commands_report_and_upgrade_the_schema,
    facts_of_another_schema_version_are_read_as_far_as_possible,
    quarantine_and_release_append_to_a_log,
    quarantine_works_by_http_under_the_name_of_the_client,
    many_calls_are_quarantined_and_released_at_once,
    a_bulk_change_needs_an_explicit_selection_and_a_reason,
    an_organization_unknown_to_the_store_is_reported,
);

/// The revision of the schema.
const HEAD: usize = 6;

fn the_db_commands_report_and_upgrade_the_schema(backend: Backend) {
    let Some(store) = Store::create_empty(backend) else {
        return;
    };
    let Some(server) = Server::start(Backend::Sqlite, &Configuration::default()) else {
        return;
    };
    let variables = [("SVC_DATABASE_URL", store.url())];
    let run = |arguments: &[&str]| done(&svc_with(&server, &variables, arguments));
    let absent = svc_with(&server, &variables, &["db", "status"]);
    assert_eq!(
        absent.stdout_text(),
        format!("database schema: absent (supported head {HEAD})\n")
    );
    let note = absent.stderr_text();
    assert!(
        note.contains("note: this store is ") && note.contains("--database-url"),
        "{note}"
    );
    assert_eq!(absent.status.code(), Some(0));
    assert_eq!(
        run(&["db", "status", "--json"]),
        format!("{{\"state\":\"absent\",\"revision\":null,\"head\":{HEAD}}}\n")
    );
    let error = refused(&svc_with(&server, &variables, &["facts"]), 1);
    assert!(error.contains("svc db upgrade"), "{error}");
    assert_eq!(
        run(&["db", "upgrade"]),
        format!("database schema upgraded to {HEAD}\n")
    );
    assert_eq!(
        run(&["db", "upgrade"]),
        format!("database schema is already at {HEAD}\n")
    );
    assert_eq!(
        run(&["db", "status"]),
        format!("database schema: at_head ({HEAD})\n")
    );
    assert!(run(&["facts"]).contains("quarantine_revision: 0\n"));
}

fn quarantine_and_release_append_to_a_log(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    done(&svc(&server, &["demo", "--small"]));
    let hide = [
        "quarantine",
        "inference_calls",
        LAST_CALL,
        "--reason",
        "a\u{1b}[2Jb",
    ];
    let hidden = done(&svc(&server, &hide));
    assert!(
        hidden.starts_with(&format!("quarantined inference_calls/{LAST_CALL} in ")),
        "{hidden}"
    );
    assert!(
        hidden.ends_with(&format!(
            ", organization acme (reversible: svc release inference_calls {LAST_CALL} --reason REASON)\n"
        )),
        "{hidden}"
    );
    assert!(
        done(&svc(&server, &["facts"])).contains("inference_calls                   4        3\n")
    );
    let inventory = done(&svc(&server, &["evidence", "inventory", DEMO]));
    assert!(
        inventory.contains("3 visible calls, 1 quarantined"),
        "{inventory}"
    );
    // Storing a quarantined demo call again is still a redelivery, and the call stays hidden.
    let again = done(&svc(&server, &["demo", "--small"]));
    assert!(again.contains("4 calls (0 new)"), "{again}");

    let show = [
        "release",
        "inference_calls",
        LAST_CALL,
        "--reason",
        "mended",
        "--json",
    ];
    let released = json(&svc(&server, &show));
    assert_eq!(at(&released, &["target_found"]), &Json::from(true));
    let log = done(&svc(&server, &["quarantine-log"]));
    let reasons: Vec<_> = log
        .lines()
        .map(|line| line.rsplit("  ").next().unwrap_or_default())
        .collect();
    assert_eq!(reasons[..2], ["a\\u{1b}[2Jb", "mended"]);
    assert!(log.ends_with("2 rows; quarantine_revision: 2\n"), "{log}");

    let typo = ["quarantine", "pushes", LAST_CALL, "--reason", "typo"];
    let error = refused(&svc(&server, &typo), 1);
    assert!(
        error.contains(&format!("there is no pushes/{LAST_CALL} in ")),
        "{error}"
    );
    assert!(error.contains("organization acme"), "{error}");
    let log = done(&svc(&server, &["quarantine-log"]));
    assert!(log.ends_with("2 rows; quarantine_revision: 2\n"), "{log}");

    let forced = svc(&server, &[&typo[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0));
    assert!(forced.stderr_text().contains("quarantine_target_not_found"));
    let last = done(&svc(&server, &["quarantine-log", "--tail", "1"]));
    assert!(
        last.starts_with("... showing last 1 of 3 rows (--all for all)\n"),
        "{last}"
    );
    assert!(last.contains("typo") && !last.contains("mended"), "{last}");
}

fn quarantine_works_by_http_under_the_name_of_the_client(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    done(&svc(&server, &["demo", "--small"]));
    let url = server.base_url();
    // The command line takes precedence over the environment, which names a store.
    let remote = |arguments: &[&str]| svc(&server, &[arguments, &["--url", &url]].concat());
    let reason = ["--reason", "a leak"];
    let hide = |id: &str| remote(&[&["quarantine", "inference_calls", id][..], &reason].concat());

    let hidden = done(&hide(&LAST_CALL[..8]));
    assert_eq!(
        hidden,
        format!(
            "quarantined inference_calls/{LAST_CALL} in {url}, organization acme (reversible: svc \
             release inference_calls {LAST_CALL} --reason REASON --url {url})\n"
        )
    );
    let error = refused(&hide("00000000-0000-0000-0000-000000000001"), 1);
    assert!(
        error.contains(&format!(
            "in {url}, organization acme: nothing was recorded"
        )),
        "{error}"
    );
    let error = refused(&remote(&["quarantine-log", "--org", "other"]), 1);
    assert!(error.contains("organization acme"), "{error}");
    assert!(done(&remote(&["facts"])).contains("inference_calls                   4        3\n"));

    let show = [
        &["release", "inference_calls", LAST_CALL, "--json"][..],
        &reason,
    ]
    .concat();
    let released = json(&remote(&show));
    assert_eq!(at(&released, &["org_id"]), &Json::from("acme"));
    assert_eq!(at(&released, &["unchanged"]), &Json::from(false));
    // In the shell at the store, the same log says who did what.
    let direct = [
        "quarantine",
        "inference_calls",
        LAST_CALL,
        "--reason",
        "again",
    ];
    done(&svc_with(&server, &[("USER", "somebody-else")], &direct));
    for log in [
        done(&remote(&["quarantine-log"])),
        done(&svc(&server, &["quarantine-log"])),
    ] {
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 4, "{log}");
        assert!(
            lines[0].contains("Z  operator  quarantine inference_calls/"),
            "{log}"
        );
        assert!(
            lines[2].contains(&format!(
                "Z  shell ({})  quarantine inference_calls/",
                account()
            )),
            "{log}"
        );
    }
    assert!(
        server.log().contains("quarantine.changed"),
        "{}",
        server.log()
    );
}

/// Returns a server with the demo's Session of four calls, and one call of another Session.
fn planted(backend: Backend) -> Option<Server> {
    let server = Server::start(backend, &Configuration::default())?;
    done(&svc(&server, &["demo", "--small"]));
    let call = Call::new("other", "c-1");
    let call = call.captured(
        "531f97ae-8872-41e7-8b99-d5840ab3cd2f",
        "2026-01-15T09:31:04.500000Z",
    );
    assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    Some(server)
}

/// Returns how many calls are visible, and the revision of the log.
fn visible(server: &Server) -> (Json, Json) {
    let facts = json(&svc(server, &["facts", "--json"]));
    let visible = at(&facts, &["tables", "inference_calls", "visible"]).clone();
    (visible, at(&facts, &["quarantine_revision"]).clone())
}

fn many_calls_are_quarantined_and_released_at_once(backend: Backend) {
    let Some(server) = planted(backend) else {
        return;
    };
    let numbers = |visible: u64, revision: u64| (Json::from(visible), Json::from(revision));
    let run = |arguments: &[&str]| done(&svc(&server, arguments));
    let hide = ["quarantine-inference-calls", "--reason", "a\u{1b}b"];
    let show = ["release-inference-calls", "--reason", "mended"];
    let of_demo = [" svc-demo "];

    let dry = run(&[&hide[..], &of_demo].concat());
    assert!(
        dry.starts_with(
            "4 model-call facts would be quarantined (dry run; add --apply); 0 already quarantined, in "
        ) && dry.ends_with(", organization acme\n"),
        "{dry}"
    );
    let documented = run(&[&hide[..], &["--session-id", "svc-demo"]].concat());
    assert_eq!(documented, dry, "the specification's form means the same");
    assert_eq!(visible(&server), numbers(5, 0), "nothing is done");
    run(&[
        "quarantine",
        "inference_calls",
        LAST_CALL,
        "--reason",
        "first",
    ]);
    let apply = run(&[&hide[..], &of_demo, &["--apply"]].concat());
    assert!(
        apply.starts_with("quarantined 3 model-call facts; 1 already quarantined, in "),
        "{apply}"
    );
    assert_eq!(visible(&server), numbers(1, 4));
    let session = run(&["session", DEMO]);
    let gaps = session
        .lines()
        .find(|line| line.starts_with("not captured"));
    assert!(
        session.contains("4 quarantined") && !gaps.unwrap_or_default().contains("model calls"),
        "{session}"
    );
    let again = json(&svc(
        &server,
        &[&hide[..], &of_demo, &["--apply", "--json"]].concat(),
    ));
    assert_eq!(
        again,
        Json::parse(
            br#"{"action":"quarantine","applied":true,"changed":0,"unchanged":4,"quarantine_revision":4}"#
        )
        .expect("JSON")
    );

    let dry = run(&[&show[..], &["--all"]].concat());
    assert!(
        dry.starts_with(
            "4 model-call facts would be released (dry run; add --apply); 1 already visible, in "
        ),
        "{dry}"
    );
    let apply = run(&[&show[..], &["--all", "--apply"]].concat());
    assert!(
        apply.starts_with("released 4 model-call facts; 1 already visible, in "),
        "{apply}"
    );
    assert_eq!(visible(&server), numbers(5, 8));
    let log = run(&["quarantine-log", "--all"]);
    assert_eq!(log.matches("  a\\u{1b}b\n").count(), 3, "{log}");
    assert_eq!(log.matches("  mended\n").count(), 4, "{log}");
    assert_eq!(
        log.lines().filter(|line| line.contains(LAST_CALL)).count(),
        2,
        "a quarantined call gets no second row: {log}"
    );

    // The last call of the demo was observed at the upper bound, and the other call too.
    let between = [
        "--between",
        "2026-01-15T09:31:04.5Z",
        "2026-01-15T11:31:04.500000+02:00",
    ];
    let both = run(&[&hide[..], &between].concat());
    assert!(both.starts_with("2 model-call facts would be"), "{both}");
    let one = run(&[&hide[..], &between, &of_demo, &["--provider", "litellm"]].concat());
    assert!(one.starts_with("1 model-call facts would be"), "{one}");
    let none = run(&[&hide[..], &["--provider", "gateway_b", "--apply"]].concat());
    assert!(
        none.starts_with("quarantined 0 model-call facts; 0 already quarantined, in "),
        "{none}"
    );
}

fn a_bulk_change_needs_an_explicit_selection_and_a_reason(backend: Backend) {
    let Some(server) = planted(backend) else {
        return;
    };
    let (naive, aware) = ("2026-01-15T09:31:04", "2026-01-15T09:31:04Z");
    for command in ["quarantine-inference-calls", "release-inference-calls"] {
        for (options, status) in [
            (&["--reason", "x"][..], 1),
            (&["--reason", " \n", "--all"], 1),
            (&["--reason", "x", "--session-id", " "], 1),
            (&["--reason", "x", " "], 1),
            (&["--reason", "x", "s", "--session-id", "s"], 2),
            (&["--reason", "x", "--provider", "nosuch"], 1),
            (&["--reason", "x", "--between", naive, aware], 1),
            (
                &["--reason", "x", "--between", "2027-01-01T00:00:00Z", aware],
                1,
            ),
            (&["--reason", "x", "--between", "soon", "later"], 1),
            (&["--reason", "x", "--between", aware], 2),
            (&["--all"], 2),
        ] {
            let arguments = [&[command, "--apply"], options].concat();
            refused(&svc(&server, &arguments), status);
        }
    }
    assert_eq!(visible(&server), (Json::from(5_u64), Json::from(0_u64)));
}

fn facts_of_another_schema_version_are_read_as_far_as_possible(backend: Backend) {
    let (Some(store), Some(server)) = (
        Store::create_empty(backend),
        Server::start(Backend::Sqlite, &Configuration::default()),
    ) else {
        return;
    };
    let variables = [("SVC_DATABASE_URL", store.url())];
    let run = |arguments: &[&str]| done(&svc_with(&server, &variables, arguments));
    let url = DatabaseUrl::parse(store.url()).expect("a URL");
    let sql = |sql: &str| svc_engine::testing::run_sql(&url, sql).expect("the statements run");
    let drop_table = |table: &str| match backend {
        Backend::Sqlite => sql(&format!("DROP TABLE {table}")),
        // Along with the views of what is visible.
        Backend::Postgres => sql(&format!("DROP TABLE {table} CASCADE")),
    };
    let quarantine = ["quarantine", "pushes", "p", "--reason", "r"];
    let bulk = [
        "quarantine-inference-calls",
        "--all",
        "--reason",
        "r",
        "--apply",
    ];

    // A database that no service has used: each command says so, and what to do.
    for asked in [&["quarantine-log"][..], &["report", "model"], &["verify"]] {
        let error = refused(&svc_with(&server, &variables, asked), 1);
        assert!(
            error.starts_with("error: no service has used this database yet\n"),
            "{error}"
        );
        assert!(
            error.contains("hint: to create the schema: svc db upgrade\n"),
            "{error}"
        );
    }

    // A later version of the schema: its known tables can be read, and nothing is written.
    run(&["db", "upgrade"]);
    sql(&format!(
        "UPDATE _sqlx_migrations SET version = 999 WHERE version = {HEAD}"
    ));
    assert_eq!(
        run(&["db", "status"]),
        format!("database schema: ahead (supported head {HEAD})\n")
    );
    assert!(run(&["facts"]).contains("pushes                            0        0\n"));
    assert_eq!(run(&["quarantine-log"]), "0 rows; quarantine_revision: 0\n");
    for change in [&quarantine[..], &bulk] {
        let error = refused(&svc_with(&server, &variables, change), 1);
        assert!(error.contains("the schema is ahead"), "{error}");
    }

    // An earlier version of the schema: what it lacks is not shown as zero.
    sql("DELETE FROM _sqlx_migrations WHERE version = 999");
    drop_table("repository_renames");
    assert_eq!(
        run(&["db", "status"]),
        format!("database schema: behind (supported head {HEAD})\n")
    );
    let facts = run(&["facts"]);
    assert!(
        facts.contains("repository_renames          unavailable\nquarantine_revision: 0\n"),
        "{facts}"
    );
    let facts = json(&svc_with(&server, &variables, &["facts", "--json"]));
    assert_eq!(at(&facts, &["tables", "repository_renames"]), &Json::Null);
    drop_table("quarantine_log");
    drop_table("sessions");
    let facts = run(&["facts"]);
    assert_eq!(facts.matches("unavailable").count(), 13, "{facts}");
    assert_eq!(run(&["quarantine-log"]), "0 rows; quarantine_revision: 0\n");
    let error = refused(&svc_with(&server, &variables, &quarantine), 1);
    assert!(error.contains("svc db upgrade"), "{error}");
}

/// A command for an organization without facts succeeds, so a forgotten setting would go unnoticed.
fn an_organization_unknown_to_the_store_is_reported(backend: Backend) {
    let Some(server) = planted(backend) else {
        return;
    };
    let warning = "warning: this store has no facts of organization default; it has: acme.";
    for command in [
        &["gc", "--older-than", "90d"][..],
        &["erase", "--session", DEMO],
        &["facts"],
        &["export"],
        &["quarantine-log"],
        &["grant", "list"],
        &["report", "model"],
        &["mirror", "status"],
    ] {
        let own = svc(&server, command);
        assert!(
            !own.stderr_text().contains("this store has nothing"),
            "{command:?}"
        );
        let other = svc(&server, &[command, &["--org", "default"]].concat());
        let stderr = other.stderr_text();
        assert!(stderr.contains(warning), "{command:?}: {stderr}");
    }
    let dates = ["--between", "2026-01-15", "2026-01-16", "--reason", "x"];
    let error = refused(
        &svc(
            &server,
            &[&["quarantine-inference-calls"][..], &dates].concat(),
        ),
        1,
    );
    assert!(error.contains("2026-01-15T00:00:00Z"), "{error}");
}

/// Asking again does not help.
#[test]
fn a_missing_or_refusing_database_is_reported_with_who_can_fix_it() {
    let Some(store) = Store::create_empty(Backend::Postgres) else {
        return;
    };
    let Some(server) = Server::start(Backend::Sqlite, &Configuration::default()) else {
        return;
    };
    let gone = format!("{}_gone", store.url());
    let unnamed = "postgres://svc@nowhere.invalid/svc".to_owned();
    for (url, mend) in [
        (gone, "correct SVC_DATABASE_URL"),
        (unnamed, "is it running where SVC_DATABASE_URL says?"),
    ] {
        let variables = [("SVC_DATABASE_URL", &*url)];
        let error = refused(&svc_with(&server, &variables, &["facts"]), 1);
        assert!(error.contains(mend), "{error}");
        let doctor = svc_with(&server, &variables, &["doctor"]).stdout_text();
        assert!(doctor.contains(mend), "{doctor}");
    }
}

/// A user without access to the folder must not be told that the store was never used.
#[test]
fn an_inaccessible_database_is_not_reported_as_absent() {
    let Some(server) = Server::start(Backend::Sqlite, &Configuration::default()) else {
        return;
    };
    // Nobody can look beneath a file, not even an administrator.
    let hidden = format!("{}/svc.db", server.store().url());
    let variables = [("SVC_DATABASE_URL", &*hidden)];
    let error = refused(&svc_with(&server, &variables, &["facts"]), 1);
    assert!(
        !error.contains("no service has used this database"),
        "{error}"
    );
    let doctor = svc_with(&server, &variables, &["doctor"]).stdout_text();
    assert!(!doctor.contains("there is no file"), "{doctor}");
    assert!(doctor.contains("the database file"), "{doctor}");
}

#[test]
fn a_database_removed_under_its_server_is_a_failure() {
    let Some(server) = Server::start(Backend::Sqlite, &Configuration::default()) else {
        return;
    };
    let file = server.store().url().trim_start_matches("sqlite://");
    std::fs::remove_file(file).expect("it was there");
    let doctor = svc(&server, &["doctor"]).stdout_text();
    assert!(doctor.contains("is gone, and the service at"), "{doctor}");
    assert!(!doctor.contains("svc capture"), "{doctor}");
}
