//! The settings, for people.

use svc_engine::store::DatabaseUrl;

use super::Overrides;
use crate::embedded;
use crate::env::{self, Variable};
use crate::source::{SettingOrigin, Source, Strictness, config_folder};

/// A setting of the server: its value in this process, and the origin of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSetting {
    /// The name of the setting's variable.
    pub name: &'static str,
    /// The value, or the default in words. `None` for a secret.
    pub value: Option<String>,
    /// Whether it is a secret.
    pub secret: bool,
    /// The origin of the value.
    pub origin: SettingOrigin,
    /// The flag, variable or file that sets it. `None` for a default.
    pub given_by: Option<String>,
}

/// Returns every setting, in the order of the documentation, and the errors in those that are set.
pub fn shown_settings(overrides: Overrides) -> (Vec<ShownSetting>, Vec<String>) {
    let mut mistakes = Vec::new();
    let source = overrides.source(Strictness::Misspelled, &mut mistakes);
    let settings = env::ALL.iter();
    let settings = settings
        .map(|variable| shown(variable, &source, &mut mistakes))
        .collect();
    (settings, mistakes)
}

fn shown(variable: &Variable, source: &Source, mistakes: &mut Vec<String>) -> ShownSetting {
    let origin = source.origin(variable.name);
    let given = source.get(variable.name).unwrap_or_else(|unreadable| {
        mistakes.push(unreadable.0);
        None
    });
    let value = match given {
        // Only the password is secret, and it is left out.
        Some(url) if variable.name == env::DATABASE_URL.name => {
            DatabaseUrl::parse(&url).ok().map(|url| url.shown())
        }
        Some(value) if !variable.secret => Some(value),
        None if origin == SettingOrigin::Default && variable.name == env::DATABASE_URL.name => {
            let database = embedded::default_database();
            Some(database.map_or_else(|| "none".to_owned(), |database| database.shown()))
        }
        None if origin == SettingOrigin::Default => Some(variable.default.replace('`', "")),
        Some(_) | None => None,
    };
    ShownSetting {
        name: variable.name,
        value,
        secret: variable.secret,
        origin,
        given_by: match origin {
            SettingOrigin::Flag => Some("flag".to_owned()),
            SettingOrigin::Environment => Some(source.variable_of(variable)),
            SettingOrigin::File => {
                let file = config_folder().map(|folder| folder.join("config.toml"));
                file.map(|file| file.display().to_string())
            }
            SettingOrigin::Default => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_with_their_source_and_secrets_are_hidden() {
        let source = Source::of(&[
            ("SVC_LISTEN", "127.0.0.1:1"),
            ("SVC_OPERATOR_TOKEN", "very-secret"),
            ("SVC_RETRIEVAL_TOKEN_FILE", "/nowhere"),
            ("SVC_DATABASE_URL", "postgres://svc:very-secret@db/svc"),
        ]);
        let mut mistakes = Vec::new();
        let mut of = |name: &str| shown(env::find(name).unwrap(), &source, &mut mistakes);
        let listen = of("SVC_LISTEN");
        assert_eq!(listen.value.as_deref(), Some("127.0.0.1:1"));
        assert_eq!(listen.given_by.as_deref(), Some("SVC_LISTEN"));
        let token = of("SVC_OPERATOR_TOKEN");
        assert_eq!((token.value, token.secret), (None, true));
        assert_eq!(token.origin, SettingOrigin::Environment);
        let unreadable = of("SVC_RETRIEVAL_TOKEN");
        assert_eq!(
            unreadable.given_by.as_deref(),
            Some("SVC_RETRIEVAL_TOKEN_FILE")
        );
        let database = of("SVC_DATABASE_URL").value.unwrap();
        assert!(database.contains("db") && !database.contains("very-secret"));
        let organization = of("SVC_ORG_ID");
        assert_eq!(organization.value.as_deref(), Some("default"));
        assert_eq!(
            (organization.origin, organization.given_by),
            (SettingOrigin::Default, None)
        );
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    }
}
