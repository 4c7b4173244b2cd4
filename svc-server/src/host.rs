//! Hosts and origins, as settings and the headers of requests name them.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, header};

/// A host, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// In small letters, an address of version 6 without its brackets.
    pub(crate) name: String,
    pub(crate) port: Option<u16>,
}

impl Host {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.parse::<Ipv6Addr>().is_ok() {
            let name = text.to_ascii_lowercase();
            return Some(Self { name, port: None });
        }
        let authority: Authority = text.parse().ok()?;
        let is_plain = !text.contains('@') && !authority.host().is_empty();
        let name = authority.host().trim_matches(['[', ']']);
        is_plain.then(|| Self {
            name: name.to_ascii_lowercase(),
            port: authority.port_u16(),
        })
    }

    /// Returns the one host that a request names.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        one(headers, &header::HOST).and_then(Self::parse)
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.name.parse::<IpAddr>();
        self.name == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// From where a browser loaded the page that sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its host, as it stands there.
    pub(crate) host: Host,
    pub(crate) is_https: bool,
}

impl Origin {
    /// Returns the one origin that a request names.
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

    /// Returns the port that it has anyway where none stands there.
    pub(crate) const fn default_port(&self) -> u16 {
        if self.is_https { 443 } else { 80 }
    }

    /// Returns whether its pages come from this host.
    pub(crate) fn is_of(&self, host: &Host) -> bool {
        let port = |host: &Host| host.port.unwrap_or(self.default_port());
        host.name == self.host.name && port(host) == port(&self.host)
    }
}

/// Returns the value of a header that stands there once.
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
        Origin::of(&headers).is_some_and(|origin| origin.is_of(&host))
    }

    #[test]
    fn a_page_is_of_a_host_by_its_name_and_its_port() {
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
