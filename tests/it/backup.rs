//! Backups that are taken while a server runs, verified, and restored to the same answers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Webhook};
use harness::git::Repository;
use harness::git_server::Daemon;
use harness::pattern::dig;
use harness::process::{self, Output};
use harness::server::{Backend, Configuration, Server, Store};
use serde_json::json;
use svc_model::json::Json;

use crate::cli::{COMMAND_MAX, DEMO, at, done, json, refused, shows_no_secret, svc, svc_with};

on_both_backends! {
    a_restored_backup_gives_the_same_answers,
    a_backup_taken_while_a_server_stores_is_of_one_moment,
    a_restore_needs_an_empty_target_and_an_intact_backup,
    a_running_server_notices_a_restore_of_its_store,
    a_restore_gives_the_commands_that_repeat_the_decisions_it_undid,
    mirrors_that_are_gone_are_named,
}

/// What both services are asked for: pages, reports, and everything about one Session.
const QUESTIONS: [&str; 5] = [
    "/v1/facts",
    "/v1/sessions",
    "/query/session/svc-demo",
    "/v1/reports/model-outcomes?cohort_start=2026-01-01T00:00:00Z\
        &cohort_end=2026-01-31T00:00:00Z&as_of=2261-12-31T00:00:00Z",
    "/v1/reports/accepted-work-lifecycle?cohort_start=2026-01-01T00:00:00Z\
        &cohort_end=2026-01-31T00:00:00Z&as_of=2261-12-31T00:00:00Z",
];

fn answers(server: &Server) -> Vec<(u16, String)> {
    let ask = |question: &&str| {
        let reply = server.read(question);
        (reply.status, reply.text())
    };
    QUESTIONS.iter().map(ask).collect()
}

/// Runs `svc` for a server with another store.
fn svc_on(server: &Server, store: &Store, mirrors: &Path, arguments: &[&str]) -> Output {
    let mut command = server.shell();
    command
        .env("SVC_DATABASE_URL", store.url())
        .env("SVC_MIRROR_PATH", mirrors)
        .args(arguments);
    process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
}

/// Stores a Session, and a repository whose mirror exists.
fn planted(server: &Server) -> Daemon {
    done(&svc(server, &["demo", "--small"]));
    let repository = Repository::create();
    let base = repository.commit("base");
    let head = repository.commit("head");
    repository.stamp(&head, &[DEMO]);
    repository.push();
    let daemon = Daemon::start(repository.folder());
    let push = json!({
        "ref": "refs/heads/main", "before": base, "after": head, "deleted": false, "forced": false,
        "repository": {"id": 7, "full_name": "own/repo", "clone_url": daemon.url("forge.git")},
    });
    let reply = server.send(&Webhook::new("push", &push).to("/ingest/forge/push"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let start = Instant::now();
    let seen = || {
        let facts = server.read_json("/v1/facts");
        dig(&facts, "tables.session_commit_observations.total") == Some(&Json::from(1_i64))
    };
    while !seen() {
        assert!(start.elapsed() < COMMAND_MAX, "the note is seen");
        thread::sleep(Duration::from_millis(50));
    }
    daemon
}

pub(crate) fn path(server: &Server, name: &str) -> String {
    let mirrors = Path::new(server.variable("SVC_MIRROR_PATH").expect("a folder"));
    mirrors.with_file_name(name).display().to_string()
}

/// Returns the contents of a folder with their permissions. Files below it are private to this
/// account.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is there") {
        let entry = entry.expect("it is there");
        let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
        found.push((entry.file_name().into_string().expect("it is there"), mode));
        if entry.path().is_dir() {
            let below = modes(&entry.path());
            assert!(below.iter().all(|(_, mode)| *mode == 0o600), "{below:?}");
        }
    }
    found.sort();
    found
}

fn a_restored_backup_gives_the_same_answers(backend: Backend) {
    let Some(mut server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let _daemon = planted(&server);
    let folder = path(&server, "monday");
    let report = done(&svc(&server, &["backup", &folder]));
    let lines: Vec<&str> = report.lines().collect();
    assert!(
        lines[0].starts_with("backed up ") && lines[0].ends_with(&folder),
        "{report}"
    );
    assert!(
        !report.contains("@127.0.0.1") || !report.contains(":svc@"),
        "no password: {report}"
    );
    assert!(lines[1].starts_with("taken         20"), "{report}");
    assert!(
        lines[2].starts_with("organization  acme: 8 facts of 1 Sessions, up to 20"),
        "{report}"
    );
    assert_eq!(lines[3], "mirrors       1", "{report}");
    assert!(lines[4].starts_with("size          0."), "{report}");
    assert!(
        report.ends_with(&format!("\nnext:\n  svc verify {folder}\n")),
        "{report}"
    );
    assert_eq!(
        modes(Path::new(&folder)),
        [
            ("SHA256SUMS".to_owned(), 0o600),
            ("manifest.json".to_owned(), 0o600),
            ("mirrors".to_owned(), 0o700),
            ("tables".to_owned(), 0o700),
        ]
    );
    for of in [&["verify", &folder][..], &["verify"]] {
        let report = done(&svc(&server, of));
        assert!(
            report.starts_with("no damage found in ") && report.ends_with(" tables\n"),
            "{report}"
        );
    }

    let before = answers(&server);
    assert!(
        before.iter().all(|(status, _)| *status == 200),
        "{before:?}"
    );
    let transcript = done(&svc(&server, &["transcript", DEMO]));
    server.stop();
    // Into either backend, with the mirrors.
    for to in [Backend::Sqlite, Backend::Postgres] {
        let Some(store) = Store::create_empty(to) else {
            continue;
        };
        let mirrors = path(&server, &format!("mirrors-{to:?}"));
        let report = done(&svc_on(
            &server,
            &store,
            Path::new(&mirrors),
            &["restore", &folder],
        ));
        assert!(
            report.starts_with(&format!("restored {folder} into ")),
            "{report}"
        );
        let mut configuration = Configuration::default();
        configuration
            .variables
            .insert("SVC_MIRROR_PATH".to_owned(), mirrors);
        let restored = Server::start_on(&store, &configuration);
        assert_eq!(answers(&restored), before);
        assert_eq!(done(&svc(&restored, &["transcript", DEMO])), transcript);
        let status = json(&svc(&restored, &["mirror", "status", "--json"]));
        assert!(format!("{status:?}").contains("own/repo"), "{status:?}");
        done(&svc(&restored, &["verify"]));
    }
}

fn a_backup_taken_while_a_server_stores_is_of_one_moment(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let deliver = |number: u32| {
        let call = Call::new("busy", &format!("c-{number}"));
        let call = call.captured(
            &format!("531f97ae-8872-41e7-8b99-{number:012x}"),
            "2026-01-15T09:31:04.500000Z",
        );
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    };
    deliver(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                deliver(number);
            }
        });
        for number in 0..3 {
            let folder = path(&server, &format!("busy-{number}"));
            done(&svc(&server, &["backup", &folder]));
            done(&svc(&server, &["verify", &folder]));
        }
        done(&svc(&server, &["verify"]));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

fn a_restore_needs_an_empty_target_and_an_intact_backup(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    done(&svc(&server, &["demo", "--small"]));
    let folder = path(&server, "backup");
    let taken = json(&svc(&server, &["backup", &folder, "--json"]));
    assert_eq!(
        at(&taken, &["manifest", "format_version"]),
        &Json::from(1_i64)
    );
    let refused = |arguments: &[&str], code: &str| {
        let output = svc(&server, &[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = Json::parse(output.stderr_text().as_bytes()).expect("JSON");
        assert_eq!(
            at(&error, &["error", "code"]),
            &Json::from(code),
            "{arguments:?}"
        );
        output
    };
    refused(&["backup", &folder], "exists");
    refused(&["restore", &folder], "not_empty");
    refused(&["verify", "/nowhere"], "no_backup");
    refused(&["restore", "/nowhere"], "no_backup");

    // A file that was changed is named, and nothing is restored from it.
    let file = Path::new(&folder).join("tables/content.rows");
    let whole = fs::read(&file).expect("it is there");
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    fs::write(&file, flipped).expect("it is there");
    let found = refused(&["verify", &folder], "damaged");
    assert!(
        found.stdout_text().contains("\"file_damaged\""),
        "{}",
        found.stdout_text()
    );
    let restored = refused(&["restore", &folder, "--replace"], "damaged");
    let hint = format!("svc verify {folder}");
    assert!(
        restored.stderr_text().contains(&hint),
        "{}",
        restored.stderr_text()
    );
    fs::write(&file, whole).expect("it is there");
    done(&svc(&server, &["verify", &folder]));
    done(&svc(&server, &["verify"]));

    // The same holds for a backup whose list of digests is empty or gone.
    let sums = Path::new(&folder).join("SHA256SUMS");
    let digests = fs::read(&sums).expect("it is there");
    fs::write(&sums, "").expect("it is there");
    refused(&["verify", &folder], "damaged");
    refused(&["restore", &folder, "--replace"], "damaged");
    fs::remove_file(&sums).expect("it is there");
    refused(&["restore", &folder, "--replace"], "damaged");
    fs::write(&sums, digests).expect("it is there");
    done(&svc(&server, &["verify", &folder]));

    // The same holds for a backup whose manifest differs or is gone.
    let manifest = Path::new(&folder).join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("it is there");
    fs::write(
        &manifest,
        text.replace("\"svc_version\":\"", "\"svc_version\":\"9"),
    )
    .expect("it is there");
    let found = refused(&["verify", &folder], "damaged");
    assert!(
        found.stdout_text().contains("manifest.json"),
        "{}",
        found.stdout_text()
    );
    fs::write(
        &manifest,
        text.replace("\"format_version\":1", "\"format_version\":2"),
    )
    .expect("it is there");
    refused(&["restore", &folder], "other_version");
    fs::remove_file(&manifest).expect("it is there");
    refused(&["restore", &folder], "no_backup");
}

fn a_running_server_notices_a_restore_of_its_store(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    done(&svc(&server, &["demo", "--small"]));
    let folder = path(&server, "backup");
    done(&svc(&server, &["backup", &folder]));
    let deliver = |id: &str| {
        let call = Call::new("later", "c-1").captured(id, "2026-01-15T09:31:04.500000Z");
        server.deliver("/ingest/gateway", call.body()).status
    };
    let lost = "531f97ae-8872-41e7-8b99-d5840ab3cd2f";
    assert_eq!(deliver(lost), 200);
    let restored = svc(&server, &["restore", &folder, "--replace"]);
    assert_eq!(
        restored.status.code(),
        Some(0),
        "{}",
        restored.stderr_text()
    );
    match backend {
        Backend::Sqlite => {
            // The file that it has open is not the one that anybody else would find.
            assert!(restored.stderr_text().contains(".replaced-1"));
            // Each of these files may contain what was captured.
            let database = server.store().url().trim_start_matches("sqlite://");
            fs::create_dir(Path::new(database).with_file_name("kept.unfinished-7"))
                .expect("a folder");
            let erasing = svc(&server, &["erase", "--session", DEMO]).stderr_text();
            for named in ["-1, ", "-1-shm, ", "-1-wal; remove them yourself\n"] {
                let named = format!("svc.db.replaced{named}");
                assert!(erasing.contains(&named), "{named} in {erasing}");
            }
            assert!(erasing.contains("kept.unfinished-7, "), "{erasing}");
            assert_eq!(deliver(lost), 503);
            assert_eq!(server.read("/v1/facts").status, 503);
            let doctor = svc(&server, &["doctor"]).stdout_text();
            assert!(doctor.contains("restart the service"), "{doctor}");
        }
        Backend::Postgres => {
            let facts = server.read_json("/v1/facts");
            assert_eq!(
                dig(&facts, "sessions"),
                Some(&Json::from(1_i64)),
                "{facts:?}"
            );
            // The first delivery may discover this. Its sender repeats it.
            let start = Instant::now();
            while deliver(lost) != 200 {
                assert!(start.elapsed() < COMMAND_MAX);
            }
            let transcript = done(&svc(&server, &["transcript", "later"]));
            assert!(transcript.contains("c-1"), "{transcript}");
            done(&svc(&server, &["verify"]));
        }
    }
}

/// Decisions that are newer than a backup are missing after its restore. They are given as commands
/// that can be pasted, and the store is then as it was.
fn a_restore_gives_the_commands_that_repeat_the_decisions_it_undid(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    done(&svc(&server, &["demo", "--small"]));
    let reason = "--reason=it's \"wrong\"";
    let grant = |arguments: &[&str]| {
        let arguments = [&["grant"], arguments, &[reason, "--json"]].concat();
        let receipt = json(&svc(&server, &arguments));
        let id = dig(&receipt, "entry.grant_id").and_then(Json::as_str);
        id.expect("a grant").to_owned()
    };
    let change = |verb: &str, id: &str| done(&svc(&server, &[verb, "inference_calls", id, reason]));
    let calls = server.read_json(&format!("/v1/facts/session/{DEMO}/inference-calls"));
    let call = |place: usize| {
        let id = format!("inference_calls.{place}.inference_call_id");
        let id = dig(&calls, &id).and_then(Json::as_str);
        id.expect("a call").to_owned()
    };
    let (hidden, shown) = (call(0), call(1));
    let removed = grant(&["add", "crew", DEMO]);
    change("quarantine", &shown);
    let folder = path(&server, "earlier");
    done(&svc(&server, &["backup", &folder]));

    change("release", &shown);
    change("quarantine", &hidden);
    let rule = [
        "--user=o'hara",
        "--repo=demo/pager",
        "--since=2026-01-01T00:00:00Z",
    ];
    grant(&[&["add", "crew"], &rule[..]].concat());
    grant(&["remove", &removed]);
    grant(&["revoke", "lost"]);
    let restore = || {
        let restored = json(&svc(&server, &["restore", &folder, "--replace", "--json"]));
        let commands = dig(&restored, "undone").and_then(Json::as_array);
        let commands = commands.expect("a list").iter();
        let commands = commands.map(|command| command.as_str().expect("a command").to_owned());
        commands.collect::<Vec<_>>()
    };
    let undone = restore();
    assert_eq!(undone.len(), 5, "{undone:#?}");
    for line in &undone {
        let shell = server.shell();
        let variables = shell
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        let mut pasted = Command::new("bash");
        pasted.envs(variables).args(["-c", line]);
        let output = process::run(&mut pasted, b"", COMMAND_MAX).expect("the command ends");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{line}: {}",
            output.stderr_text()
        );
    }
    assert_eq!(
        restore(),
        undone,
        "what was pasted had put every decision in force again"
    );

    let restored = svc(&server, &["restore", &folder, "--replace"]);
    assert!(
        !restored.stderr_text().contains("decisions of operators"),
        "a store that has only what the backup has loses nothing: {restored:?}"
    );
}

/// The store knows which mirrors were fetched, so a wrong folder does not look like one without
/// mirrors.
fn mirrors_that_are_gone_are_named(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let _daemon = planted(&server);
    let mirrors = server.variable("SVC_MIRROR_PATH").expect("a folder");
    let elsewhere = path(&server, "elsewhere");
    let run = |mirrors: &str, arguments: &[&str]| {
        svc_with(&server, &[("SVC_MIRROR_PATH", mirrors)], arguments)
    };
    assert!(done(&run(mirrors, &["mirror", "status"])).contains("idle"));

    let folder = path(&server, "without");
    let output = run(&elsewhere, &["backup", &folder]);
    // The backup is made anyway, so its contents are printed too.
    assert_eq!(output.status.code(), Some(1));
    let stderr = output.stderr_text();
    shows_no_secret(&stderr);
    assert!(
        stderr.contains(&format!("not in {elsewhere}: own/repo\n")),
        "{stderr}"
    );
    assert!(
        output
            .stdout_text()
            .contains("mirrors       0; 1 not found")
    );
    let found = svc(&server, &["verify", &folder]);
    assert_eq!(found.status.code(), Some(1));
    let found = found.stdout_text();
    assert!(
        found.contains("github/github.com/7") && found.contains("mirror_absent"),
        "{found}"
    );

    let Some(store) = Store::create(Backend::Sqlite) else {
        return;
    };
    let restored = svc_on(
        &server,
        &store,
        Path::new(&elsewhere),
        &["restore", &folder],
    );
    let stderr = restored.stderr_text();
    assert!(
        stderr.contains("not in the backup (1)") && stderr.contains("svc mirror refresh own/repo"),
        "{stderr}"
    );

    // Leaving out all mirrors gives a message, and the backup that was asked for.
    let folder = path(&server, "rows");
    let output = run("", &["backup", &folder]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output.stderr_text().contains("--mirror-path"),
        "{}",
        output.stderr_text()
    );
    done(&svc(&server, &["verify", &folder]));
    fs::remove_file(Path::new(&folder).join("SHA256SUMS")).expect("it is there");
    let found = svc(&server, &["verify", &folder]).stdout_text();
    assert_eq!(
        found.lines().count(),
        2,
        "the heading and one finding: {found}"
    );
    assert!(found.contains("SHA256SUMS"), "{found}");

    // A file is not a folder of mirrors, whatever the command.
    let file = path(&server, "file");
    fs::write(&file, "").expect("it can be written");
    let error = refused(&run(&file, &["backup", &path(&server, "none")]), 1);
    assert!(
        error.contains("SVC_MIRROR_PATH must be a folder"),
        "{error}"
    );

    let status = run(&elsewhere, &["mirror", "status"]);
    assert!(
        status.stdout_text().contains("folder missing"),
        "{}",
        status.stdout_text()
    );
    assert!(status.stderr_text().contains("svc mirror refresh own/repo"));
    let doctor = run(&elsewhere, &["doctor"]).stdout_text();
    assert!(
        doctor.contains(&format!("fetched, but not in {elsewhere}: own/repo")),
        "{doctor}"
    );
}
