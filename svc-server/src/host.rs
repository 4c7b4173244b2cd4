//! Hosts and origins, in settings and in the headers of requests.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, header};

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
            let after = text.strip_prefix(authority.host())?;
            let port = match after.strip_prefix(':') {
                Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                    Some(port.parse().ok()?)
                }
                None if after.is_empty() => None,
                Some(_) | None => return None,
            };
            let name = authority.host().trim_matches(['[', ']']).to_owned();
            (name, port)
        };
        Some(Self {
            text: text.to_owned(),
            name: name.to_ascii_lowercase(),
            port,
        })
    }

    /// Returns the text that the host was parsed from.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host with this port, unless it has one.
    pub(crate) fn with_port(mut self, port: u16) -> Self {
        self.port.get_or_insert(port);
        self
    }

    /// Returns the host that a request is for: the one in its absolute target, which counts alone
    /// (RFC 9112), or else in its header, if it names exactly one.
    pub(crate) fn of_target(uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        match uri.authority() {
            Some(authority) => Self::parse(authority.as_str()),
            None => Self::of(headers),
        }
    }

    /// Returns the host in the header of a request, if it names exactly one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        one(headers, &header::HOST).and_then(Self::parse)
    }

    /// Returns whether the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.name.parse::<IpAddr>();
        self.name == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// The origin of the page that sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageOrigin {
    /// The host, with the port if the header has one.
    pub(crate) host: Host,
    pub(crate) is_https: bool,
}

impl PageOrigin {
    /// Returns the origin that a request names, if it names exactly one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let origin: Uri = one(headers, &header::ORIGIN)?.parse().ok()?;
        let is_https = match origin.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return None,
        };
        let host = Host::parse(origin.authority()?.as_str())?;
        Some(Self { host, is_https })
    }

    /// Returns the port that the scheme implies.
    pub(crate) const fn default_port(&self) -> u16 {
        if self.is_https { 443 } else { 80 }
    }

    /// Returns whether the origin's pages come from this host.
    pub(crate) fn is_of(&self, host: &Host) -> bool {
        let port = |host: &Host| host.port.unwrap_or(self.default_port());
        host.name == self.host.name && port(host) == port(&self.host)
    }
}

/// Returns the value of a header that occurs exactly once.
pub(crate) fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_same(host: &'static str, origin: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        let host = Host::of(&headers).unwrap();
        PageOrigin::of(&headers).is_some_and(|origin| origin.is_of(&host))
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for (text, expected) in [
            ("127.0.0.1", Some(("127.0.0.1", None))),
            ("LocalHost:8000", Some(("localhost", Some(8_000)))),
            ("[::1]:80", Some(("::1", Some(80)))),
            ("::1", Some(("::1", None))),
            ("a@127.0.0.1", None),
            ("127.0.0.1:abc", None),
            ("127.0.0.1:", None),
            ("127.0.0.1:+80", None),
            ("127.0.0.1:70000", None),
            ("127.0.0.1/x", None),
            (":80", None),
            ("", None),
        ] {
            let host = Host::parse(text);
            let host = host.as_ref().map(|host| (&*host.name, host.port));
            assert_eq!(host, expected, "{text}");
        }
    }

    #[test]
    fn an_origin_matches_a_host_by_name_and_port() {
        for (host, origin, expected) in [
            ("localhost:8000", "http://localhost:8000", true),
            ("LOCALHOST:8000", "http://localhost:8000", true),
            ("[::1]:8000", "http://[::1]:8000", true),
            ("svc.example", "https://svc.example", true),
            ("svc.example:443", "https://svc.example", true),
            ("svc.example", "http://svc.example:80", true),
            ("localhost:8000", "http://localhost:8001", false),
            ("localhost:8000", "http://localhost", false),
            ("localhost:8000", "http://127.0.0.1:8000", false),
            ("svc.example", "https://evil.example", false),
            ("svc.example", "null", false),
            ("svc.example", "file://svc.example", false),
            ("svc.example", "https://a@svc.example", false),
        ] {
            assert_eq!(is_same(host, origin), expected, "{host} {origin}");
        }
    }
}
