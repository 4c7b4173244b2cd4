//! The hosts that requests to the console and to `/mcp` may name.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::uri::Authority;

use super::mcp::list;

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A host name or an address, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    text: String,
    /// The name or the address, in lower case and without brackets.
    pub(crate) name: String,
    /// The port, if there is one.
    pub(crate) port: Option<u16>,
}

impl Host {
    /// Parses `NAME`, `NAME:PORT`, an address, or an address with a port.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, port) = if text.parse::<Ipv6Addr>().is_ok() {
            (text.to_owned(), None)
        } else {
            let authority: Authority = text.parse().ok()?;
            if text.contains('@') || authority.host().is_empty() {
                return None;
            }
            let name = authority.host().trim_matches(['[', ']']).to_owned();
            (name, authority.port_u16())
        };
        Some(Self {
            text: text.to_owned(),
            name: name.to_ascii_lowercase(),
            port,
        })
    }

    /// Returns the text that it was parsed from.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host with this port, if it has none.
    pub(crate) fn with_port(mut self, port: u16) -> Self {
        self.port.get_or_insert(port);
        self
    }

    /// Returns whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.name.parse::<IpAddr>();
        self.name == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// Reads a JSON array of one host or more.
pub(super) fn read(text: &str) -> Option<Vec<Host>> {
    list(text, Host::parse)
}

/// Returns the names of this machine for itself, and the address that the server listens on.
pub(super) fn own(listen: SocketAddr) -> Vec<Host> {
    let mut hosts: Vec<String> = LOOPBACK.map(str::to_owned).into();
    let ip = listen.ip();
    if !ip.is_unspecified() && !ip.is_loopback() {
        hosts.push(ip.to_string());
    }
    hosts.iter().filter_map(|host| Host::parse(host)).collect()
}
