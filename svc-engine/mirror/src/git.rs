//! Runs the git program so that only this service decides what it does.
//!
//! Its environment is cleared, and it reads only the configuration given here. It runs no hooks,
//! asks nobody for a password, uses only the protocol of the fetch, and starts no background
//! maintenance. Settings are passed in the environment and never as arguments, which every process
//! on the machine can read.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use svc_engine_fact::deadline::Deadline;

use super::allowance::Allowance;
use super::obeyed;
use super::process::{self, Conversation, Input, ProcessError};

/// The oldest git that is accepted: the first in a supported Linux that has pinned addresses (2.37)
/// and `cat-file --batch-command` (2.36).
pub(super) const VERSION_MIN: (u32, u32) = (2, 39);
/// The maximum bytes of an answer that is read as a whole.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The C library's messages for a full disk and an exhausted quota.
const NO_SPACE: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// The variables that git inherits from this process: the search path, and the certificates that
/// TLS trusts.
const INHERITED: [&str; 6] = [
    "PATH",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];

const ENVIRONMENT: [(&str, &str); 12] = [
    // A fetch sets its one protocol. This variable wins over every setting.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("LC_ALL", "C"),
];

const SETTINGS: [(&str, &str); 15] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.logAllRefUpdates", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("http.followRedirects", "false"),
    ("http.proxy", ""),
    ("transfer.bundleURI", "false"),
    ("fetch.recurseSubmodules", "no"),
    ("submodule.recurse", "false"),
    // No background maintenance: a job repacks within its own time.
    ("gc.auto", "0"),
    ("gc.autoDetach", "false"),
    ("maintenance.auto", "false"),
    // A fetch shares the machine with requests.
    ("pack.threads", "1"),
    ("index.threads", "1"),
];

/// The git program of this machine.
#[derive(Clone, Debug)]
pub struct Git {
    version: (u32, u32),
    inherited: Vec<(&'static str, OsString)>,
}

/// Why git cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum GitUnusable {
    /// It cannot be run.
    #[error("git does not run: is it installed?")]
    Absent,
    /// It is older than required.
    #[error("git {0}.{1} is too old: at least 2.39 is needed")]
    Old(u32, u32),
}

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("git {what}: {cause}")]
pub(super) struct GitError {
    what: &'static str,
    #[source]
    cause: ProcessError,
}

impl GitError {
    pub(super) fn new(what: &'static str, cause: ProcessError) -> Self {
        Self { what, cause }
    }

    /// Returns whether git ran and failed.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self.cause, ProcessError::Failed { .. })
    }

    /// Returns why git was stopped, if it was.
    pub(super) fn stopped(&self) -> Option<super::allowance::StopReason> {
        match &self.cause {
            ProcessError::Stopped(stopped) => Some(*stopped),
            ProcessError::Start(_)
            | ProcessError::Altered(_)
            | ProcessError::Failed { .. }
            | ProcessError::Output(_) => None,
        }
    }

    /// Returns whether git was not started, because it would have obeyed somebody else.
    pub(super) fn is_altered(&self) -> bool {
        matches!(self.cause, ProcessError::Altered(_))
    }

    /// Returns whether git reported a full disk.
    pub(super) fn lacked_space(&self) -> bool {
        self.mentions(&NO_SPACE)
    }

    /// Returns whether git's or the remote's error output contains one of these words.
    pub(super) fn mentions(&self, words: &[&str]) -> bool {
        match &self.cause {
            ProcessError::Failed { complaint } => words.iter().any(|word| complaint.contains(word)),
            ProcessError::Start(_)
            | ProcessError::Altered(_)
            | ProcessError::Stopped(_)
            | ProcessError::Output(_) => false,
        }
    }

    /// Returns git's own last error message, as one line without control characters. Messages from
    /// the remote are left out.
    pub(super) fn complaint(&self) -> String {
        const CHARACTERS_MAX: usize = 300;
        let complaint = match &self.cause {
            ProcessError::Failed { complaint } => complaint
                .lines()
                .rfind(|line| line.starts_with("fatal: ") || line.starts_with("error: "))
                .unwrap_or("git failed without a word"),
            other => return other.to_string(),
        };
        let plain = |character: char| !character.is_control();
        complaint
            .chars()
            .filter(|character| plain(*character))
            .take(CHARACTERS_MAX)
            .collect()
    }
}

impl Git {
    /// Finds git.
    ///
    /// # Errors
    ///
    /// If no usable git is installed.
    pub fn find(deadline: &Deadline) -> Result<Self, GitUnusable> {
        let given = |name| Some((name, std::env::var_os(name)?));
        let mut git = Self {
            version: (0, 0),
            inherited: INHERITED.into_iter().filter_map(given).collect(),
        };
        let answer = git.call("version", Path::new("/")).arg("version");
        let answer = answer
            .answer(Input::Nothing, &Allowance::until(deadline.clone()))
            .map_err(|_| GitUnusable::Absent)?;
        git.version = read_version(&answer).ok_or(GitUnusable::Absent)?;
        if git.version < VERSION_MIN {
            return Err(GitUnusable::Old(git.version.0, git.version.1));
        }
        Ok(git)
    }

    /// Trusts certificates that this one has signed.
    #[cfg(test)]
    pub(super) fn trusting(mut self, certificate: &Path) -> Self {
        self.inherited.push(("GIT_SSL_CAINFO", certificate.into()));
        self
    }

    /// Returns git's version.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Prepares a call that runs in a folder.
    pub(super) fn call(&self, what: &'static str, folder: &Path) -> GitCall {
        self.call_within(what, folder, None)
    }

    fn call_within(&self, what: &'static str, folder: &Path, memory_max: Option<u64>) -> GitCall {
        let mut command = process::supervised("git", memory_max);
        command
            .current_dir(folder)
            .env_clear()
            .envs(ENVIRONMENT)
            .envs(self.inherited.iter().map(|(name, value)| (name, value)));
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        GitCall {
            what,
            repository: None,
            command,
            settings: SETTINGS.map(own).into(),
        }
    }

    /// Prepares a call on a bare repository.
    pub(super) fn on(&self, what: &'static str, repository: &Path) -> GitCall {
        self.call_within(what, repository, None).on(repository)
    }

    /// Prepares a call on a bare repository, with a limit in bytes on its address space.
    pub(super) fn on_within(
        &self,
        what: &'static str,
        repository: &Path,
        memory_max: u64,
    ) -> GitCall {
        let call = self.call_within(what, repository, Some(memory_max));
        call.on(repository)
    }
}

/// A prepared call of git.
#[derive(Debug)]
pub(super) struct GitCall {
    what: &'static str,
    /// The bare repository that git reads or changes, if it is one.
    repository: Option<PathBuf>,
    command: Command,
    settings: Vec<(String, String)>,
}

impl GitCall {
    fn on(mut self, repository: &Path) -> Self {
        self.command.env("GIT_DIR", repository);
        self.repository = Some(repository.to_owned());
        self
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(super) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Adds settings, which override earlier ones.
    pub(super) fn settings(mut self, settings: impl IntoIterator<Item = (String, String)>) -> Self {
        self.settings.extend(settings);
        self
    }

    /// Adds variables of the environment.
    pub(super) fn environment<'e>(
        mut self,
        variables: impl IntoIterator<Item = &'e (String, String)>,
    ) -> Self {
        for (name, value) in variables {
            self.command.env(name, value);
        }
        self
    }

    /// Runs git and returns what `read` makes of its output.
    pub(super) fn run<T>(
        mut self,
        input: Input,
        allowance: &Allowance,
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>,
    ) -> Result<T, GitError> {
        self.configure()
            .and_then(|()| process::run(&mut self.command, input, allowance, read))
            .map_err(|cause| GitError::new(self.what, cause))
    }

    /// Starts a git that answers one question after another.
    pub(super) fn converse(mut self, allowance: &Allowance) -> Result<Conversation, GitError> {
        self.configure()
            .and_then(|()| Conversation::start(&mut self.command, allowance))
            .map_err(|cause| GitError::new(self.what, cause))
    }

    fn configure(&mut self) -> Result<(), ProcessError> {
        if let Some(repository) = &self.repository {
            obeyed::check(repository).map_err(ProcessError::Altered)?;
        }
        self.command
            .env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (number, (name, value)) in self.settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{number}"), name);
            self.command
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        Ok(())
    }

    /// Runs git and returns its whole output.
    pub(super) fn answer(self, input: Input, allowance: &Allowance) -> Result<String, GitError> {
        self.run(input, allowance, |output| {
            let mut answer = Vec::new();
            output.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut answer)?;
            if answer.len() as u64 > ANSWER_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(String::from_utf8_lossy(&answer).into_owned())
        })
    }
}

fn read_version(answer: &str) -> Option<(u32, u32)> {
    let version = answer.strip_prefix("git version ")?;
    let mut numbers = version.split('.');
    let mut number = || numbers.next()?.trim().parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::failure::Setback;

    fn long() -> Allowance {
        Allowance::until(deadline())
    }

    fn deadline() -> Deadline {
        Deadline::after(Duration::from_secs(30))
    }

    #[test]
    fn git_versions_of_all_vendors_are_parsed() {
        for (answer, version) in [
            ("git version 2.47.3\n", Some((2, 47))),
            ("git version 2.39.5 (Apple Git-154)\n", Some((2, 39))),
            ("git version 3.0\n", Some((3, 0))),
            ("git version 2.50.0.rc1.dirty\n", Some((2, 50))),
            ("hub version 2\n", None),
            ("", None),
        ] {
            assert_eq!(read_version(answer), version, "{answer}");
        }
        assert!(Git::find(&deadline()).unwrap().version() >= VERSION_MIN);
    }

    #[test]
    fn git_reads_only_our_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::find(&deadline()).unwrap();
        let listed = git
            .call("config", folder.path())
            .args(["config", "--list", "--show-scope"])
            .settings([("a.b".to_owned(), "secret \n word".to_owned())])
            .answer(Input::Nothing, &long())
            .unwrap();
        let foreign: Vec<_> = listed
            .lines()
            .filter(|line| !line.starts_with("command\t") && *line != " word")
            .collect();
        assert_eq!(foreign, Vec::<&str>::new());
        assert!(listed.contains("protocol.allow=never"));
    }

    #[test]
    fn a_full_disk_is_not_reported_as_a_failed_fetch() {
        let error = |complaint: &str| GitError {
            what: "fetch",
            cause: ProcessError::Failed {
                complaint: complaint.to_owned(),
            },
        };
        let full =
            "error: unable to write file: No space left on device\nfatal: fetch-pack failed\n";
        for (complaint, expected) in [
            (full, true),
            ("fatal: cannot create '/m': Disk quota exceeded\n", true),
            ("fatal: the remote end hung up\n", false),
        ] {
            let setback = Setback::from(error(complaint));
            let waits = matches!(setback, Setback::NoSpace);
            assert_eq!(waits, expected, "{complaint}");
        }
    }

    #[test]
    fn a_complaint_is_the_last_error_of_git_itself() {
        let error = |complaint: &str| GitError {
            what: "fetch",
            cause: ProcessError::Failed {
                complaint: complaint.to_owned(),
            },
        };
        assert_eq!(
            error("remote: your token is 1\nfatal: first\nerror: \u{1b}[31mlast\nhint: x\n")
                .complaint(),
            "error: [31mlast"
        );
        assert_eq!(
            error("remote: hello\n").complaint(),
            "git failed without a word"
        );
        let long = format!("fatal: {}", "x".repeat(1_000));
        assert_eq!(error(&long).complaint().len(), 300);
    }
}
