use clap::{Args, Subcommand};
use serde::Serialize;
use svc_client::environment::{self, ALLOW_PLAIN_HTTP, CA_FILE, TOKEN, TOKEN_FILE, URL};
use svc_server::{Overrides, ShownSetting, shown_settings};

use super::service;
use super::store::given;
use crate::credentials::{Credentials, Role};
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, Table, escape};

/// The origin of a default value.
const DEFAULT: &str = "default";

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting of the server and of this shell.
    ///
    /// A setting comes from its flag, else from its variable, else from config.toml, else it has
    /// its default. The values of secrets are not shown.
    Show(Show),
}

impl Config {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Show(show) => show.run(output),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Also show where each comes from.
    #[arg(long)]
    origin: bool,

    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// The settings, for programs.
#[derive(Debug, Serialize)]
struct SettingsListing {
    settings: Vec<Setting>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Setting {
    name: &'static str,
    /// `None` for a secret, and for a setting that is unset and has no default.
    value: Option<String>,
    secret: bool,
    /// `flag`, the variable, the file, `login`, or `default`.
    origin: String,
}

impl Show {
    fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let (settings, mistakes) = shown_settings(Overrides {
            database_url: given(self.store.database_url.as_deref()),
            org_id: given(self.store.org_id.as_deref()),
            ..Overrides::default()
        });
        let mut settings: Vec<Setting> = settings.into_iter().map(Setting::from).collect();
        settings.extend(of_the_shell(&self.service)?);
        output.value(&SettingsListing { settings }, |shown| {
            render(shown, self.origin)
        })?;
        for mistake in mistakes {
            output.warning(&mistake);
        }
        Ok(())
    }
}

impl From<ShownSetting> for Setting {
    fn from(setting: ShownSetting) -> Self {
        Self {
            name: setting.name,
            value: setting.value,
            secret: setting.secret,
            origin: setting.given_by.unwrap_or_else(|| DEFAULT.to_owned()),
        }
    }
}

/// Returns which service this shell uses, and with which token.
fn of_the_shell(options: &ServiceOptions) -> Result<Vec<Setting>, CommandError> {
    let credentials = Credentials::load()?;
    let url = service::url_with(options, &credentials)?;
    let is_given = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let origin = if given(options.url.as_deref()).is_some() {
        "flag"
    } else if environment::url()?.is_some() {
        URL
    } else if credentials.current().is_some() {
        "login"
    } else {
        DEFAULT
    };
    let token = if is_given(TOKEN) {
        TOKEN
    } else if is_given(TOKEN_FILE) {
        TOKEN_FILE
    } else if credentials.token(&url, Role::Operator).is_some() {
        "login"
    } else if svc_server::as_local(&url).is_some() && svc_server::local_credentials().is_some() {
        "generated"
    } else {
        DEFAULT
    };
    let mut settings = vec![
        Setting {
            name: URL,
            value: Some(service::without_password(&url)),
            secret: false,
            origin: origin.to_owned(),
        },
        Setting {
            name: TOKEN,
            value: (token == DEFAULT).then(|| "none".to_owned()),
            secret: true,
            origin: token.to_owned(),
        },
    ];
    for (name, default) in [(ALLOW_PLAIN_HTTP, "off"), (CA_FILE, "none")] {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        settings.push(Setting {
            name,
            origin: value.as_ref().map_or(DEFAULT, |_| name).to_owned(),
            value: value.or_else(|| Some(default.to_owned())),
            secret: false,
        });
    }
    Ok(settings)
}

fn render(shown: &SettingsListing, with_origin: bool) -> String {
    let value = |setting: &Setting| match &setting.value {
        Some(value) => escape(value),
        None if setting.secret => "(secret)".to_owned(),
        None => "(cannot be read)".to_owned(),
    };
    if with_origin {
        let mut table = Table::new(["setting", "value", "origin"]);
        for setting in &shown.settings {
            table.row([
                setting.name.to_owned(),
                value(setting),
                escape(&setting.origin),
            ]);
        }
        return table.render();
    }
    let mut table = Table::new(["setting", "value"]);
    for setting in &shown.settings {
        table.row([setting.name.to_owned(), value(setting)]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_a_table_without_secrets() {
        let setting = |name, value: Option<&str>, secret, origin: &str| Setting {
            name,
            value: value.map(str::to_owned),
            secret,
            origin: origin.to_owned(),
        };
        let shown = SettingsListing {
            settings: vec![
                setting("SVC_LISTEN", Some("localhost:1\u{1b}"), false, "flag"),
                setting("SVC_OPERATOR_TOKEN", None, true, "SVC_OPERATOR_TOKEN_FILE"),
            ],
        };
        assert_eq!(
            render(&shown, true),
            "setting             value              origin\n\
             SVC_LISTEN          localhost:1\\u{1b}  flag\n\
             SVC_OPERATOR_TOKEN  (secret)           SVC_OPERATOR_TOKEN_FILE\n"
        );
        assert!(!render(&shown, false).contains("flag"));
    }
}
