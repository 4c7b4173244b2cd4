//! How the Model Context Protocol is served.

use std::net::SocketAddr;

use axum::http::uri::Uri;
use svc_model::json::Json;

use super::reader::Reader;
use crate::env;
use crate::host::Host;

/// By which names this machine calls itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// How the Model Context Protocol is served. Both lists keep a page in a browser from using the
/// reader's place in a network: it comes with an origin, or with a host name that it made lead here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct McpSettings {
    /// The hosts that requests may name.
    pub(crate) hosts: Vec<String>,
    /// The origins that requests may come from, beside the host that they name; a request without one
    /// comes from no page.
    pub(crate) origins: Vec<String>,
}

/// Reads the settings; nothing when it is not served.
pub(super) fn read(reader: &mut Reader<'_>, listen: SocketAddr) -> Option<McpSettings> {
    let enabled = reader.boolean(env::ENABLE_MCP, false);
    let hosts = reader.parsed(
        env::MCP_HOSTS,
        "must be a JSON array of hosts, with or without a port",
        |text| list(text, is_host),
    );
    let origins = reader.parsed(
        env::MCP_ORIGINS,
        "must be a JSON array of origins with a port, such as https://agents.example:443",
        |text| list(text, is_origin),
    );
    enabled.then(|| McpSettings {
        hosts: hosts.unwrap_or_else(|| own_hosts(listen)),
        origins: origins.unwrap_or_default(),
    })
}

/// Returns the hosts that name this machine to itself, and the address that it listens on.
pub(super) fn own_hosts(listen: SocketAddr) -> Vec<String> {
    let mut hosts: Vec<String> = LOOPBACK.map(str::to_owned).into();
    let ip = listen.ip();
    if !ip.is_unspecified() && !ip.is_loopback() {
        hosts.push(ip.to_string());
    }
    hosts
}

/// Reads a list of one text or more.
pub(super) fn list(text: &str, is_valid: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    let texts: Option<Vec<String>> = items
        .iter()
        .map(|item| {
            item.as_str()
                .filter(|item| is_valid(item))
                .map(str::to_owned)
        })
        .collect();
    // None would let every host in.
    texts.filter(|texts| !texts.is_empty())
}

pub(super) fn is_host(text: &str) -> bool {
    Host::parse(text).is_some()
}

fn is_origin(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.port_u16().is_some()
            && !text.contains('@')
            && uri.path_and_query().is_none_or(|path| path == "/")
            && !text.ends_with('/')
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
    fn it_is_off_unless_it_is_enabled() {
        assert_eq!(read(&[]).unwrap().mcp, None);
        assert_eq!(read(&[("SVC_MCP_HOSTS", "[\"a\"]")]).unwrap().mcp, None);
    }

    #[test]
    fn by_default_only_this_machine_is_named_and_no_page_may_call() {
        let mcp = read(&[("SVC_ENABLE_MCP", "true")]).unwrap().mcp.unwrap();
        assert_eq!(mcp.hosts, ["localhost", "127.0.0.1", "::1"]);
        assert!(mcp.origins.is_empty());
        let given = [("SVC_ENABLE_MCP", "true"), ("SVC_LISTEN", "10.1.2.3:80")];
        let mcp = read(&given).unwrap().mcp.unwrap();
        assert_eq!(mcp.hosts.last().unwrap(), "10.1.2.3");
    }

    #[test]
    fn what_is_no_host_or_origin_is_refused() {
        for (name, value) in [
            ("SVC_MCP_HOSTS", "[]"),
            ("SVC_MCP_HOSTS", "svc.example"),
            ("SVC_MCP_HOSTS", "[\"http://svc.example\"]"),
            ("SVC_MCP_HOSTS", "[\"a@b\"]"),
            ("SVC_MCP_ORIGINS", "[\"svc.example\"]"),
            ("SVC_MCP_ORIGINS", "[\"https://svc.example\"]"),
            ("SVC_MCP_ORIGINS", "[\"https://svc.example:443/x\"]"),
        ] {
            let refused = read(&[("SVC_ENABLE_MCP", "true"), (name, value)]).unwrap_err();
            assert!(refused.contains(name), "{refused}");
        }
        let given = [
            ("SVC_ENABLE_MCP", "true"),
            (
                "SVC_MCP_HOSTS",
                "[\"svc.example\",\"10.0.0.1:8000\",\"fd00::1\"]",
            ),
            ("SVC_MCP_ORIGINS", "[\"https://agents.example:443\"]"),
        ];
        let mcp = read(&given).unwrap().mcp.unwrap();
        assert_eq!((mcp.hosts.len(), mcp.origins.len()), (3, 1));
    }
}
