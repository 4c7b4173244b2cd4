//! How the Model Context Protocol is served.

use std::net::SocketAddr;

use super::host::own_hosts;
use super::reader::SettingsReader;
use crate::env;
use crate::host::Host;

/// How the Model Context Protocol is served. Both lists keep a web page from using its reader's
/// position in a network: such a page comes with an origin, or with a host name that it made
/// resolve to this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct McpSettings {
    /// The hosts that requests may name.
    pub(crate) hosts: Vec<Host>,
    /// The origins that requests may come from, besides the host that they name. A request without
    /// an origin does not come from a page.
    pub(crate) origins: Vec<String>,
}

/// Reads the settings. `None` if the protocol is not served.
pub(super) fn read(
    reader: &mut SettingsReader<'_>,
    listen: Option<SocketAddr>,
) -> Option<McpSettings> {
    let enabled = reader.value(&env::ENABLE_MCP).unwrap_or_default();
    let hosts = reader.given(&env::MCP_HOSTS);
    let origins = reader.given(&env::MCP_ORIGINS);
    let listen = listen?;
    enabled.then(|| McpSettings {
        hosts: hosts.unwrap_or_else(|| own_hosts(listen)),
        origins: origins.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::Host;
    use crate::settings::testing::read;

    #[test]
    fn mcp_is_off_by_default() {
        assert_eq!(read(&[]).unwrap().mcp, None);
        assert_eq!(read(&[("SVC_MCP_HOSTS", "[\"a\"]")]).unwrap().mcp, None);
    }

    #[test]
    fn by_default_only_local_hosts_and_no_web_origins_may_call() {
        let mcp = read(&[("SVC_ENABLE_MCP", "true")]).unwrap().mcp.unwrap();
        let hosts: Vec<&str> = mcp.hosts.iter().map(Host::as_str).collect();
        assert_eq!(hosts, ["localhost", "127.0.0.1", "::1"]);
        assert!(mcp.origins.is_empty());
        let given = [("SVC_ENABLE_MCP", "true"), ("SVC_LISTEN", "10.1.2.3:80")];
        let mcp = read(&given).unwrap().mcp.unwrap();
        assert_eq!(mcp.hosts.last().unwrap().as_str(), "10.1.2.3");
    }

    #[test]
    fn an_invalid_host_or_origin_is_refused() {
        for (name, value) in [
            ("SVC_MCP_HOSTS", "[]"),
            ("SVC_MCP_HOSTS", "svc.example"),
            ("SVC_MCP_HOSTS", "[\"http://svc.example\"]"),
            ("SVC_MCP_HOSTS", "[\"a@b\"]"),
            ("SVC_MCP_ORIGINS", "[\"svc.example\"]"),
            ("SVC_MCP_ORIGINS", "[\"https://svc.example\"]"),
            ("SVC_MCP_ORIGINS", "[\"https://svc.example:443/x\"]"),
        ] {
            let refused = read(&[("SVC_ENABLE_MCP", "true"), (name, value)])
                .unwrap_err()
                .to_string();
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
