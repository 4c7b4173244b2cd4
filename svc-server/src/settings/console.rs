//! How the console is served.

use std::net::SocketAddr;

use super::host::own_hosts;
use super::reader::SettingsReader;
use crate::env;
use crate::host::Host;

/// How the console is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsoleSettings {
    /// The hosts that requests may name. They keep a web page from reaching the console through a
    /// host name of its own.
    pub(crate) hosts: Vec<Host>,
}

/// Reads the settings. `None` if the console is not served.
pub(super) fn read(
    reader: &mut SettingsReader<'_>,
    listen: Option<SocketAddr>,
) -> Option<ConsoleSettings> {
    let enabled = reader.value(&env::ENABLE_CONSOLE).unwrap_or_default();
    let hosts = reader.given(&env::CONSOLE_HOSTS);
    let listen = listen?;
    enabled.then(|| ConsoleSettings {
        hosts: hosts.unwrap_or_else(|| own_hosts(listen)),
    })
}

#[cfg(test)]
mod tests {
    use super::{ConsoleSettings, Host};
    use crate::settings::testing::read;

    fn names(console: &ConsoleSettings) -> Vec<&str> {
        console.hosts.iter().map(Host::as_str).collect()
    }

    #[test]
    fn the_console_is_off_by_default_and_then_only_for_this_machine() {
        assert_eq!(read(&[]).unwrap().console, None);
        let named = ("SVC_CONSOLE_HOSTS", "[\"svc.example\"]");
        assert_eq!(read(&[named]).unwrap().console, None);
        let enabled = ("SVC_ENABLE_CONSOLE", "true");
        let console = read(&[enabled]).unwrap().console.unwrap();
        assert_eq!(names(&console), ["localhost", "127.0.0.1", "::1"]);
        let console = read(&[enabled, named]).unwrap().console.unwrap();
        assert_eq!(names(&console), ["svc.example"]);
        let wrong = ("SVC_CONSOLE_HOSTS", "[\"https://svc.example\"]");
        assert!(
            read(&[enabled, wrong])
                .unwrap_err()
                .to_string()
                .contains("SVC_CONSOLE_HOSTS")
        );
    }
}
