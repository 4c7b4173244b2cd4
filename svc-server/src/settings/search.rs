//! The place of the search index.

use std::path::PathBuf;
use std::sync::Arc;

use svc_engine::search::{SearchFile, SearchPathError, SearchPlace};
use svc_engine::store::DatabaseUrl;

use super::reader::SettingsReader;
use crate::env;
use crate::source::data_folder;

/// The value that switches search off.
const OFF: &str = "off";

/// Where the search index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchSetting {
    /// There is none.
    Off,
    /// In the default file. A server waits for it while another one uses it.
    Default(PathBuf),
    /// In the file that is set. A second server that is to use it does not start.
    Set(PathBuf),
}

impl SearchSetting {
    /// Returns the file.
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Off => None,
            Self::Default(path) | Self::Set(path) => Some(path),
        }
    }

    /// Returns the place for an engine. A file that is set is locked.
    pub(crate) fn place(&self) -> Result<Option<SearchPlace>, SearchPathError> {
        Ok(match self {
            Self::Off => None,
            Self::Default(path) => Some(SearchPlace::WhenFree(path.clone())),
            Self::Set(path) => Some(match SearchFile::lock(path) {
                Ok(file) => SearchPlace::Locked(Arc::new(file)),
                Err(error @ SearchPathError::InUse { .. }) => return Err(error),
                // Capture goes on without an index, and the index tries again.
                Err(_) => SearchPlace::WhenFree(path.clone()),
            }),
        })
    }
}

/// Reads the setting.
pub(super) fn read(
    reader: &mut SettingsReader<'_>,
    database: Option<&DatabaseUrl>,
) -> SearchSetting {
    let path = match reader.given(&env::SEARCH_PATH) {
        Some(path) if path.trim() == OFF => return SearchSetting::Off,
        Some(path) if path.trim().is_empty() => {
            reader.mistake(env::SEARCH_PATH.name, "must be a file, or off");
            return SearchSetting::Off;
        }
        Some(path) => PathBuf::from(path),
        None => {
            let path = database.and_then(beside);
            return path.map_or(SearchSetting::Off, SearchSetting::Default);
        }
    };
    let Ok(path) = std::path::absolute(path) else {
        reader.mistake(env::SEARCH_PATH.name, "must be a path");
        return SearchSetting::Off;
    };
    if path.is_dir() {
        reader.mistake(env::SEARCH_PATH.name, "must be a file; it is a folder");
    }
    SearchSetting::Set(path)
}

/// Returns the file for a database if none is set: beside a SQLite file, and otherwise among the
/// user's data.
fn beside(database: &DatabaseUrl) -> Option<PathBuf> {
    const NAME: &str = "search.db";
    let path = match database {
        DatabaseUrl::Sqlite(path) => path.with_file_name(NAME),
        DatabaseUrl::Postgres(_) => data_folder()?.join(NAME),
    };
    std::path::absolute(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn of(url: &str, given: &[(&str, &str)]) -> (SearchSetting, Vec<String>) {
        let url = DatabaseUrl::parse(url).unwrap();
        let source = Source::of(given);
        let mut reader = SettingsReader::new(&source, Vec::new());
        let setting = read(&mut reader, Some(&url));
        (setting, reader.mistakes)
    }

    #[test]
    fn the_index_is_beside_a_sqlite_database_unless_it_is_elsewhere_or_off() {
        let database = "sqlite:///d/svc.db";
        let (setting, _) = of(database, &[]);
        assert_eq!(setting, SearchSetting::Default("/d/search.db".into()));
        let (setting, _) = of(database, &[("SVC_SEARCH_PATH", "/x/y.db")]);
        assert_eq!(setting, SearchSetting::Set("/x/y.db".into()));
        let (setting, mistakes) = of(database, &[("SVC_SEARCH_PATH", "off")]);
        assert_eq!((setting, mistakes.len()), (SearchSetting::Off, 0));
        let (_, mistakes) = of(database, &[("SVC_SEARCH_PATH", " ")]);
        assert_eq!(mistakes, ["SVC_SEARCH_PATH must be a file, or off"]);
        let folder = std::env::temp_dir();
        let (_, mistakes) = of(database, &[("SVC_SEARCH_PATH", folder.to_str().unwrap())]);
        assert_eq!(mistakes, ["SVC_SEARCH_PATH must be a file; it is a folder"]);
        let (setting, _) = of("postgres://svc@db/svc", &[]);
        assert!(
            setting
                .path()
                .is_none_or(|path| path.ends_with("svc/search.db"))
        );
    }
}
