use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::{Deadline, Passed};
use svc_engine_fact::testing::processes::group_is_gone;

use super::*;
use crate::folder::MirrorFolder;

fn shell(script: &str) -> Command {
    let mut command = supervised("sh", None);
    command.args(["-c", script]);
    command
}

fn long() -> Allowance {
    Allowance::until(Deadline::after(Duration::from_secs(30)))
}

fn everything(output: &mut dyn BufRead) -> io::Result<String> {
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    Ok(text)
}

/// Runs a script that prints the id of its process group first, which is that of the group's
/// leader. Returns the id and the result of the run.
fn group_of(script: &str, allowance: &Allowance) -> (Pid, Result<(), ProcessError>) {
    let mut group = None;
    let result = run(&mut shell(script), Input::Nothing, allowance, |output| {
        let mut line = String::new();
        output.read_line(&mut line)?;
        group = Some(line.trim().parse().unwrap());
        everything(output).map(drop)
    });
    (Pid::from_raw(group.unwrap()).unwrap(), result)
}

fn is_gone(group: Pid) -> bool {
    group_is_gone(group.as_raw_pid().cast_unsigned())
}

#[test]
fn input_is_written_and_output_is_read() {
    let input = vec![b'x'; 1_000_000];
    let output = run(
        &mut shell("cat"),
        Input::Bytes(input.clone()),
        &long(),
        everything,
    );
    assert_eq!(output.unwrap().as_bytes(), input);
    let ignored = run(&mut shell("true"), Input::Bytes(input), &long(), everything);
    assert_eq!(ignored.unwrap(), "");
}

#[test]
fn a_failed_program_is_reported_with_its_complaint() {
    let mut failing = shell("echo half; yes why | head -c 100000 >&2; exit 3");
    let failed = run(&mut failing, Input::Nothing, &long(), everything);
    match failed {
        Err(ProcessError::Failed { complaint }) => {
            assert!(complaint.starts_with("why\n"));
            assert_eq!(complaint.len(), COMPLAINT_BYTES_MAX);
        }
        other => panic!("{other:?}"),
    }
    let missing = run(
        &mut supervised("/nowhere/at/all", None),
        Input::Nothing,
        &long(),
        everything,
    );
    assert!(matches!(missing, Err(ProcessError::Start(_))));
    let refused = run(&mut shell("echo odd"), Input::Nothing, &long(), |_| {
        Err::<(), _>(io::ErrorKind::InvalidData.into())
    });
    assert!(matches!(refused, Err(ProcessError::Output(_))));
}

#[test]
fn a_program_and_its_children_are_killed_at_the_deadline() {
    let start = Instant::now();
    let allowance = Allowance::until(Deadline::after(Duration::from_millis(200)));
    let script = "echo $PPID; sleep 600 & sleep 600 & (sleep 600 | cat) & wait";
    let (group, result) = group_of(script, &allowance);
    assert!(matches!(
        result,
        Err(ProcessError::Stopped(StopReason::Passed(Passed::Time)))
    ));
    assert!(is_gone(group));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_program_that_will_not_end_is_killed() {
    let allowance = Allowance::until(Deadline::after(Duration::from_millis(200)));
    let script = "trap '' TERM; echo $PPID; while true; do sleep 1; done";
    let (group, result) = group_of(script, &allowance);
    assert!(matches!(
        result,
        Err(ProcessError::Stopped(StopReason::Passed(Passed::Time)))
    ));
    assert!(is_gone(group));
}

#[test]
fn a_program_that_closes_its_output_and_keeps_running_is_killed() {
    let allowance = Allowance::until(Deadline::after(Duration::from_millis(300)));
    let (group, result) = group_of("echo $PPID; exec >&- 2>&-; exec sleep 600", &allowance);
    assert!(matches!(
        result,
        Err(ProcessError::Stopped(StopReason::Passed(Passed::Time)))
    ));
    assert!(is_gone(group));
}

#[test]
fn work_that_is_cancelled_ends_at_once() {
    let deadline = Deadline::after(Duration::from_mins(10));
    let allowance = Allowance::until(deadline.clone());
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            deadline.cancel();
        });
        let (group, result) = group_of("echo $PPID; exec sleep 600", &allowance);
        assert!(matches!(
            result,
            Err(ProcessError::Stopped(StopReason::Passed(Passed::Cancelled)))
        ));
        assert!(is_gone(group));
    });
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_helper_that_outlives_the_program_is_killed() {
    let (group, result) = group_of("echo $PPID; sleep 600 >/dev/null 2>&1 &", &long());
    assert!(result.is_ok(), "{result:?}");
    assert!(is_gone(group));
}

/// Set in the process that acts as the server that the test kills.
const SERVER: &str = "SVC_TEST_SERVER_TO_KILL";

#[test]
fn a_program_ends_with_its_server_even_if_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let test = "process::tests::the_server_that_is_killed";
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(SERVER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.path().join("group");
    let start = Instant::now();
    let group = loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(group) = text.trim().parse::<u32>() {
            break group;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "it starts");
        thread::sleep(Duration::from_millis(5));
    };
    let mirrors = mirrors(folder.path());
    let lifetime = Lifetime::parse("own/name").unwrap();
    let no_time = Allowance::until(Deadline::after(Duration::ZERO));
    assert!(mirrors.lock(&lifetime, &no_time).is_err());
    let group = Pid::from_raw(group.cast_signed()).unwrap();
    assert!(rustix::process::test_kill_process_group(group).is_ok());
    // SIGKILL cannot be handled.
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(is_gone(group));
    mirrors.lock(&lifetime, &long()).unwrap();
}

/// The server of the test above. It holds the lock of a mirror for a program that ignores requests
/// to end, as does the program's helper.
#[test]
fn the_server_that_is_killed() {
    let Some(folder) = std::env::var_os(SERVER) else {
        return;
    };
    let folder = std::path::PathBuf::from(folder);
    let lifetime = Lifetime::parse("own/name").unwrap();
    let lock = mirrors(&folder).lock(&lifetime, &long()).unwrap();
    let script = "trap '' TERM; sleep 600 & echo $PPID >new; mv new group; \
                  while true; do sleep 600; done";
    let mut program = shell(script);
    program.current_dir(&folder);
    let held = Input::Held(lock.share().unwrap());
    let ended = run(&mut program, held, &long(), everything);
    panic!("it is killed before it ends: {ended:?}");
}

fn mirrors(folder: &std::path::Path) -> MirrorFolder {
    MirrorFolder::new(folder, svc_model::id::OrgId::new("acme").unwrap())
}

#[test]
fn a_program_that_takes_too_much_memory_fails() {
    let script = "head -c 400000000 /dev/zero | tail -n 1 | wc -c";
    let mut hungry = supervised("sh", Some(64 * 1024 * 1024));
    hungry.args(["-c", script]);
    let answer = run(&mut hungry, Input::Nothing, &long(), everything);
    assert_eq!(answer.unwrap().trim(), "0");
}

#[test]
fn a_conversation_lasts_until_the_program_ends() {
    let script = "while read -r line; do [ $line = end ] && exit 3; echo \"<$line>\"; done";
    let mut conversation = Conversation::start(&mut shell(script), &long()).unwrap();
    let line = |output: &mut dyn BufRead| {
        let mut line = String::new();
        match output.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    };
    for number in 0..100 {
        let question = format!("{number}\n");
        let answer = conversation.ask(question.as_bytes(), line).unwrap();
        assert_eq!(answer, format!("<{number}>\n"));
    }
    for question in ["end\n", "after\n"] {
        let ended = conversation.ask(question.as_bytes(), line);
        assert!(
            matches!(ended, Err(ProcessError::Failed { .. })),
            "{ended:?}"
        );
    }
    let deadline = Deadline::after(Duration::from_millis(300));
    let mut silent =
        Conversation::start(&mut shell("sleep 600"), &Allowance::until(deadline)).unwrap();
    let ended = silent.ask(b"?\n", line);
    assert!(
        matches!(
            ended,
            Err(ProcessError::Stopped(StopReason::Passed(Passed::Time)))
        ),
        "{ended:?}"
    );
    let group = silent.running.group;
    drop(silent);
    assert!(is_gone(group));
}

#[test]
fn a_held_lock_lasts_as_long_as_the_group() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lock = File::open(file.path()).unwrap();
    lock.lock().unwrap();
    let held = Input::Held(lock);
    run(&mut shell("cat"), held, &long(), |output| {
        let other = File::open(file.path())?;
        assert!(other.try_lock().is_err());
        everything(output)
    })
    .unwrap();
    // A program that another thread starts holds every open file for a moment.
    let freed = (0..1_000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        File::open(file.path()).unwrap().try_lock().is_ok()
    });
    assert!(freed);
}
