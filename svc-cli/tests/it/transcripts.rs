//! Transcripts of agents: what is sent of them, and what never leaves this machine.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use svc_client::model::time::Instant as Moment;
use svc_client::testing::{Answer, FakeServer, Received};
use tempfile::TempDir;

use super::first_use::svc;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A home with a folder of work and an agent's transcripts.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        for folder in ["app/src", "secret"] {
            fs::create_dir_all(home.at(folder)).expect("a folder");
        }
        home
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        self.at(path).display().to_string()
    }

    fn transcript(&self, session: &str) -> PathBuf {
        let path = self.at(&format!(".claude/projects/-app/{session}.jsonl"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        path
    }

    /// Writes a Session of some answers, which is not being written to any more.
    fn write(&self, session: &str, cwd: &str, answers: u32) -> PathBuf {
        let path = self.transcript(session);
        fs::write(&path, self.turns(session, cwd, 1..=answers)).expect("a file");
        path
    }

    fn turns(&self, session: &str, cwd: &str, answers: impl Iterator<Item = u32>) -> String {
        let cwd = self.text(cwd);
        let turn = |number: u32| {
            let parent = match number {
                1 => "null".to_owned(),
                _ => format!("\"{session}-a{}\"", number - 1),
            };
            let common = format!(
                r#""sessionId":"{session}","cwd":"{cwd}","version":"2.1.0","isSidechain":false"#
            );
            format!(
                concat!(
                    r#"{{"type":"user","uuid":"{s}-u{n}","parentUuid":{parent},"timestamp":"2026-11-02T10:00:{n:02}Z",{common},"#,
                    r#""message":{{"role":"user","content":"question {n}"}}}}"#,
                    "\n",
                    r#"{{"type":"assistant","uuid":"{s}-a{n}","parentUuid":"{s}-u{n}","timestamp":"2026-11-02T10:00:{n:02}.5Z",{common},"#,
                    r#""requestId":"req-{s}-{n}","message":{{"role":"assistant","id":"msg-{s}-{n}","model":"claude-opus-4-1","#,
                    r#""content":[{{"type":"text","text":"answer {n}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":5,"output_tokens":7}}}}}}"#,
                    "\n"
                ),
                s = session,
                n = number,
                parent = parent,
                common = common,
            )
        };
        answers.map(turn).collect()
    }

    fn svc(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = svc(self.0.path());
        command.args(arguments).env("SVC_URL", url);
        command.env("SVC_TOKEN", TOKEN);
        command
    }

    fn run(&self, url: &str, arguments: &[&str]) -> Output {
        self.svc(url, arguments).output().expect("svc runs")
    }

    /// Runs a hook, which must not fail, say nothing, and not take long. Returns what it complains of.
    fn hook(&self, url: &str, arguments: &[&str], input: &str) -> String {
        let mut command = self.svc(url, &["hook", "transcript", "claude-code"]);
        let begun = Instant::now();
        let mut hook = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("svc starts");
        let stdin = hook.stdin.take().expect("it is piped");
        // A hook that reads nothing has closed it.
        drop((&stdin).write_all(input.as_bytes()));
        drop(stdin);
        let output = hook.wait_with_output().expect("svc runs");
        let took = begun.elapsed();
        let complaint = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(0), "{complaint}");
        assert!(output.stdout.is_empty());
        assert!(complaint.lines().count() <= 1, "{complaint}");
        assert!(took < Duration::from_secs(3), "{took:?}");
        complaint
    }

    fn input(&self, event: &str, transcript: &Path, answer: &str) -> String {
        format!(
            r#"{{"session_id":"s","transcript_path":"{}","cwd":"{}","hook_event_name":"{event}","last_assistant_message":"{answer}"}}"#,
            transcript.display(),
            self.text("app"),
        )
    }

    /// Returns the bodies that wait in the outbox, in order.
    fn kept(&self) -> Vec<Value> {
        let outboxes = self.at(".local/share/svc/outbox");
        let Ok(outboxes) = fs::read_dir(outboxes) else {
            return Vec::new();
        };
        let outboxes = outboxes.flatten().map(|outbox| fs::read_dir(outbox.path()));
        let entries = outboxes.flat_map(|outbox| outbox.expect("a folder").flatten());
        let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "delivery"));
        files.sort();
        let bodies = files.iter().map(|file| {
            let text = fs::read_to_string(file).expect("a file");
            let (_, body) = text.split_once('\n').expect("a header");
            serde_json::from_str(body).expect("JSON")
        });
        bodies.collect()
    }
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().append(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("room");
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(output)))
}

fn body(request: &Received) -> Value {
    assert_eq!(request.target, "/ingest/calls");
    serde_json::from_slice(&request.body).expect("JSON")
}

/// Returns the response ids of the calls of a request, each after which it comes.
fn calls(body: &Value) -> Vec<String> {
    let calls = body["calls"].as_array().expect("calls").iter();
    let call = |call: &Value| {
        let id = call["response_id"].as_str().expect("an id");
        match call["input"]["after"].as_str() {
            Some(after) => format!("{id} after {after}"),
            None => id.to_owned(),
        }
    };
    calls.map(call).collect()
}

fn sent(server: &FakeServer) -> Vec<Vec<String>> {
    let received = server.received();
    received
        .iter()
        .map(|request| calls(&body(request)))
        .collect()
}

/// Returns whether anybody has connected.
fn was_called(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).expect("a socket");
    listener.accept().is_ok()
}

fn stored(count: usize) -> Vec<Answer> {
    vec![Answer::stored(); count]
}

#[test]
fn nothing_is_sent_unless_a_folder_is_chosen() {
    let home = Home::new();
    let path = home.write("s", "app", 2);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let shown = home.run(&url, &["import", "claude-code"]);
    let text = printed(&shown);
    assert_eq!(shown.status.code(), Some(0), "{text}");
    assert!(text.contains("nothing was sent"), "{text}");
    let chosen = format!("svc import claude-code --cwd {}", home.text("app"));
    assert!(text.contains(&chosen), "{text}");
    assert!(text.contains("svc import claude-code --all"), "{text}");
    let shown = json(&home.run(&url, &["import", "claude-code", "--json"]));
    let project = &shown["projects"][0];
    assert_eq!(project["cwd"], home.text("app"));
    for (member, value) in [("files", 1), ("sessions", 1), ("calls", 2)] {
        assert_eq!(project[member], value, "{member}");
    }
    assert_eq!(project["first"], "2026-11-02T10:00:01.500000Z");
    let dry = ["import", "claude-code", "--all", "--dry-run"];
    assert_eq!(home.run(&url, &dry).status.code(), Some(0));
    home.hook(&url, &[], &home.input("Stop", &path, "answer 2"));
    let elsewhere = home.text("secret");
    home.hook(
        &url,
        &["--cwd", &elsewhere],
        &home.input("Stop", &path, "answer 2"),
    );
    assert!(!was_called(&listener));
    assert_eq!(home.kept(), Vec::<Value>::new());
    assert!(!home.at(".local/state").exists(), "nothing is noted either");
}

#[test]
fn only_sessions_of_the_chosen_folders_are_sent() {
    let home = Home::new();
    std::os::unix::fs::symlink(home.at("secret"), home.at("app/out")).expect("a link");
    home.write("in", "app", 1);
    home.write("below", "app/src", 1);
    home.write("gone", "app/removed", 1);
    home.write("out", "app/out", 1);
    home.write("other", "secret", 1);
    let server = FakeServer::start(stored(9));
    let folder = home.text("app");
    let import = ["import", "claude-code", "--cwd", &folder, "--json"];
    let done = home.run(&server.url(), &import);
    assert_eq!(done.status.code(), Some(0), "{}", printed(&done));
    let received = server.received();
    let mut sessions: Vec<_> = received
        .iter()
        .map(|request| body(request)["session_id"].clone())
        .collect();
    sessions.sort_by_key(ToString::to_string);
    assert_eq!(sessions, ["below", "gone", "in"]);
    assert_eq!(body(&received[0])["user_id"], Value::Null);
    let source = &body(&received[0])["source"];
    assert_eq!(source["kind"], "transcript");
    assert_eq!(source["agent"], "claude-code");
    assert_eq!(source["agent_version"], "2.1.0");
    assert_eq!(body(&received[0])["reader"]["lines"], 2);
    assert_eq!(json(&done)["projects"].as_array().expect("rows").len(), 3);
}

#[test]
fn only_what_is_new_is_sent() {
    let home = Home::new();
    let path = home.write("s", "app", 2);
    let server = FakeServer::start(stored(9));
    let import = || {
        let done = home.run(&server.url(), &["import", "claude-code", "--all"]);
        assert_eq!(done.status.code(), Some(0), "{}", printed(&done));
        printed(&done)
    };
    import();
    let first = ["msg-s-1", "msg-s-2 after msg-s-1"];
    assert_eq!(sent(&server), [first]);
    assert_eq!(import(), "nothing new\n");
    assert_eq!(sent(&server).len(), 1, "it was read before");
    // Half a line is left for the next time.
    let third = home.turns("s", "app", 3..=3);
    let (half, rest) = third.split_at(third.len() - 20);
    append(&path, half);
    import();
    assert_eq!(sent(&server).len(), 1);
    append(&path, rest);
    import();
    assert_eq!(sent(&server)[1..], [["msg-s-3 after msg-s-2"]]);
    let full = ["import", "claude-code", "--all", "--full"];
    assert_eq!(home.run(&server.url(), &full).status.code(), Some(0));
    assert_eq!(sent(&server)[2].len(), 3);
    // A shorter file is another one.
    home.write("s", "app", 1);
    import();
    assert_eq!(sent(&server)[3..], [["msg-s-1"]]);
}

#[test]
fn a_transcript_is_sent_again_if_the_service_lost_its_beginning() {
    let home = Home::new();
    let path = home.write("s", "app", 2);
    let lacking = r#"{"stored":0,"duplicates":0,"skipped":{},"rejected":{"after_unknown":1}}"#;
    let server = FakeServer::start([
        Answer::stored(),
        Answer::text(200, lacking),
        Answer::stored(),
    ]);
    let import = ["import", "claude-code", "--all", "--json"];
    home.run(&server.url(), &import);
    append(&path, &home.turns("s", "app", 3..=3));
    let done = home.run(&server.url(), &import);
    assert_eq!(done.status.code(), Some(0), "{}", printed(&done));
    let whole = ["msg-s-1", "msg-s-2 after msg-s-1", "msg-s-3 after msg-s-2"];
    assert_eq!(sent(&server)[2], whole);
    assert_eq!(
        json(&done)["projects"][0]["rejected"],
        serde_json::json!({})
    );
}

#[test]
fn what_cannot_be_imported_is_named() {
    let home = Home::new();
    home.write("s", "app", 1);
    let rejected = r#"{"stored":0,"duplicates":0,"skipped":{},"rejected":{"after_erased":1}}"#;
    let server = FakeServer::start([Answer::text(200, rejected)]);
    let absent = home.text("absent.jsonl");
    let folder = home.text(".claude/projects");
    let import = ["import", "claude-code", "--all", &*absent, &*folder];
    let done = home.run(&server.url(), &import);
    let text = printed(&done);
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains("after_erased 1"), "{text}");
    assert!(
        text.contains("not imported: ") && text.contains(&absent),
        "{text}"
    );
    let done = home.run(&server.url(), &["import", "claude-code", "--all", "--full"]);
    assert_eq!(done.status.code(), Some(1), "the service is gone");
    assert!(printed(&done).contains("error:"), "{}", printed(&done));
}

#[test]
fn an_answer_that_may_go_on_is_left_until_it_is_finished_or_nothing_was_written_for_an_hour() {
    let home = Home::new();
    let open = |text: &str| text.replace(r#""stop_reason":"end_turn""#, r#""stop_reason":null"#);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = i64::try_from(since.expect("a time").as_micros()).expect("a time");
    let at = |minutes: i64| {
        let moment = Moment::from_microseconds(since - minutes * 60_000_000);
        moment.expect("a time").to_string()[..19].to_owned()
    };
    let turns = open(&home.turns("s", "app", 1..=2));
    let path = home.transcript("s");
    fs::write(&path, turns.replace("2026-11-02T10:00:02", &at(55))).expect("a file");
    let server = FakeServer::start(stored(9));
    let import = || home.run(&server.url(), &["import", "claude-code", "--all"]);
    import();
    assert_eq!(sent(&server), [["msg-s-1"]]);
    append(&path, &home.turns("s", "app", 3..=3));
    import();
    let next = ["msg-s-2 after msg-s-1", "msg-s-3 after msg-s-2"];
    assert_eq!(sent(&server)[1..], [next]);
    // Of a Session that has been at rest, the last answer is sent too.
    let old = open(&home.turns("t", "app", 1..=1));
    let old = old.replace("2026-11-02T10:00:01", &at(65));
    fs::write(home.transcript("t"), old).expect("a file");
    import();
    assert_eq!(sent(&server)[2..], [["msg-t-1"]]);
}

#[test]
fn a_hook_keeps_what_is_new() {
    let home = Home::new();
    let path = home.write("s", "app", 1);
    let folder = home.text("app");
    // No service is there.
    let url = "http://127.0.0.1:9";
    let hook = |event: &str, answer: &str| {
        home.hook(url, &["--cwd", &folder], &home.input(event, &path, answer))
    };
    assert_eq!(hook("PreToolUse", "answer 1"), "");
    assert_eq!(home.kept().len(), 0);
    assert_eq!(hook("Stop", "answer 1"), "");
    assert_eq!(hook("Stop", "answer 1"), "");
    let kept = |place: usize| calls(&home.kept()[place]);
    assert_eq!(home.kept().len(), 1);
    assert_eq!(kept(0), ["msg-s-1"]);
    let open = |text: &str| text.replace(r#""stop_reason":"end_turn""#, r#""stop_reason":null"#);
    append(&path, &open(&home.turns("s", "app", 2..=2)));
    hook("Stop", "answer 3");
    assert_eq!(home.kept().len(), 1, "the last answer is not there yet");
    hook("SessionEnd", "answer 3");
    assert_eq!(kept(1), ["msg-s-2 after msg-s-1"]);
}

#[test]
fn what_a_hook_keeps_reaches_the_service() {
    let home = Home::new();
    let path = home.write("s", "app", 1);
    let server = FakeServer::start(stored(2));
    let input = home.input("Stop", &path, "answer 1");
    home.hook(&server.url(), &["--all"], &input);
    let begun = Instant::now();
    while server.received().is_empty() && begun.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(sent(&server), [["msg-s-1"]]);
}

#[test]
fn two_hooks_at_once_keep_an_answer_once() {
    let home = Home::new();
    let path = home.write("s", "app", 1);
    let input = home.input("Stop", &path, "answer 1");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| home.hook("http://127.0.0.1:9", &["--all"], &input));
        }
    });
    assert_eq!(home.kept().len(), 1);
}

#[test]
fn a_hook_that_cannot_keep_anything_does_not_disturb_the_agent() {
    let home = Home::new();
    let path = home.write("s", "app", 1);
    let url = "http://127.0.0.1:9";
    let input = home.input("Stop", &path, "answer 1");
    let complaint = |arguments: &[&str], input: &str| home.hook(url, arguments, input);
    assert!(!complaint(&["--all"], "not JSON").is_empty());
    assert!(!complaint(&["--nonsense"], &input).is_empty());
    let absent = home.input("Stop", &home.at("absent.jsonl"), "");
    assert!(complaint(&["--all"], &absent).contains("absent.jsonl"));
    // The state cannot be written.
    fs::remove_dir_all(home.at(".local/state")).expect("it is there");
    fs::write(home.at(".local/state"), "").expect("a file");
    assert!(!complaint(&["--all"], &input).is_empty());
    fs::remove_file(home.at(".local/state")).expect("it is there");
    // The outbox is locked by somebody who does not let go.
    assert_eq!(complaint(&["--all"], &input), "");
    let outbox = fs::read_dir(home.at(".local/share/svc/outbox")).expect("a folder");
    let outbox = outbox.flatten().next().expect("an outbox").path();
    let writers = File::open(outbox.join("writers")).expect("the lock");
    writers.lock().expect("nobody has it for long");
    append(&path, &home.turns("s", "app", 2..=2));
    let input = home.input("Stop", &path, "answer 2");
    assert!(!complaint(&["--all"], &input).is_empty());
    drop(writers);
    // The outbox is full: the name of a delivery says how large it is.
    let full = "00000000000000000009-2000000000-531f97ae-8872-41e7-8b99-d5840ab3cd2f.delivery";
    let full = outbox.join(full);
    fs::write(&full, "").expect("a file");
    assert!(complaint(&["--all"], &input).contains("exceed its limits"));
    fs::remove_file(&full).expect("it is there");
    assert_eq!(complaint(&["--all"], &input), "");
    assert_eq!(calls(&home.kept()[1]), ["msg-s-2 after msg-s-1"]);
}

#[test]
fn the_hook_of_a_subagent_reads_its_own_transcript() {
    let home = Home::new();
    let main = home.write("s", "app", 2);
    let folder = home.at(".claude/projects/-app/s/subagents");
    fs::create_dir_all(&folder).expect("a folder");
    let own = folder.join("agent-1.jsonl");
    let turns = home.turns("s", "app", 1..=1);
    fs::write(
        &own,
        turns.replace("msg-s", "msg-own").replace(":false", ":true"),
    )
    .expect("a file");
    let input = home.input("SubagentStop", &main, "answer 1");
    let own = format!("\"agent_transcript_path\":\"{}\",\"cwd\"", own.display());
    let input = input.replace("\"cwd\"", &own);
    assert_eq!(home.hook("http://127.0.0.1:9", &["--all"], &input), "");
    assert_eq!(home.kept().len(), 1);
    assert_eq!(calls(&home.kept()[0]), ["msg-own-1"]);
}

#[test]
fn the_hooks_name_their_folder() {
    let home = Home::new();
    let install = |arguments: &[&str]| {
        let mut command = home.svc("http://127.0.0.1:9", &["install"]);
        command.args(arguments).current_dir(home.at("app"));
        command.output().expect("svc runs")
    };
    let printed = json(&install(&["codex-transcripts", "--cwd", "src"]));
    let command = &printed["hooks"]["Stop"][0]["hooks"][0]["command"];
    let folder = fs::canonicalize(home.at("app")).expect("a folder");
    let folder = folder.join("src").display().to_string();
    assert_eq!(
        *command,
        format!("svc hook transcript codex --cwd {folder}")
    );
    let at = [
        "claude-code-transcripts",
        "--cwd",
        "/a b",
        "--url",
        "localhost:1",
    ];
    let printed = json(&install(&at));
    let command = &printed["hooks"]["SessionEnd"][0]["hooks"][0]["command"];
    let hook = "svc hook transcript claude-code --cwd '/a b' --url localhost:1";
    assert_eq!(*command, hook);
    for wrong in [&["codex-transcripts"][..], &["codex", "--cwd", "/a"]] {
        assert_eq!(install(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
