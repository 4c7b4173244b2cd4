//! The hosts that requests to the console and to `/mcp` may name.

use std::net::SocketAddr;

use crate::host::Host;

/// The names that this machine has for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns the names that this machine has for itself, and the address that the server listens on.
pub(super) fn own_hosts(listen: SocketAddr) -> Vec<Host> {
    let mut hosts: Vec<String> = LOOPBACK.map(str::to_owned).into();
    let ip = listen.ip();
    if !ip.is_unspecified() && !ip.is_loopback() {
        hosts.push(ip.to_string());
    }
    hosts.iter().filter_map(|host| Host::parse(host)).collect()
}
