//! From where a mirror may be fetched.
//!
//! The URL comes from outside, and git would go wherever it points: into this machine, into the
//! network behind the firewall, to a program. So it is taken apart, and git gets one that is put
//! together here, with the addresses that were checked, so that a name which resolves differently a
//! second later leads nowhere else.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};
use svc_model::repository::RepositoryHost;

use super::allowance::{Allowance, Stopped};

/// How long a name may take to resolve.
const RESOLUTION_MAX: Duration = Duration::from_secs(10);

/// Which hosts a mirror may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// These, wherever they are: whole names, without a port.
    Listed(Vec<String>),
    /// Every host whose addresses are all public.
    Public,
    /// Every host, local paths and files too. For development only.
    Anything,
}

/// Why a clone URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its scheme is none of http, https, git and ssh, or it is no URL.
    #[error("the scheme is not http, https, git or ssh")]
    Scheme,
    /// It names no host, or one that is no host name.
    #[error("there is no host name")]
    Host,
    /// Its path or port is none.
    #[error("the path or port is malformed")]
    Shape,
    /// Its host is not among the allowed ones.
    #[error("the host is not among the allowed ones")]
    NotListed,
    /// Its host has an address that is not public.
    #[error("the host has an address that is not public")]
    Internal,
    /// Nothing says who is at the other end, and the host is not among the allowed ones.
    #[error("git:// needs a host that is listed")]
    Unauthenticated,
}

/// Why there is nothing to fetch from.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    /// The URL is refused, for good.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name of the host does not resolve, now.
    #[error("the host does not resolve")]
    Unresolved(#[source] io::Error),
    /// The allowance was used up.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Returns the addresses of a name.
pub type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Decides from where a mirror may be fetched, and with which credential.
#[derive(Clone)]
pub struct Remotes {
    allowed: AllowedHosts,
    tokens: Arc<BTreeMap<RepositoryHost, SecretString>>,
    resolve: Arc<Resolve>,
}

impl fmt::Debug for Remotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remotes")
            .field("allowed", &self.allowed)
            .field("tokens", &self.tokens.keys())
            .finish_non_exhaustive()
    }
}

/// What git is told about the other side of a fetch.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) url: String,
    pub(super) settings: Vec<(String, String)>,
    pub(super) environment: Vec<(String, String)>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings hold the credential.
        f.debug_struct("Remote")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Remotes {
    /// Allows these hosts, with these tokens, by the resolver of the system.
    pub fn new(allowed: AllowedHosts, tokens: BTreeMap<RepositoryHost, SecretString>) -> Self {
        Self {
            allowed,
            tokens: Arc::new(tokens),
            resolve: Arc::new(|host, port| {
                let addresses = (host, port).to_socket_addrs()?;
                Ok(addresses.map(|address| address.ip()).collect())
            }),
        }
    }

    /// Returns which hosts are allowed.
    pub fn allowed(&self) -> &AllowedHosts {
        &self.allowed
    }

    /// Resolves names with this.
    #[must_use]
    pub fn resolving_with(mut self, resolve: Arc<Resolve>) -> Self {
        self.resolve = resolve;
        self
    }

    /// Returns what git is told to fetch from a clone URL.
    pub(super) fn check(&self, url: &str, allowance: &Allowance) -> Result<Remote, RemoteError> {
        let url = match CloneUrl::parse(url) {
            Ok(url) => url,
            Err(_) if self.allowed == AllowedHosts::Anything => return Ok(Remote::local(url)),
            Err(refusal) => return Err(refusal.into()),
        };
        let name = url.host.to_string();
        match &self.allowed {
            AllowedHosts::Listed(hosts) => {
                if !hosts.iter().any(|host| host.eq_ignore_ascii_case(&name)) {
                    return Err(Refusal::NotListed.into());
                }
            }
            AllowedHosts::Public => {
                if url.scheme == Scheme::Git {
                    return Err(Refusal::Unauthenticated.into());
                }
            }
            AllowedHosts::Anything => {}
        }
        let addresses = match &url.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.addresses(name.as_str(), url.port(), allowance)?,
        };
        let all_public = addresses.iter().all(|address| is_public(*address));
        if self.allowed == AllowedHosts::Public && !all_public {
            return Err(Refusal::Internal.into());
        }
        Ok(self.remote(&url, &addresses))
    }

    /// Resolves a name. The system's resolver cannot be stopped, but it can be left behind.
    fn addresses(
        &self,
        name: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<Vec<IpAddr>, RemoteError> {
        let left = allowance.left()?.min(RESOLUTION_MAX);
        let (answer, answered) = sync_channel(1);
        let (resolve, name) = (Arc::clone(&self.resolve), name.to_owned());
        std::thread::Builder::new()
            .name("svc-resolver".to_owned())
            .spawn(move || drop(answer.send(resolve(&name, port))))
            .map_err(RemoteError::Unresolved)?;
        let addresses = match answered.recv_timeout(left) {
            Ok(addresses) => addresses,
            Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::Other.into()),
        };
        let addresses = addresses.map_err(RemoteError::Unresolved)?;
        if addresses.is_empty() {
            return Err(RemoteError::Unresolved(io::ErrorKind::NotFound.into()));
        }
        Ok(addresses)
    }

    fn remote(&self, url: &CloneUrl, addresses: &[IpAddr]) -> Remote {
        let scheme = url.scheme.as_str();
        let mut remote = Remote {
            url: format!("{scheme}://{}{}", url.authority(), url.path),
            settings: vec![setting(&format!("protocol.{scheme}.allow"), "always")],
            environment: Vec::new(),
        };
        match url.scheme {
            Scheme::Http | Scheme::Https => self.pin_http(url, addresses, &mut remote),
            Scheme::Git => pin_git(url, addresses, &mut remote),
            Scheme::Ssh => pin_ssh(url, addresses, &mut remote),
        }
        remote
    }

    fn pin_http(&self, url: &CloneUrl, addresses: &[IpAddr], remote: &mut Remote) {
        if let Host::Name(name) = &url.host {
            let pinned: Vec<String> = addresses.iter().map(|it| bracketed(*it)).collect();
            let pin = format!("{name}:{}:{}", url.port(), pinned.join(","));
            remote.settings.push(setting("http.curlOptResolve", &pin));
        }
        let host = RepositoryHost::new(&url.host.to_string());
        let token = host.and_then(|host| self.tokens.get(&host));
        // A token would be readable on its way over http.
        if let (Scheme::Https, Some(token)) = (url.scheme, token) {
            let base = format!("https://{}/", url.authority());
            let header = authorization(token);
            remote
                .settings
                .push(setting(&format!("http.{base}.extraHeader"), &header));
        }
    }
}

/// git connects to the address and asks for the host by name.
fn pin_git(url: &CloneUrl, addresses: &[IpAddr], remote: &mut Remote) {
    if let (Host::Name(_), Some(address)) = (&url.host, addresses.first()) {
        remote.url = format!("git://{}:{}{}", bracketed(*address), url.port(), url.path);
        remote
            .environment
            .push(setting("GIT_OVERRIDE_VIRTUAL_HOST", &url.authority()));
    }
}

/// ssh connects to the address and knows the key of the host by name. The service's own key and the
/// hosts it knows are those of the account it runs under.
fn pin_ssh(url: &CloneUrl, addresses: &[IpAddr], remote: &mut Remote) {
    let pin = if let (Host::Name(name), Some(address)) = (&url.host, addresses.first()) {
        let alias = match url.port() {
            22 => name.to_string(),
            port => format!("[{name}]:{port}"),
        };
        format!(" -o 'HostName={address}' -o 'HostKeyAlias={alias}'")
    } else {
        String::new()
    };
    let command = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=20 \
                   -o ServerAliveInterval=15 -o ControlMaster=no -o ControlPath=none \
                   -o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o User=git"
        .to_owned()
        + &pin;
    remote.environment.extend([
        setting("GIT_SSH_COMMAND", &command),
        setting("GIT_SSH_VARIANT", "ssh"),
    ]);
}

impl Remote {
    /// Returns a path or file of this machine.
    fn local(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            settings: vec![setting("protocol.file.allow", "always")],
            environment: Vec::new(),
        }
    }
}

fn setting(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns the header of a token: `TOKEN`, which forges take as the password of any user, or
/// `USER:PASSWORD`.
fn authorization(token: &SecretString) -> String {
    let token = token.expose_secret();
    let pair = if token.contains(':') {
        token.to_owned()
    } else {
        format!("x-access-token:{token}")
    };
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    format!("Authorization: Basic {encoded}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Git,
    Ssh,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Git, Self::Ssh];

    const fn as_str(self) -> &'static str {
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
enum Host {
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

/// A clone URL in its parts. User and password are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CloneUrl {
    scheme: Scheme,
    host: Host,
    port: Option<u16>,
    path: String,
}

impl CloneUrl {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let (scheme, rest) = text.split_once("://").ok_or(Refusal::Scheme)?;
        let scheme = Scheme::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(scheme))
            .ok_or(Refusal::Scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, after)| after);
        let (host, port) = split_port(authority)?;
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'?' | b'#');
        if !path.starts_with('/') || !path.bytes().all(plain) {
            return Err(Refusal::Shape);
        }
        Ok(Self {
            scheme,
            host,
            port,
            path: path.to_owned(),
        })
    }

    fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.port())
    }

    fn authority(&self) -> String {
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

fn split_port(authority: &str) -> Result<(Host, Option<u16>), Refusal> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(Refusal::Host)?;
        let address: Ipv6Addr = address.parse().map_err(|_| Refusal::Host)?;
        (Host::Address(address.into()), after.strip_prefix(':'))
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let host = match host.parse::<Ipv4Addr>() {
            Ok(address) => Host::Address(address.into()),
            Err(_) => Host::Name(RepositoryHost::new(host).ok_or(Refusal::Host)?),
        };
        (host, port)
    };
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(
            port.parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or(Refusal::Shape)?,
        ),
    };
    Ok((host, port))
}

fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Returns whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match a {
        0 | 10 | 127 | 224.. => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => matches!((b, c), (168, _) | (0, 0 | 2) | (88, 99)),
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        _ => false,
    };
    !special
}

/// Returns the address that an IPv6 address stands for: mapped, or behind a translator.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let translated = address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    if !translated {
        return address.to_ipv4_mapped();
    }
    let [.., a, b, c, d] = address.octets();
    Some(Ipv4Addr::new(a, b, c, d))
}

/// Only 2000::/3 is given out; parts of it are for documentation, tunnels and other special ends.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    match a {
        0x2001 => b >= 0x200 && b != 0xdb8,
        0x2002 => false,
        0x3fff => b >= 0x1000,
        _ => (0x2000..0x4000).contains(&a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::allowance::CallOff;

    fn long() -> Allowance {
        Allowance::of(Duration::from_secs(30), CallOff::default())
    }

    /// Names that are resolved for the tests.
    fn resolve(name: &str, _: u16) -> io::Result<Vec<IpAddr>> {
        let addresses: &[&str] = match name {
            "public.example" => &["93.184.216.34", "2606:2800:220:1::1"],
            "mixed.example" => &["93.184.216.34", "10.0.0.1"],
            "inside.example" => &["fd00::1"],
            "2130706433" | "localhost" | "x.localhost" | "0x7f000001" => &["127.0.0.1"],
            "empty.example" => &[],
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(addresses.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn remotes(allowed: AllowedHosts) -> Remotes {
        let token = SecretString::from("token-token-token");
        let tokens = [("public.example", token)]
            .map(|(host, token)| (RepositoryHost::new(host).unwrap(), token));
        Remotes::new(allowed, tokens.into()).resolving_with(Arc::new(resolve))
    }

    fn listed(hosts: &[&str]) -> Remotes {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        remotes(AllowedHosts::Listed(hosts))
    }

    fn refusal(remotes: &Remotes, url: &str) -> Option<Refusal> {
        match remotes.check(url, &long()) {
            Ok(_) => None,
            Err(RemoteError::Refused(refusal)) => Some(refusal),
            Err(other) => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_url_of_a_forge_is_refused() {
        let remotes = listed(&["public.example"]);
        for (url, expected) in [
            ("", Refusal::Scheme),
            ("/srv/git/r.git", Refusal::Scheme),
            ("r.git", Refusal::Scheme),
            ("file:///srv/git/r.git", Refusal::Scheme),
            ("ftp://public.example/r.git", Refusal::Scheme),
            ("ext::git-upload-pack /srv/r.git", Refusal::Scheme),
            ("ext::sh -c 'x' https://public.example/", Refusal::Scheme),
            ("git@public.example:o/r.git", Refusal::Scheme),
            (" https://public.example/r", Refusal::Scheme),
            ("--upload-pack=x", Refusal::Scheme),
            ("git+ssh://public.example/r", Refusal::Scheme),
            ("https://", Refusal::Host),
            ("https:///r.git", Refusal::Host),
            ("https://user@/r.git", Refusal::Host),
            ("https://-oProxyCommand=x/r.git", Refusal::Host),
            ("ssh://-oProxyCommand=x/r.git", Refusal::Host),
            ("https://public.example./r.git", Refusal::Host),
            ("https://public_example/r.git", Refusal::Host),
            ("https://pub%6cic.example/r.git", Refusal::Host),
            ("https://evil\\@public example/r.git", Refusal::Host),
            ("https://[::1/r.git", Refusal::Host),
            ("https://[fe80::1%25eth0]/r.git", Refusal::Host),
            ("https://public.example", Refusal::Shape),
            ("https://public.example?x/r.git", Refusal::Shape),
            ("https://public.example/r.git?x=1", Refusal::Shape),
            ("https://public.example/r.git#x", Refusal::Shape),
            ("https://public.example/a b", Refusal::Shape),
            ("https://public.example/a\nb", Refusal::Shape),
            ("https://public.example/a\\b", Refusal::Shape),
            ("https://public.example:0/r.git", Refusal::Shape),
            ("https://public.example:65536/r.git", Refusal::Shape),
            ("https://public.example:4a/r.git", Refusal::Shape),
        ] {
            assert_eq!(refusal(&remotes, url), Some(expected), "{url:?}");
        }
    }

    #[test]
    fn a_list_names_whole_hosts() {
        let remotes = listed(&["Public.Example", "127.0.0.1", "localhost"]);
        for url in [
            "https://public.example/o/r.git",
            "HTTPS://PUBLIC.example:8443/o/r.git",
            "https://user:password@public.example/o/r.git",
            "http://127.0.0.1:3000/o/r.git",
            "git://127.0.0.1:9418/r.git",
            "ssh://git@localhost:2222/o/r.git",
        ] {
            assert_eq!(refusal(&remotes, url), None, "{url}");
        }
        for url in [
            "https://sub.public.example/o/r.git",
            "https://example/o/r.git",
            "https://public.example.evil/o/r.git",
            "https://public.example@evil.example/o/r.git",
            "git://127.0.0.2/r.git",
            "git://127.1/r.git",
            "git://2130706433/r.git",
            "git://[::1]/r.git",
            "git://[::ffff:127.0.0.1]/r.git",
        ] {
            assert_eq!(refusal(&remotes, url), Some(Refusal::NotListed), "{url}");
        }
    }

    #[test]
    fn without_a_list_every_address_must_be_public() {
        let remotes = remotes(AllowedHosts::Public);
        assert_eq!(refusal(&remotes, "https://public.example/r"), None);
        assert_eq!(refusal(&remotes, "https://8.8.8.8/r"), None);
        assert_eq!(
            refusal(&remotes, "git://public.example/r"),
            Some(Refusal::Unauthenticated)
        );
        for host in [
            "mixed.example",
            "inside.example",
            "localhost",
            "x.localhost",
            "2130706433",
            "0x7f000001",
            "127.0.0.1",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::7f00:1]",
        ] {
            let url = format!("https://{host}/r");
            assert_eq!(refusal(&remotes, &url), Some(Refusal::Internal), "{host}");
        }
        for host in ["empty.example", "absent.example"] {
            let checked = remotes.check(&format!("https://{host}/r"), &long());
            assert!(matches!(checked, Err(RemoteError::Unresolved(_))), "{host}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.255.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.53",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:100.64.0.1",
            "::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
        for public in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn http_goes_to_the_checked_addresses_and_the_token_only_over_tls() {
        let remotes = listed(&["public.example", "127.0.0.1"]);
        let https = remotes
            .check("https://u:p@public.example:8443/o/r.git", &long())
            .unwrap();
        assert_eq!(https.url, "https://public.example:8443/o/r.git");
        assert_eq!(
            https.settings,
            [
                setting("protocol.https.allow", "always"),
                setting(
                    "http.curlOptResolve",
                    "public.example:8443:93.184.216.34,[2606:2800:220:1::1]"
                ),
                setting(
                    "http.https://public.example:8443/.extraHeader",
                    "Authorization: Basic eC1hY2Nlc3MtdG9rZW46dG9rZW4tdG9rZW4tdG9rZW4="
                ),
            ]
        );
        assert!(!format!("{https:?} {remotes:?}").contains("token-token"));
        let http = remotes.check("http://public.example/r", &long()).unwrap();
        assert!(!format!("{:?}", http.settings).contains("extraHeader"));
        let literal = remotes.check("http://127.0.0.1:3000/r", &long()).unwrap();
        assert_eq!(
            literal.settings,
            [setting("protocol.http.allow", "always")],
            "an address needs no pin"
        );
        let pair = authorization(&SecretString::from("me:word"));
        assert_eq!(pair, "Authorization: Basic bWU6d29yZA==");
    }

    #[test]
    fn git_and_ssh_connect_to_the_checked_address() {
        let remotes = listed(&["public.example"]);
        let git = remotes
            .check("git://public.example:9000/r.git", &long())
            .unwrap();
        assert_eq!(git.url, "git://93.184.216.34:9000/r.git");
        assert_eq!(
            git.environment,
            [setting("GIT_OVERRIDE_VIRTUAL_HOST", "public.example:9000")]
        );
        let ssh = remotes
            .check("ssh://git@public.example/o/r.git", &long())
            .unwrap();
        assert_eq!(ssh.url, "ssh://public.example/o/r.git");
        let command = &ssh.environment[0].1;
        assert!(command.contains("-o 'HostName=93.184.216.34' -o 'HostKeyAlias=public.example'"));
        assert!(command.contains("BatchMode=yes"));
        let port = remotes
            .check("ssh://public.example:2222/r", &long())
            .unwrap();
        assert!(
            port.environment[0]
                .1
                .contains("'HostKeyAlias=[public.example]:2222'")
        );
    }

    #[test]
    fn in_development_everything_goes_but_programs() {
        let remotes = remotes(AllowedHosts::Anything);
        let file = remotes.check("file:///srv/r.git", &long()).unwrap();
        assert_eq!(file.url, "file:///srv/r.git");
        assert_eq!(file.settings, [setting("protocol.file.allow", "always")]);
        assert!(remotes.check("git://127.0.0.1/r", &long()).is_ok());
    }

    #[test]
    fn a_resolver_that_hangs_is_left_behind() {
        let hanging: Arc<Resolve> = Arc::new(|_, _| {
            std::thread::sleep(Duration::from_secs(3));
            Ok(Vec::new())
        });
        let remotes = listed(&["public.example"]).resolving_with(hanging);
        let short = Allowance::of(Duration::from_millis(100), CallOff::default());
        let start = std::time::Instant::now();
        let checked = remotes.check("https://public.example/r", &short);
        assert!(matches!(checked, Err(RemoteError::Unresolved(_))));
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}
