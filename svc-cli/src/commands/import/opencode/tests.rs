use fs_err as fs;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

const SCHEMA: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT,
        title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
        time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
        time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE account (id TEXT PRIMARY KEY, access_token TEXT);
    INSERT INTO account VALUES ('a', 'a secret');
    INSERT INTO session VALUES
        ('ses_2', 'p', 'ses_1', '/work/app', 'A title', '1.2.0', 1760000002000, 1760000003000),
        ('ses_1', 'p', NULL, '/work/app', 'A title', '1.2.0', 1760000001000, 1760000009000);
    INSERT INTO message VALUES
        ('msg_b', 'ses_1', 1760000001500, 0, '{\"role\":\"assistant\"}'),
        ('msg_a', 'ses_1', 1760000001100, 0, '{\"role\":\"user\",\"id\":\"x\"}'),
        ('msg_c', 'ses_1', 1760000001500, 0, 'no JSON'),
        ('msg_d', 'ses_2', 1760000002100, 0, '{\"role\":\"user\"}');
    INSERT INTO part VALUES
        ('prt_2', 'msg_a', 'ses_1', 1760000001102, 0, '{\"type\":\"text\",\"text\":\"two\"}'),
        ('prt_1', 'msg_a', 'ses_1', 1760000001101, 0, '{\"type\":\"text\",\"text\":\"one\"}'),
        ('prt_3', 'msg_b', 'ses_1', 1760000001501, 0, '[]');";

fn database(folder: &TempDir) -> (PathBuf, Connection) {
    let path = folder.path().join("opencode.db");
    let writer = Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    writer.execute_batch(SCHEMA).unwrap();
    (path, writer)
}

fn texts(store: &OpenCodeStore, session: &StoredSession, from: u64) -> Vec<String> {
    let lines = store.lines(session, from).unwrap();
    let bytes = lines.map(|line| line.unwrap().bytes.unwrap_or_default());
    bytes
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect()
}

fn ids(sessions: &[StoredSession]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

#[test]
fn a_database_is_read_as_lines_in_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _writer) = database(&folder);
    let store = OpenCodeStore::open(&path).unwrap();
    let sessions = store.sessions().unwrap();
    assert_eq!(ids(&sessions), ["ses_1", "ses_2"]);
    assert_eq!(sessions[0].directory.as_deref(), Some("/work/app"));
    assert_eq!(sessions[0].updated_at, 1_760_000_009_000);
    assert_eq!(
        texts(&store, &sessions[0], 0),
        [
            r#"{"session":{"id":"ses_1","directory":"/work/app","version":"1.2.0","time_created":1760000001000,"time_updated":1760000009000}}"#,
            r#"{"message":{"role":"user","id":"msg_a","time_created":1760000001100,"session_id":"ses_1"},"parts":[{"type":"text","text":"one","time_created":1760000001101,"id":"prt_1"},{"type":"text","text":"two","time_created":1760000001102,"id":"prt_2"}]}"#,
            r#"{"message":{"role":"assistant","time_created":1760000001500,"id":"msg_b","session_id":"ses_1"},"parts":[{"type":"malformed"}]}"#,
            "{",
        ]
    );
    assert!(texts(&store, &sessions[1], 0)[0].contains(r#""parent_id":"ses_1""#));
}

#[test]
fn lines_are_given_from_an_offset_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _writer) = database(&folder);
    let store = OpenCodeStore::open(&path).unwrap();
    let session = &store.sessions().unwrap()[0];
    let offsets: Vec<u64> = store
        .lines(session, 0)
        .unwrap()
        .map(|line| line.unwrap().offset)
        .collect();
    assert!(offsets.is_sorted() && offsets[0] == 0, "{offsets:?}");
    assert_eq!(texts(&store, session, offsets[2]).len(), 2);
    // A reader goes on behind the line that it read last.
    let behind = offsets[1] + 100_000;
    assert_eq!(texts(&store, session, behind).len(), 2);
    assert!(texts(&store, session, offsets[3] + 1).is_empty());
}

#[test]
fn other_tables_are_not_read_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(&folder);
    let OpenCodeStore::Database(database) = OpenCodeStore::open(&path).unwrap() else {
        panic!("a database");
    };
    for refused in [
        "SELECT access_token FROM account",
        "SELECT name FROM sqlite_master",
        "DELETE FROM session",
        "PRAGMA wal_checkpoint",
        "ATTACH 'x' AS x",
    ] {
        assert!(database.connection().prepare(refused).is_err(), "{refused}");
    }
    let log = folder.path().join("opencode.db-wal");
    let before = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    assert_eq!(database.sessions().unwrap().len(), 2);
    drop(database);
    assert_eq!((fs::read(&path).unwrap(), fs::read(&log).unwrap()), before);
    drop(writer);
}

#[test]
fn a_database_that_somebody_holds_is_copied_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(&folder);
    drop(writer);
    let writer = Connection::open(&path).unwrap();
    writer
        .pragma_update(None, "locking_mode", "exclusive")
        .unwrap();
    writer
        .execute("UPDATE session SET directory = '/work/new'", [])
        .unwrap();
    let store = OpenCodeStore::open(&path).unwrap();
    let sessions = store.sessions().unwrap();
    assert_eq!(sessions[0].directory.as_deref(), Some("/work/new"));
    let OpenCodeStore::Database(database) = &store else {
        panic!("a database");
    };
    let copy = PathBuf::from(database.connection().path().unwrap());
    assert_ne!(copy, path);
    assert!(copy.exists());
    drop(store);
    assert!(!copy.exists());
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    assert!(OpenCodeStore::open(&path).is_err());
    assert!(!path.exists());
    fs::write(&path, "not a database, but long enough to be looked at").unwrap();
    assert!(OpenCodeStore::open(&path).is_err());
}

fn write(folder: &TempDir, file: &str, content: &str) {
    let path = folder.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn a_tree_is_read_as_the_same_lines() {
    let folder = tempfile::tempdir().unwrap();
    for (file, content) in [
        (
            "session/p/ses_1.json",
            r#"{"id":"ses_1","version":"0.9","parentID":null,"directory":"/work/app","time":{"created":1760000001000,"updated":1760000009000}}"#,
        ),
        (
            "message/ses_1/b.json",
            r#"{"id":"msg_b","sessionID":"ses_1","role":"assistant","time":{"created":1760000001500}}"#,
        ),
        (
            "message/ses_1/a.json",
            r#"{"id":"msg_a","sessionID":"ses_1","role":"user","time":{"created":1760000001100}}"#,
        ),
        ("message/ses_0/c.json", "no JSON"),
        ("message/ses_1/notes.txt", "x"),
        (
            "part/msg_a/2.json",
            r#"{"id":"prt_1","type":"text","text":"one"}"#,
        ),
        (
            "part/msg_a/1.json",
            r#"{"id":"prt_2","type":"text","text":"two"}"#,
        ),
        (
            "part/flat.json",
            r#"{"id":"prt_3","messageID":"msg_b","type":"text","text":"x"}"#,
        ),
        ("migration", "1"),
    ] {
        write(&folder, file, content);
    }
    let store = OpenCodeStore::open(folder.path()).unwrap();
    let sessions = store.sessions().unwrap();
    assert_eq!(ids(&sessions), ["ses_0", "ses_1"], "one without a file");
    assert_eq!(
        texts(&store, &sessions[1], 0),
        [
            r#"{"session":{"id":"ses_1","directory":"/work/app","version":"0.9","time_created":1760000001000,"time_updated":1760000009000}}"#,
            r#"{"message":{"id":"msg_a","sessionID":"ses_1","role":"user","time":{"created":1760000001100},"session_id":"ses_1"},"parts":[{"id":"prt_1","type":"text","text":"one"},{"id":"prt_2","type":"text","text":"two"}]}"#,
            r#"{"message":{"id":"msg_b","sessionID":"ses_1","role":"assistant","time":{"created":1760000001500},"session_id":"ses_1"},"parts":[{"id":"prt_3","messageID":"msg_b","type":"text","text":"x"}]}"#,
        ]
    );
    assert_eq!(texts(&store, &sessions[0], 0)[1], "{");
}
