//! A parsed clone URL.
//!
//! Only what git needs is kept, and only in plain form, because git interprets URLs in more ways
//! than a forge ever uses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use svc_model::repository::RepositoryHost;

/// Why a clone URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloneUrlRefusal {
    /// The scheme is not http, https, git or ssh, or the text is not a URL.
    #[error("the scheme is not http, https, git or ssh")]
    Scheme,
    /// The URL names no host, or something that is not a host name.
    #[error("there is no host name")]
    Host,
    /// The path or the port is invalid.
    #[error("the path or port is malformed")]
    Shape,
    /// The host is not among the allowed ones.
    #[error("the host is not among the allowed ones")]
    NotListed,
    /// The host has an address that is not public.
    #[error("the host has an address that is not public")]
    Internal,
    /// The protocol does not authenticate the host, and the host is not among the allowed ones.
    #[error("git:// needs a host that is listed")]
    Unauthenticated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
    Git,
    Ssh,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Git, Self::Ssh];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Git => "git",
            Self::Ssh => "ssh",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Git => 9418,
            Self::Ssh => 22,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(RepositoryHost),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// The parts of a clone URL, without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CloneUrl {
    pub(super) scheme: Scheme,
    pub(super) host: Host,
    port: Option<u16>,
    pub(super) path: String,
}

impl CloneUrl {
    pub(super) fn parse(text: &str) -> Result<Self, CloneUrlRefusal> {
        let (scheme, rest) = text.split_once("://").ok_or(CloneUrlRefusal::Scheme)?;
        let scheme = Scheme::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(scheme))
            .ok_or(CloneUrlRefusal::Scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, after)| after);
        let (host, port) = split_port(authority)?;
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'?' | b'#');
        if !path.starts_with('/') || !path.bytes().all(plain) {
            return Err(CloneUrlRefusal::Shape);
        }
        Ok(Self {
            scheme,
            host,
            port,
            path: path.to_owned(),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.port())
    }

    pub(super) fn authority(&self) -> String {
        let host = match &self.host {
            Host::Name(name) => name.to_string(),
            Host::Address(address) => bracketed(*address),
        };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }
}

fn split_port(authority: &str) -> Result<(Host, Option<u16>), CloneUrlRefusal> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(CloneUrlRefusal::Host)?;
        let address: Ipv6Addr = address.parse().map_err(|_| CloneUrlRefusal::Host)?;
        (Host::Address(address.into()), after.strip_prefix(':'))
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let host = match host.parse::<Ipv4Addr>() {
            Ok(address) => Host::Address(address.into()),
            Err(_) => Host::Name(RepositoryHost::new(host).ok_or(CloneUrlRefusal::Host)?),
        };
        (host, port)
    };
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(
            port.parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or(CloneUrlRefusal::Shape)?,
        ),
    };
    Ok((host, port))
}

pub(super) fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
