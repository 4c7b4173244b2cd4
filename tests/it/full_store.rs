//! Stores that cannot be written, because they are full or read-only. What cannot be stored is not
//! acknowledged, what can be read is answered, the cause is named along with its remedy, and
//! everything continues once it is fixed.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use harness::delivery::{Call, Receipt};
use harness::http::Request;
use harness::own_cluster::OwnCluster;
use harness::pattern::dig;
use harness::postgres;
use harness::process;
use harness::programs;
use harness::random::Random;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server, Store};
use serde_json::json;
use svc_model::json::Json;

use crate::backup::path;
use crate::cli::{COMMAND_MAX, done, refused, shows_no_secret, svc, svc_with};
use crate::standby::{measured, obstacles};

/// The bytes of a call that does not compress.
const LARGE: usize = 24 * 1024;
/// Enough calls to fill any of the small disks here.
const CALLS: usize = 400;
const FULL: &str = "the disk of the database is full: free some space there";
const NO_ANSWER: &str = "the database server gives no answer: is it running";
const READ_ONLY: &str = "the database can only be read: is it a standby";

/// Returns a call whose text is unlike any other.
fn large(name: &str) -> Call {
    let mut random = Random::new(
        name.bytes()
            .fold(7, |seed, byte| seed * 31 + u64::from(byte)),
    );
    let text: String = (0..LARGE)
        .map(|_| char::from(b'!' + u8::try_from(random.below(90)).expect("it is small")))
        .collect();
    Call::new("s", name).messages(vec![json!({"role": "user", "content": text})])
}

pub(crate) fn deliver(server: &Server, call: &Call) -> bool {
    let reply = server.deliver("/ingest/gateway", call.body());
    match reply.status {
        200 => true,
        503 => {
            let code = dig(&reply.json(), "detail.code").cloned();
            assert_eq!(code, Some(Json::from("database_unavailable")));
            false
        }
        other => panic!("{other} {}", reply.text()),
    }
}

/// Everything that can be read is read, including the counts of deliveries that stored nothing.
pub(crate) fn reads_go_on(server: &Server, calls: usize) {
    for path in [
        "/health",
        "/v1/facts",
        "/v1/sessions",
        "/v1/capture",
        "/v1/grants",
        "/query/evidence?session_id=s",
    ] {
        let reply = server.send(&Request::get(path).bearer(OPERATOR_TOKEN));
        assert_eq!(reply.status, 200, "{path} {}", reply.text());
    }
    let counted = server.read_json("/v1/facts");
    let total = dig(&counted, "tables.inference_calls.total").cloned();
    assert_eq!(total, Some(Json::from(u64::try_from(calls).expect("few"))));
}

fn refuses_grants(server: &Server) {
    let grant = json!({"token": "ci", "session_id": "s", "reason": "r"}).to_string();
    assert_eq!(server.ask("/v1/grants/add", grant).status, 503);
}

/// Checks a server with one call whose store cannot be written: it stores nothing, answers reads,
/// and names the cause in its log and in the shell.
pub(crate) fn nothing_is_written(server: &Server, cause: &str) {
    for number in 0..3 {
        assert!(!deliver(
            server,
            &Call::new("s", &format!("during-{number}"))
        ));
    }
    reads_go_on(server, 1);
    refuses_grants(server);
    assert!(server.log().contains(cause), "{}", server.log());
    let error = refused(
        &svc(server, &["grant", "add", "ci", "s", "--reason", "r"]),
        1,
    );
    assert!(error.contains(cause), "{error}");
}

/// Sends everything that was acknowledged again. Nothing of it is new.
pub(crate) fn all_is_there(server: &Server, calls: &[Call]) {
    for call in calls {
        let receipt = Receipt::of(&server.deliver("/ingest/gateway", call.body()));
        assert!(!receipt.stored, "it was acknowledged and is lost");
    }
    done(&svc(server, &["verify"]));
}

#[test]
fn a_full_disk_prevents_only_storing() {
    let Some(store) = Store::on_small_disk(3 * 1024) else {
        return;
    };
    let disk = store.disk().expect("a disk");
    let mut server = Server::start_on(&store, &Configuration::default());
    let mut stored = Vec::new();
    let mut refusals = 0;
    for number in 0..CALLS {
        let call = large(&format!("c{number}"));
        if deliver(&server, &call) {
            stored.push(call);
        } else {
            refusals += 1;
        }
        if refusals > 10 {
            break;
        }
    }
    assert!(
        refusals > 10 && stored.len() > 10,
        "{} {refusals}",
        stored.len()
    );
    reads_go_on(&server, stored.len());
    assert!(server.log().contains(FULL), "{}", server.log());
    // Commands that only read still work, and so does a backup, which is written elsewhere.
    done(&svc(&server, &["facts"]));
    done(&svc(&server, &["verify"]));
    done(&svc(&server, &["backup", &path(&server, "elsewhere")]));
    done(&svc(&server, &["verify", &path(&server, "elsewhere")]));
    let folder = Path::new(store.url().trim_start_matches("sqlite://"));
    let beside = folder.with_file_name("backup").display().to_string();
    let error = refused(&svc(&server, &["backup", &beside]), 1);
    assert!(
        error.contains("No space left") && error.contains("another disk"),
        "{error}"
    );
    let doctor = svc(&server, &["doctor"]).stdout_text();
    assert!(doctor.contains("free some space on the disk"), "{doctor}");

    disk.resize(64 * 1024);
    let later = large("later");
    assert!(deliver(&server, &later), "no restart is needed");
    stored.push(later);
    all_is_there(&server, &stored);
    done(&svc(
        &server,
        &["erase", "--session", "s", "--reason", "r", "--apply"],
    ));
    done(&svc(&server, &["verify"]));
    assert!(server.stop().success());
}

#[test]
fn an_erasure_on_a_full_disk_reports_what_is_erased_and_what_remains() {
    let Some(store) = Store::on_small_disk(16 * 1024) else {
        return;
    };
    let disk = store.disk().expect("a disk");
    let mut server = Server::start_on(&store, &Configuration::default());
    for number in 0..100 {
        assert!(deliver(&server, &large(&format!("c{number}"))));
    }
    assert!(deliver(&server, &Call::new("other", "o")));
    server.stop();
    // There is room for a transaction, but not for the whole file again.
    disk.resize(3 * 1024);
    let erase = &["erase", "--session", "other", "--reason", "r", "--apply"];
    let output = svc(&server, erase);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout_text().contains("not rewritten"));
    let error = output.stderr_text();
    for part in ["the content is erased", "run the same command again"] {
        assert!(error.contains(part), "{error}");
    }
    shows_no_secret(&(output.stdout_text() + &error));
    disk.resize(16 * 1024);
    done(&svc(&server, erase));
    done(&svc(&server, &["verify"]));
}

/// A restore that runs out of space leaves the existing store.
#[test]
fn a_restore_on_a_full_disk_leaves_the_store_unchanged() {
    let Some(store) = Store::on_small_disk(64 * 1024) else {
        return;
    };
    let disk = store.disk().expect("a disk");
    let mut server = Server::start_on(&store, &Configuration::default());
    let calls: Vec<Call> = (0..30).map(|number| large(&format!("c{number}"))).collect();
    for call in &calls {
        assert!(deliver(&server, call));
    }
    done(&svc(&server, &["backup", &path(&server, "kept")]));
    server.stop();
    disk.fill();
    let error = refused(
        &svc(&server, &["restore", &path(&server, "kept"), "--replace"]),
        1,
    );
    assert!(error.contains(FULL), "{error}");
    disk.make_room();
    done(&svc(&server, &["verify"]));
    let restored = svc(&server, &["restore", &path(&server, "kept"), "--replace"]);
    assert_eq!(
        restored.status.code(),
        Some(0),
        "{}",
        restored.stderr_text()
    );
    let server = Server::start_on(&store, &Configuration::default());
    all_is_there(&server, &calls);
}

/// What was erased does not come back, whatever the restore runs out of.
#[test]
fn a_restore_without_space_to_erase_again_leaves_the_store_unchanged() {
    let Some(store) = Store::on_small_disk(64 * 1024) else {
        return;
    };
    let disk = store.disk().expect("a disk");
    let mut server = Server::start_on(&store, &Configuration::default());
    for number in 0..60 {
        assert!(deliver(&server, &large(&format!("c{number}"))));
    }
    let erased = Call::new("other", "o");
    assert!(deliver(&server, &erased));
    let restore = ["restore", &path(&server, "kept"), "--replace"];
    done(&svc(&server, &["backup", restore[1]]));
    let erase = &["erase", "--session", "other", "--reason", "r", "--apply"];
    done(&svc(&server, erase));
    assert!(server.stop().success());
    // There is room for the new file, but not for rewriting it without what is erased again.
    disk.resize(7 * 512);
    let error = refused(&svc(&server, &restore), 1);
    assert!(error.contains(FULL), "{error}");
    let log = done(&svc(&server, &["erase", "log"]));
    assert!(log.contains("Session other"), "{log}");
    disk.resize(64 * 1024);
    let restored = svc(&server, &restore);
    let stderr = restored.stderr_text();
    assert!(stderr.contains("is erased again, of 1 facts"), "{stderr}");
    let log = done(&svc(&server, &["erase", "log"]));
    assert!(log.contains("Session other"), "{log}");
    done(&svc(&server, &["verify"]));
}

/// A connection to a file on a read-only disk would stay read-only forever.
#[test]
fn a_server_does_not_start_on_a_file_that_it_cannot_write() {
    let Some(store) = Store::on_small_disk(16 * 1024) else {
        return;
    };
    let disk = store.disk().expect("a disk");
    let mut server = Server::start_on(&store, &Configuration::default());
    let calls = [large("one"), large("two")];
    for call in &calls {
        assert!(deliver(&server, call));
    }
    // When killed, it leaves its log behind, and commands that only read still work.
    server.kill();
    disk.set_writable(false);
    done(&svc(&server, &["facts"]));
    done(&svc(&server, &["verify"]));
    done(&svc(&server, &["backup", &path(&server, "rescued")]));
    let error = refused(
        &svc(&server, &["grant", "add", "ci", "s", "--reason", "r"]),
        1,
    );
    assert!(error.contains(READ_ONLY), "{error}");
    let doctor = svc(&server, &["doctor"]).stdout_text();
    assert!(doctor.contains(READ_ONLY), "{doctor}");
    let outcome = Server::try_start_on(&store, &Configuration::default());
    let error = outcome.expect_err("it cannot write");
    assert!(error.contains(READ_ONLY), "{error}");
    disk.set_writable(true);
    let server = Server::start_on(&store, &Configuration::default());
    all_is_there(&server, &calls);
}

#[test]
fn a_read_only_database_is_written_again_without_a_restart_once_writable() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let database = store.database().expect("a database of the cluster");
    let server = Server::start_on(&store, &Configuration::default());
    let mut calls = vec![Call::new("s", "before")];
    assert!(deliver(&server, &calls[0]));
    let name = database.query("select current_database()");
    let set = |how: &str| {
        let cluster = postgres::shared().expect("it runs");
        cluster.execute(&format!("alter database {name} {how}"));
    };
    set("set default_transaction_read_only = on");
    // The setting applies to new sessions.
    database.refuse_connections();
    database.accept_connections();
    nothing_is_written(&server, READ_ONLY);
    let doctor = svc(&server, &["doctor"]).stdout_text();
    assert!(doctor.contains(READ_ONLY), "{doctor}");
    // The service shows it too, even to an operator who cannot reach the database.
    let doctor = svc_with(&server, &[("SVC_DATABASE_URL", "")], &["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    let doctor = doctor.stdout_text();
    assert!(doctor.contains("logs as JSON      FAILED"), "{doctor}");
    assert!(doctor.contains("store.unavailable"), "{doctor}");
    // A command that asks the same service is not a fix, so it is not suggested for either
    // encoding.
    assert!(!doctor.contains("fix: svc capture"), "{doctor}");
    // A server can start on it, and answers.
    let other = Server::start_on(&store, &Configuration::default());
    reads_go_on(&other, 1);
    refuses_grants(&other);

    // The servers still have the connections that could only read.
    set("reset default_transaction_read_only");
    for (server, name) in [(&server, "after"), (&other, "after too")] {
        let call = Call::new("s", name);
        assert!(deliver(server, &call), "{}", server.log());
        calls.push(call);
    }
    all_is_there(&server, &calls);
}

#[test]
fn a_full_database_server_prevents_only_storing() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let database = store.database().expect("a database of the cluster");
    let server = Server::start_on(&store, &Configuration::default());
    let before = Call::new("s", "before");
    assert!(deliver(&server, &before));
    // PostgreSQL's message if a file cannot grow.
    database.query(
        "create function full_disk() returns trigger language plpgsql as $$ begin \
         raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; \
         end $$",
    );
    let tables: BTreeSet<&str> = ["inference_calls", "grant_log"].into();
    for table in &tables {
        database.query(&format!(
            "create trigger full_disk before insert on {table} execute function full_disk()"
        ));
    }
    nothing_is_written(&server, FULL);
    for table in &tables {
        database.query(&format!("drop trigger full_disk on {table}"));
    }
    let after = Call::new("s", "during-0");
    assert!(deliver(&server, &after));
    all_is_there(&server, &[before, after]);
}

/// PostgreSQL ends if it cannot write its log, and starts once there is room for it.
#[test]
fn a_full_disk_of_the_write_ahead_log_prevents_only_storing() {
    let Some(mut cluster) = OwnCluster::on_small_log_disk(16 * 1024) else {
        return;
    };
    let server = Server::start_on(&Store::at(cluster.url()), &measured());
    let mut stored = vec![Call::new("s", "before")];
    assert!(deliver(&server, &stored[0]));
    cluster.log_disk().expect("a disk").fill();
    let refused = (0..CALLS).map(|number| large(&format!("c{number}")));
    let refused = refused.into_iter().find(|call| {
        let is_stored = deliver(&server, call);
        if is_stored {
            stored.push(call.clone());
        }
        !is_stored
    });
    let refused = refused.expect("the disk is full");
    assert!(server.log().contains(FULL), "{}", server.log());
    cluster.wait_for_end();
    assert!(!deliver(&server, &refused));
    assert_eq!(server.read("/v1/facts").status, 503);
    assert_eq!(server.read("/health").status, 200);
    assert!(server.log().contains(NO_ANSWER), "{}", server.log());
    assert_eq!(obstacles(&server), ["no_answer"]);
    let doctor = svc(&server, &["doctor"]).stdout_text();
    assert!(doctor.contains(NO_ANSWER), "{doctor}");

    cluster.log_disk().expect("a disk").make_room();
    cluster.start();
    reads_go_on(&server, stored.len());
    assert!(deliver(&server, &refused), "no restart is needed");
    stored.push(refused);
    reads_go_on(&server, stored.len());
    assert_eq!(obstacles(&server), [""; 0]);
    all_is_there(&server, &stored);
}

/// SQLite gives its log files the mode of the database, and they outlive it. A connection that can
/// only read them opens as if it could write.
#[test]
fn a_read_only_file_beside_the_database_is_named() {
    const NOBODY: u32 = 65_534;
    let is_root = rustix::process::geteuid().is_root();
    let home = tempfile::tempdir().expect("a folder");
    if is_root {
        std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    let database = home.path().join("svc.db");
    let url = format!("sqlite://{}", database.display());
    let svc = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path());
        command.env("SVC_DATABASE_URL", &url);
        command.current_dir(home.path()).args(arguments);
        if is_root {
            // File modes do not restrict root.
            command.uid(NOBODY).gid(NOBODY);
        }
        process::run(&mut command, b"", COMMAND_MAX)
    };
    let Ok(upgraded) = svc(&["db", "upgrade"]) else {
        eprintln!("skipped: no other user can run the program where it is");
        return;
    };
    done(&upgraded);
    let set = |mode| {
        fs::set_permissions(&database, Permissions::from_mode(mode)).expect("it is ours");
    };
    set(0o400);
    assert_eq!(svc(&["facts"]).expect("it ran").status.code(), Some(0));
    set(0o600);
    let log = home.path().join("svc.db-shm");
    assert!(
        log.exists(),
        "a reader that cannot write the file leaves the log behind"
    );
    let doctor = svc(&["doctor"]).expect("it ran").stdout_text();
    assert!(
        doctor.contains(&format!("this user cannot write {}", log.display())),
        "{doctor}"
    );
    let start = svc(&["serve", "--listen", "127.0.0.1:0"]).expect("it ends");
    assert_eq!(start.status.code(), Some(1));
    assert!(
        start.stderr_text().contains("svc.db-shm"),
        "{}",
        start.stderr_text()
    );
}
