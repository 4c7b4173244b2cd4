//! Several processes use one folder, and some of them are killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use svc_client::testing::{Answer, FakeServer};
use svc_client::{Client, OutboxError};

use super::{TOKEN, call, client, files_ending, number, open, outbox};

/// The variable by which a child learns its role.
const ROLE: &str = "SVC_TEST_OUTBOX_ROLE";
const FOLDER: &str = "SVC_TEST_OUTBOX_FOLDER";
const URL: &str = "SVC_TEST_OUTBOX_URL";

/// This test program, started again in one of the roles below.
struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, folder: &Path, url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "outbox::processes::the_part_of_a_child"])
            .args(["--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .env(URL, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Returns the next line that the child printed, as a number.
    fn next_number(&mut self) -> usize {
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            if let Some(number) = line.trim().strip_prefix("put ") {
                return number.parse().unwrap();
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
#[ignore = "it is started by the other tests of this module"]
fn the_part_of_a_child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let outbox = open(Path::new(&std::env::var_os(FOLDER).unwrap()));
    if role == "sender" {
        let client = Client::builder(std::env::var(URL).unwrap())
            .token(TOKEN)
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(outbox.drain(&client)).unwrap();
        return;
    }
    // A writer puts deliveries without end, and prints each one that it has put.
    let first: usize = role.parse().unwrap();
    for number in first.. {
        outbox.put_blocking(call(number)).unwrap();
        let mut stdout = std::io::stdout();
        writeln!(stdout, "put {number}").unwrap();
        stdout.flush().unwrap();
    }
}

#[tokio::test]
async fn completed_puts_survive_a_kill_and_incomplete_ones_leave_nothing() {
    let (_folder, outbox) = outbox();
    let mut put = BTreeSet::new();
    let mut writers: Vec<_> = (1..=3)
        .map(|writer| Process::start(&(writer * 1_000_000).to_string(), outbox.folder(), ""))
        .collect();
    for _ in 0..40 {
        put.extend(writers.iter_mut().map(Process::next_number));
    }
    for mut writer in writers {
        // It is killed at an arbitrary point. What it printed until then is what it had put.
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
        let rest = writer.stdout.lines().map_while(Result::ok);
        put.extend(rest.filter_map(|line| line.strip_prefix("put ")?.parse::<usize>().ok()));
    }

    let again = open(outbox.folder());
    assert_eq!(files_ending(outbox.folder(), ".partial"), [""; 0]);
    let waiting = again.status().unwrap().waiting;
    let server = FakeServer::start(vec![Answer::stored(); 10_000]);
    let drained = again.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (waiting, 0));
    let received: Vec<_> = server.received().iter().map(number).collect();
    let distinct: BTreeSet<_> = received.iter().copied().collect();
    assert_eq!(distinct.len(), received.len(), "each was sent once");
    assert!(put.is_subset(&distinct), "nothing was lost");
    // Each of them may have been killed after a put, before it printed the delivery.
    assert!(distinct.len() <= put.len() + 3);
    for writer in 1..=3 {
        let own: Vec<_> = received
            .iter()
            .filter(|number| **number / 1_000_000 == writer)
            .collect();
        assert!(own.is_sorted(), "each writer's order is kept");
    }
}

#[tokio::test]
async fn only_one_process_sends_and_another_takes_over_after_its_death() {
    let (_folder, outbox) = outbox();
    outbox.put(call(1)).await.unwrap();
    let server = FakeServer::start([Answer::silent(), Answer::stored()]);
    let sender = Process::start("sender", outbox.folder(), &server.url());
    while server.received().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let busy = outbox.drain(&client(&server)).await;
    assert!(matches!(busy, Err(OutboxError::Busy)));
    // A sender does not hold up writers.
    outbox.put(call(2)).await.unwrap();
    sender.kill();
    let server = FakeServer::start([Answer::stored(), Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(drained.acknowledged, 2);
}
