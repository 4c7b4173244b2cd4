//! The sources of settings: flags, environment and files.

mod file;
mod names;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

pub(crate) use self::names::Strictness;
use crate::env;

/// The maximum size of the file of a secret: some thousand tokens with their names.
const SECRET_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The origin of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// On the command line.
    Flag,
    /// In the environment.
    Environment,
    /// In the configuration file.
    File,
    /// Nowhere, so it has its default.
    Default,
}

/// Looks up settings by the names of their variables.
#[derive(Debug, Default)]
pub(crate) struct Source {
    flags: BTreeMap<&'static str, String>,
    environment: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    /// Where each key stands: the file and the line.
    places: BTreeMap<String, String>,
    /// Generated settings.
    embedded: BTreeMap<&'static str, String>,
    /// What the files of secrets held. Each is read once, because a pipe holds its secret only once.
    secrets: RefCell<BTreeMap<String, Result<String, UnreadableSetting>>>,
    /// Whether settings that are not set might have been generated if nothing else had been wrong.
    unprovided: bool,
}

/// Why a setting cannot be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadableSetting(pub(crate) String);

impl Source {
    /// Reads the environment and the configuration file of this process, and collects errors.
    pub(crate) fn process(
        flags: BTreeMap<&'static str, String>,
        strictness: Strictness,
        mistakes: &mut Vec<String>,
    ) -> Self {
        let mut source = Self {
            flags,
            ..Self::default()
        };
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str().filter(|name| name.starts_with(env::PREFIX)) else {
                continue;
            };
            if let Some(mistake) = names::mistake_of_variable(name, strictness) {
                mistakes.push(mistake);
            }
            match value.into_string() {
                Ok(value) => {
                    source.environment.insert(name.to_owned(), value);
                }
                Err(_) if env::OTHERS.contains(&name) => {}
                Err(_) => mistakes.push(format!("{name} is not Unicode")),
            }
        }
        let path = config_folder().map(|folder| folder.join("config.toml"));
        if let Some(path) = path {
            let shown = path.display().to_string();
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    source.file = file::read(&text, &shown, &mut source.places, mistakes);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => mistakes.push(format!("{shown} cannot be read: {error}")),
            }
        }
        source
    }

    /// Provides a setting that is set nowhere else.
    pub(crate) fn embed(&mut self, name: &'static str, value: String) {
        self.embedded.insert(name, value);
    }

    /// Records that settings could not be generated, because something else is wrong.
    pub(crate) fn set_unprovided(&mut self) {
        self.unprovided = true;
    }

    /// Returns whether a setting is set nowhere, as far as that is known.
    pub(crate) fn is_missing(&self, name: &str) -> bool {
        !self.unprovided && !self.is_given(name)
    }

    /// Returns a setting as an error names it: by its variable, or by its key in the configuration
    /// file, with the file and the line.
    pub(crate) fn shown(&self, name: &str) -> String {
        // The name of a token may follow in brackets.
        let (variable, rest) = name.split_at(name.find('[').unwrap_or(name.len()));
        let Some(known) =
            env::find(variable).filter(|_| self.origin(variable) == SettingOrigin::File)
        else {
            return name.to_owned();
        };
        let key = known.key();
        match self.places.get(&key) {
            Some(place) => format!("{place}: {key}{rest}"),
            None => name.to_owned(),
        }
    }

    /// Returns whether a setting is set anywhere.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        // An unreadable file counts as set.
        self.get(name).map_or(true, |value| value.is_some())
    }

    /// Returns the origin of a setting. A variable that names an unreadable file counts too.
    pub(crate) fn origin(&self, name: &str) -> SettingOrigin {
        let is_set = |value: &String| counts(name, value);
        let variable = env::find(name);
        let file = variable.and_then(env::Variable::file_variable);
        let in_environment = |name: &str| self.environment.get(name).is_some_and(is_set);
        if self.flags.get(name).is_some_and(is_set) {
            SettingOrigin::Flag
        } else if in_environment(name) || file.is_some_and(|file| in_environment(&file)) {
            SettingOrigin::Environment
        } else if variable
            .is_some_and(|variable| self.file.get(&variable.key()).is_some_and(is_set))
        {
            SettingOrigin::File
        } else {
            SettingOrigin::Default
        }
    }

    /// Returns the variable that sets a setting, if the environment does.
    pub(crate) fn variable_of(&self, variable: &env::Variable) -> String {
        let is_given = self.environment.get(variable.name);
        match variable.file_variable() {
            Some(file) if is_given.is_none_or(String::is_empty) => file,
            _ => variable.name.to_owned(),
        }
    }

    /// Returns a setting. An empty value counts as unset, unless it switches the setting off.
    pub(crate) fn get(&self, name: &str) -> Result<Option<String>, UnreadableSetting> {
        let given = |value: &String| counts(name, value).then(|| value.clone());
        if let Some(value) = self.flags.get(name).and_then(given) {
            return Ok(Some(value));
        }
        if let Some(value) = self.environment.get(name).and_then(given) {
            return Ok(Some(value));
        }
        let variable = env::find(name);
        let file = variable.and_then(env::Variable::file_variable);
        let file = file.and_then(|file| Some((self.environment.get(&file).and_then(given)?, file)));
        if let Some((path, file)) = file {
            let read = || {
                let text = secret_in(&path).map_err(|error| {
                    UnreadableSetting(format!("{file} names a file that cannot be read: {error}"))
                })?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            };
            let mut secrets = self.secrets.borrow_mut();
            let secret = secrets.entry(file.clone()).or_insert_with(read);
            return secret.clone().map(Some);
        }
        let in_file = variable.and_then(|variable| self.file.get(&variable.key()));
        Ok(in_file
            .and_then(given)
            .or_else(|| self.embedded.get(name).cloned()))
    }

    /// Returns the settings of a configuration file alone.
    #[cfg(test)]
    pub(crate) fn of_file(text: &str) -> Self {
        let mut places = BTreeMap::new();
        Self {
            file: file::read(text, "config.toml", &mut places, &mut Vec::new()),
            places,
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn of(environment: &[(&str, &str)]) -> Self {
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            environment: environment.collect(),
            ..Self::default()
        }
    }
}

/// Returns whether a value of a setting counts as set.
fn counts(name: &str, value: &str) -> bool {
    !value.is_empty() || env::OFF_IF_EMPTY.contains(&name)
}

fn folder(variable: &str, beneath_home: &str) -> Option<PathBuf> {
    let given = std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let folder = match given {
        Some(folder) => folder,
        None => PathBuf::from(std::env::var_os("HOME")?).join(beneath_home),
    };
    Some(folder.join("svc"))
}

/// Returns the configuration folder, `$XDG_CONFIG_HOME/svc`, or `None` without a home.
pub fn config_folder() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

/// Returns the state folder, `$XDG_STATE_HOME/svc`, or `None` without a home.
pub fn state_folder() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// Returns the data folder, `$XDG_DATA_HOME/svc`, or `None` without a home.
pub fn data_folder() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

/// Reads the file of a secret. It is bounded: a device that never ends would take all memory.
fn secret_in(path: &str) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(SECRET_FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > SECRET_FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_unset() {
        let source = Source::of(&[("SVC_LISTEN", "")]);
        assert_eq!(source.get("SVC_LISTEN"), Ok(None));
        let source = Source::of(&[("SVC_OPERATOR_TOKEN_FILE", "")]);
        assert!(!source.is_given("SVC_OPERATOR_TOKEN"));
        // Mirrors have a default that only an empty value switches off.
        let mut source = Source::of(&[("SVC_MIRROR_PATH", "")]);
        source.file.insert("mirror_path".into(), "/m".into());
        assert_eq!(source.get("SVC_MIRROR_PATH"), Ok(Some(String::new())));
        assert_eq!(source.origin("SVC_MIRROR_PATH"), SettingOrigin::Environment);
    }

    #[test]
    fn a_secret_is_read_from_its_file_without_the_end_of_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "abc\r\n").unwrap();
        let path = file.to_str().unwrap();
        let source = Source::of(&[
            ("SVC_OPERATOR_TOKEN_FILE", path),
            ("SVC_LISTEN_FILE", path),
            ("SVC_RETRIEVAL_TOKEN_FILE", &format!("{path}/below")),
        ]);
        assert_eq!(source.get("SVC_OPERATOR_TOKEN"), Ok(Some("abc".to_owned())));
        assert_eq!(source.get("SVC_LISTEN"), Ok(None));
        let unreadable = source.get("SVC_RETRIEVAL_TOKEN").unwrap_err();
        assert_eq!(
            unreadable.0,
            "SVC_RETRIEVAL_TOKEN_FILE names a file that cannot be read: Not a directory (os error 20)"
        );
        assert!(source.is_given("SVC_RETRIEVAL_TOKEN"));
    }

    #[test]
    fn a_secret_from_a_pipe_is_read_once_and_remembered() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"abc\n").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let source = Source::of(&[("SVC_OPERATOR_TOKEN_FILE", &path)]);
        for _ in 0..2 {
            assert!(source.is_given("SVC_OPERATOR_TOKEN"));
            assert_eq!(source.get("SVC_OPERATOR_TOKEN"), Ok(Some("abc".to_owned())));
        }
    }

    #[test]
    fn a_secret_is_not_read_from_a_file_that_never_ends() {
        let source = Source::of(&[("SVC_OPERATOR_TOKEN_FILE", "/dev/zero")]);
        let unreadable = source.get("SVC_OPERATOR_TOKEN").unwrap_err();
        assert_eq!(
            unreadable.0,
            "SVC_OPERATOR_TOKEN_FILE names a file that cannot be read: file too large"
        );
    }
}
