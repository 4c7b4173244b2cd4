//! The base URL of a service.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

/// Whether a token may be sent to other machines without encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    /// Only to this machine, over a loopback address.
    #[default]
    Loopback,
    /// To any machine, because the caller asked for it.
    Anywhere,
}

/// The URL of a service: a scheme, a host, an optional port, and optionally the path prefix of a
/// proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

/// Why a text is not a valid base URL. The text is never repeated, because it may contain a
/// credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// It cannot be parsed, or has no host.
    #[error("the URL of the service cannot be parsed")]
    Malformed,
    /// It is neither `https` nor `http`.
    #[error("the URL of the service must start with https:// or http://")]
    Scheme,
    /// It is `http` to another machine: anyone on the network could read the token.
    #[error("the URL of the service must be https, or http on a loopback address")]
    PlainHttp,
    /// It contains a user or a password.
    #[error("the URL of the service must contain no user or password")]
    UserInfo,
    /// Its path has an empty segment.
    #[error("the path in the URL of the service must have no empty segment")]
    Path,
    /// It has a query or a fragment.
    #[error("the URL of the service must have no query and no fragment")]
    QueryOrFragment,
}

impl BaseUrl {
    pub(crate) fn parse(text: &str, plain_http: PlainHttp) -> Result<Self, BaseUrlError> {
        let url = Url::parse(text.trim()).map_err(|_| BaseUrlError::Malformed)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(BaseUrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::UserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BaseUrlError::QueryOrFragment);
        }
        if url.path().contains("//") {
            return Err(BaseUrlError::Path);
        }
        let base = Self(url);
        if base.0.scheme() == "http" && plain_http == PlainHttp::Loopback && !base.is_loopback() {
            return Err(BaseUrlError::PlainHttp);
        }
        Ok(base)
    }

    /// Returns whether the service is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Returns the URL of a route. `target` starts with a slash and is already encoded.
    pub(crate) fn join(&self, target: &str) -> Option<Url> {
        let url = Url::parse(&format!("{self}{target}")).ok()?;
        // The URL library resolves the segments `.` and `..`, which would address another route.
        (url.as_str().strip_prefix(self.as_str())? == target).then_some(url)
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, BaseUrlError> {
        BaseUrl::parse(text, PlainHttp::Loopback).map(|url| url.to_string())
    }

    #[test]
    fn a_trailing_slash_is_dropped() {
        assert_eq!(
            parse("https://svc.example/").unwrap(),
            "https://svc.example"
        );
        assert_eq!(
            parse(" http://127.0.0.1:8000 ").unwrap(),
            "http://127.0.0.1:8000"
        );
        assert_eq!(
            parse("https://svc.example:8443").unwrap(),
            "https://svc.example:8443"
        );
    }

    #[test]
    fn a_path_in_the_base_url_precedes_every_route() {
        for text in [
            "https://example.org/tools/svc",
            "https://example.org/tools/svc/",
        ] {
            let base = BaseUrl::parse(text, PlainHttp::Loopback).unwrap();
            assert_eq!(base.as_str(), "https://example.org/tools/svc");
            assert_eq!(
                base.join("/a/b%2Fc?d=e").unwrap().as_str(),
                "https://example.org/tools/svc/a/b%2Fc?d=e"
            );
            assert_eq!(base.join("/.."), None);
        }
    }

    #[test]
    fn plain_http_is_allowed_only_to_this_machine() {
        for near in [
            "http://localhost:1",
            "http://127.9.9.9",
            "http://[::1]:8000",
        ] {
            assert!(parse(near).is_ok(), "{near}");
        }
        for far in [
            "http://svc.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://[::2]",
        ] {
            assert_eq!(parse(far), Err(BaseUrlError::PlainHttp), "{far}");
            assert!(BaseUrl::parse(far, PlainHttp::Anywhere).is_ok(), "{far}");
        }
    }

    #[test]
    fn an_invalid_base_url_is_refused() {
        for (text, error) in [
            ("", BaseUrlError::Malformed),
            ("svc.example", BaseUrlError::Malformed),
            ("ftp://svc.example", BaseUrlError::Scheme),
            ("https://me@svc.example", BaseUrlError::UserInfo),
            ("https://:word@svc.example", BaseUrlError::UserInfo),
            ("https://svc.example/a//b", BaseUrlError::Path),
            ("https://svc.example//", BaseUrlError::Path),
            ("https://svc.example/?a", BaseUrlError::QueryOrFragment),
            ("https://svc.example/#a", BaseUrlError::QueryOrFragment),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_target_is_kept_unchanged_or_refused() {
        let base = BaseUrl::parse("https://svc.example", PlainHttp::Loopback).unwrap();
        let joined = |target| base.join(target).map(|url| url.to_string());
        assert_eq!(
            joined("/a/b%2Fc?d=e%20f").unwrap(),
            "https://svc.example/a/b%2Fc?d=e%20f"
        );
        for resolved in ["/a/..", "/a/%2e%2E/b", "/a/./b", "/a/%2e"] {
            assert_eq!(joined(resolved), None, "{resolved}");
        }
    }
}
