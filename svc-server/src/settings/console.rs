//! How the console is served.

use std::net::SocketAddr;

use super::mcp::{is_host, list, own_hosts};
use super::reader::Reader;
use crate::env;

/// How the console is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsoleSettings {
    /// The hosts that requests may name. They keep a page in a browser from leading here by a name of
    /// its own.
    pub(crate) hosts: Vec<String>,
}

/// Reads the settings; nothing when it is not served.
pub(super) fn read(reader: &mut Reader<'_>, listen: SocketAddr) -> Option<ConsoleSettings> {
    let enabled = reader.boolean(env::ENABLE_CONSOLE, false);
    let hosts = reader.parsed(
        env::CONSOLE_HOSTS,
        "must be a JSON array of hosts, with or without a port",
        |text| list(text, is_host),
    );
    enabled.then(|| ConsoleSettings {
        hosts: hosts.unwrap_or_else(|| own_hosts(listen)),
    })
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let mut all = vec![
            ("SVC_DATABASE_URL", "sqlite:///tmp/svc.db"),
            ("SVC_OPERATOR_TOKEN", TOKEN),
            (
                "SVC_INGEST_TOKENS",
                "{\"a\":\"fedcba9876543210fedcba9876543210\"}",
            ),
            (
                "SVC_FORGE_WEBHOOK_SECRET",
                "00112233445566778899aabbccddeeff",
            ),
        ];
        all.extend_from_slice(variables);
        Settings::of(&all).map_err(|error| error.to_string())
    }

    #[test]
    fn it_is_off_unless_it_is_enabled_and_then_for_this_machine_only() {
        assert_eq!(read(&[]).unwrap().console, None);
        let named = ("SVC_CONSOLE_HOSTS", "[\"svc.example\"]");
        assert_eq!(read(&[named]).unwrap().console, None);
        let enabled = ("SVC_ENABLE_CONSOLE", "true");
        let console = read(&[enabled]).unwrap().console.unwrap();
        assert_eq!(console.hosts, ["localhost", "127.0.0.1", "::1"]);
        let console = read(&[enabled, named]).unwrap().console.unwrap();
        assert_eq!(console.hosts, ["svc.example"]);
        let wrong = ("SVC_CONSOLE_HOSTS", "[\"https://svc.example\"]");
        assert!(
            read(&[enabled, wrong])
                .unwrap_err()
                .contains("SVC_CONSOLE_HOSTS")
        );
    }
}
