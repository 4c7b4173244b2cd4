//! Checks the host and the origin of requests.

use axum::http::{HeaderMap, HeaderName};

use crate::host::{Host, PageOrigin, one};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The hosts of the console, with or without a port.
pub(super) struct Hosts(Vec<Host>);

/// How a page reached the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Over plain HTTP, on this machine.
    Loopback,
    /// Over an encrypted connection.
    Https,
}

/// Why a form is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForeignForm {
    /// It was not sent from a page of this console, as far as its headers show.
    Origin,
    /// It was sent over plain HTTP from another machine.
    PlainHttp,
}

impl Hosts {
    pub(super) fn new(hosts: &[Host]) -> Self {
        Self(hosts.to_vec())
    }

    /// Returns whether these hosts include the one that a request names.
    pub(super) fn name(&self, headers: &HeaderMap) -> bool {
        Host::of(headers).is_some_and(|host| self.has(&host))
    }

    fn has(&self, host: &Host) -> bool {
        let is_it = |known: &Host| {
            // A browser omits a scheme's default port.
            let is_left_out = host.port.is_none() && matches!(known.port, Some(80 | 443));
            let is_port = known.port.is_none() || known.port == host.port || is_left_out;
            known.name == host.name && is_port
        };
        self.0.iter().any(is_it)
    }

    /// Checks that a form was sent from a page of this console.
    ///
    /// Current browsers send this information. For others, the origin must be the host of the
    /// request.
    pub(super) fn check_form(&self, headers: &HeaderMap) -> Result<Scheme, ForeignForm> {
        let origin = PageOrigin::of(headers).ok_or(ForeignForm::Origin)?;
        let is_ours = match (headers.contains_key(FETCH_SITE), Host::of(headers)) {
            (true, _) => one(headers, &FETCH_SITE) == Some("same-origin"),
            (false, None) => false,
            (false, Some(host)) => origin.is_of(&host),
        };
        let named = origin.host.clone().with_port(origin.default_port());
        if !is_ours || !(self.has(&origin.host) || self.has(&named)) {
            return Err(ForeignForm::Origin);
        }
        if origin.is_https {
            Ok(Scheme::Https)
        } else if origin.host.is_loopback() {
            Ok(Scheme::Loopback)
        } else {
            Err(ForeignForm::PlainHttp)
        }
    }
}

/// Returns whether another site sent the browser here.
pub(super) fn is_led_from_elsewhere(headers: &HeaderMap) -> bool {
    one(headers, &FETCH_SITE).is_some_and(|site| matches!(site, "cross-site" | "same-site"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let all = all.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        all.collect()
    }

    fn hosts() -> Hosts {
        let hosts = [
            "localhost",
            "::1",
            "svc.example",
            "10.0.0.1:8000",
            "other.example:443",
        ];
        Hosts::new(&hosts.map(|host| Host::parse(host).expect("a host")))
    }

    #[test]
    fn the_console_answers_only_its_configured_hosts() {
        for (host, is_it) in [
            ("localhost:8000", true),
            ("LOCALHOST", true),
            ("[::1]:8000", true),
            ("svc.example:443", true),
            ("10.0.0.1:8000", true),
            ("10.0.0.1:8001", false),
            ("10.0.0.1", false),
            ("other.example", true),
            ("other.example:8443", false),
            ("evil.example", false),
            ("svc.example.evil.example", false),
            ("a@svc.example", false),
            ("", false),
        ] {
            assert_eq!(hosts().name(&headers(&[("host", host)])), is_it, "{host}");
        }
        assert!(!hosts().name(&HeaderMap::new()));
        let mut two = headers(&[("host", "localhost")]);
        two.append("host", HeaderValue::from_static("localhost"));
        assert!(!hosts().name(&two));
    }

    #[test]
    fn a_form_is_accepted_only_from_pages_of_the_console() {
        let check = |all: &[(&'static str, &'static str)]| hosts().check_form(&headers(all));
        let local = ("host", "localhost:8000");
        for (origin, expected) in [
            ("http://localhost:8000", Ok(Scheme::Loopback)),
            ("http://localhost:8001", Err(ForeignForm::Origin)),
            ("http://localhost", Err(ForeignForm::Origin)),
            ("https://evil.example", Err(ForeignForm::Origin)),
            ("null", Err(ForeignForm::Origin)),
        ] {
            assert_eq!(check(&[local, ("origin", origin)]), expected, "{origin}");
        }
        assert_eq!(check(&[local]), Err(ForeignForm::Origin));
        let https = [
            ("host", "svc.example"),
            ("origin", "https://svc.example:443"),
        ];
        assert_eq!(check(&https), Ok(Scheme::Https));
        let plain = [("host", "svc.example"), ("origin", "http://svc.example")];
        assert_eq!(check(&plain), Err(ForeignForm::PlainHttp));
        // A proxy may name another host, but the browser says that the page is ours.
        let proxied = |site| {
            check(&[
                local,
                ("origin", "https://svc.example"),
                ("sec-fetch-site", site),
            ])
        };
        assert_eq!(proxied("same-origin"), Ok(Scheme::Https));
        assert_eq!(proxied("same-site"), Err(ForeignForm::Origin));
        let foreign = [
            local,
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(check(&foreign), Err(ForeignForm::Origin));
    }
}
