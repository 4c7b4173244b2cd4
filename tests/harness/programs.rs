//! The programs under test, `svc-server` and `svc`. They are built if they are not up to date.
//!
//! Cargo builds the programs of a package only for that package's own tests. So a plain `cargo test
//! --workspace` would run against programs that are absent or, worse, old. Therefore the harness
//! makes Cargo build them once per test run, next to the running test. `SVC_BIN_DIR` names a folder
//! of finished programs instead, such as a release build; then nothing is built.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variable that names the folder of finished programs.
pub const VARIABLE: &str = "SVC_BIN_DIR";

/// The server alone.
pub const SERVER: &str = "svc-server";
/// The operator's shell.
pub const SHELL: &str = "svc";

/// Returns the path of a program.
pub fn path(program: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| match std::env::var_os(VARIABLE) {
        Some(folder) => std::path::absolute(folder).expect("the folder of the programs"),
        None => build(),
    });
    let path = folder.join(program);
    assert!(
        path.exists(),
        "there is no {}; {VARIABLE} names another folder",
        path.display()
    );
    path
}

/// Returns the search path of somebody who has installed the programs.
pub fn search_path() -> OsString {
    let folder = path(SHELL).parent().map(Path::to_owned);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = folder.into_iter().chain(std::env::split_paths(&others));
    std::env::join_paths(folders).expect("no folder has a colon in its name")
}

/// Builds the programs into the folder of the running test, and returns that folder.
fn build() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("target/PROFILE/deps/TEST");
    let mut stamp = stamp(folder);
    // A runner that starts a process for each test gives them all one id, so that only the first
    // one builds.
    let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string());
    let mut built_by = String::new();
    stamp
        .read_to_string(&mut built_by)
        .expect("to read the stamp");
    if built_by != run {
        run_cargo(folder);
        stamp
            .set_len(0)
            .and_then(|()| stamp.rewind())
            .expect("to clear the stamp");
        stamp.write_all(run.as_bytes()).expect("to write the stamp");
    }
    folder.to_owned()
}

/// Opens and locks the file that records which run built the programs.
fn stamp(folder: &Path) -> File {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let stamp = options
        .open(folder.join(".programs-under-test"))
        .expect("the stamp");
    stamp.lock().expect("the lock of the stamp");
    stamp
}

fn run_cargo(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let target = folder.parent().expect("the target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Builds the whole workspace, so that features unify as in `cargo test --workspace` and nothing
    // is built twice.
    let output = Command::new(cargo)
        .args([
            "build",
            "--workspace",
            "--bins",
            "--profile",
            profile,
            "--target-dir",
        ])
        .arg(target)
        .current_dir(workspace)
        .output()
        .expect("cargo starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the programs under test do not build:\n{message}"
    );
}
