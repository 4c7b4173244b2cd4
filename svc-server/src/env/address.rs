//! The address that a server listens on.

use std::net::{SocketAddr, ToSocketAddrs as _};

/// Why a text is not an address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    /// It has no host or no port.
    #[error("must be HOST:PORT, such as 127.0.0.1:8000, localhost:8000 or [::1]:8000")]
    Malformed,
    /// The name has no address.
    #[error("must be HOST:PORT, but this machine cannot resolve the host")]
    Unknown,
}

/// Parses an address, or a name of this machine. If a name such as `localhost` has several
/// addresses, the IPv4 one is used, because clients try it first.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, AddressError> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or(AddressError::Malformed)?;
    let port: u16 = port.parse().map_err(|_| AddressError::Malformed)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.is_empty() || !host.bytes().all(is_name) {
        return Err(AddressError::Malformed);
    }
    let addresses = (host, port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = addresses.map_err(|_| AddressError::Unknown)?.collect();
    let preferred = addresses.iter().find(|address| address.is_ipv4());
    let preferred = preferred.or(addresses.first()).copied();
    preferred.ok_or(AddressError::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_read() {
        for (text, expected) in [
            ("127.0.0.1:8000", "127.0.0.1:8000"),
            (" 0.0.0.0:0 ", "0.0.0.0:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:8301", "127.0.0.1:8301"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused() {
        for text in [
            "",
            "8000",
            ":8000",
            "localhost",
            "localhost:",
            "a b:1",
            "::1:x",
        ] {
            assert_eq!(parse(text), Err(AddressError::Malformed), "{text}");
        }
        for text in ["localhost:65536", "http://localhost:80", "localhost:80/x"] {
            assert_eq!(parse(text), Err(AddressError::Malformed), "{text}");
        }
    }
}
