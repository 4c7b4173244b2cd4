//! Where settings come from: flags, environment, files.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Looks settings up by the name of their variable.
#[derive(Debug, Default)]
pub(crate) struct Source {
    flags: BTreeMap<&'static str, String>,
    environment: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    /// Settings that the embedded default provides.
    embedded: BTreeMap<&'static str, String>,
}

/// Why a setting cannot be looked up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) String);

impl Source {
    /// Reads the environment and the configuration file of this process.
    pub(crate) fn process(flags: BTreeMap<&'static str, String>) -> Result<Self, Unreadable> {
        let environment = std::env::vars()
            .filter(|(name, _)| name.starts_with("SVC_"))
            .collect();
        let mut source = Self {
            flags,
            environment,
            ..Self::default()
        };
        let path = config_folder().map(|folder| folder.join("config.toml"));
        if let Some(path) = path.filter(|path| path.exists()) {
            let text = std::fs::read_to_string(&path)
                .map_err(|_| Unreadable(format!("{} cannot be read", path.display())))?;
            source.file = read_file(&text)
                .map_err(|()| Unreadable(format!("{} is not valid TOML", path.display())))?;
        }
        Ok(source)
    }

    /// Provides a setting that nothing else gives.
    pub(crate) fn embed(&mut self, name: &'static str, value: String) {
        self.embedded.insert(name, value);
    }

    /// Returns whether a setting is given anywhere.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.get(name).is_ok_and(|value| value.is_some())
            || self.environment.contains_key(&format!("{name}_FILE"))
    }

    /// Returns a setting. An empty value counts as unset.
    pub(crate) fn get(&self, name: &str) -> Result<Option<String>, Unreadable> {
        let given = |value: &String| (!value.is_empty()).then(|| value.clone());
        if let Some(value) = self.flags.get(name).and_then(given) {
            return Ok(Some(value));
        }
        if let Some(value) = self.environment.get(name).and_then(given) {
            return Ok(Some(value));
        }
        if let Some(path) = self
            .environment
            .get(&format!("{name}_FILE"))
            .and_then(given)
        {
            return std::fs::read_to_string(path)
                .map(|text| Some(text.trim_end_matches(['\r', '\n']).to_owned()))
                .map_err(|_| Unreadable(format!("{name}_FILE names a file that cannot be read")));
        }
        let key = name.trim_start_matches("SVC_").to_ascii_lowercase();
        Ok(self
            .file
            .get(&key)
            .and_then(given)
            .or_else(|| self.embedded.get(name).cloned()))
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

/// Reads a flat TOML table. A list or table becomes its JSON text, as the variable would hold it.
fn read_file(text: &str) -> Result<BTreeMap<String, String>, ()> {
    let table: toml::Table = text.parse().map_err(|_| ())?;
    table
        .into_iter()
        .map(|(name, value)| {
            let text = if let toml::Value::String(text) = value {
                text
            } else {
                let json = svc_model::json::to_vec(&value, usize::MAX).map_err(|_| ())?;
                String::from_utf8(json).map_err(|_| ())?
            };
            Ok((name, text))
        })
        .collect()
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

/// Returns the folder of configuration, `$XDG_CONFIG_HOME/svc`; nothing without a home.
pub fn config_folder() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

/// Returns the folder of data.
pub(crate) fn data_folder() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_texts_numbers_and_lists() {
        let read =
            read_file("listen = \"a:1\"\nread_slots = 3\nenable_docs = true\nids = [\"a\", \"b\"]")
                .unwrap();
        assert_eq!(read["listen"], "a:1");
        assert_eq!(read["read_slots"], "3");
        assert_eq!(read["enable_docs"], "true");
        assert_eq!(read["ids"], "[\"a\",\"b\"]");
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let source = Source::of(&[("SVC_LISTEN", "")]);
        assert_eq!(source.get("SVC_LISTEN"), Ok(None));
    }
}
