//! What git gets for a remote: a URL that is composed here, the checked addresses, and the
//! credential in settings, which are passed in the environment.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};

use super::clone_url::{CloneUrl, Host, Scheme, bracketed};

/// The variable that allows protocols, whatever the settings say.
pub(super) const ONLY_PROTOCOL: &str = "GIT_ALLOW_PROTOCOL";

/// What git gets for the remote of a fetch.
#[derive(Clone, PartialEq, Eq)]
pub(in super::super) struct Remote {
    pub(in super::super) url: String,
    pub(in super::super) settings: Vec<(String, String)>,
    pub(in super::super) environment: Vec<(String, String)>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings contain the credential.
        f.debug_struct("Remote")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

pub(super) fn remote(url: &CloneUrl, addresses: &[IpAddr], token: Option<&SecretString>) -> Remote {
    let scheme = url.scheme.as_str();
    let mut remote = Remote {
        url: format!("{scheme}://{}{}", url.authority(), url.path),
        settings: Vec::new(),
        environment: vec![setting(ONLY_PROTOCOL, scheme)],
    };
    match url.scheme {
        Scheme::Http | Scheme::Https => pin_http(url, addresses, token, &mut remote),
        Scheme::Git => pin_git(url, addresses, &mut remote),
        Scheme::Ssh => pin_ssh(url, addresses, &mut remote),
    }
    remote
}

fn pin_http(
    url: &CloneUrl,
    addresses: &[IpAddr],
    token: Option<&SecretString>,
    remote: &mut Remote,
) {
    if let Host::Name(name) = &url.host {
        let pinned: Vec<String> = addresses
            .iter()
            .map(|address| bracketed(*address))
            .collect();
        let pin = format!("{name}:{}:{}", url.port(), pinned.join(","));
        remote.settings.push(setting("http.curlOptResolve", &pin));
    }
    // Over http, a token would be readable in transit.
    if let (Scheme::Https, Some(token)) = (url.scheme, token) {
        let base = format!("https://{}/", url.authority());
        let header = authorization(token);
        remote
            .settings
            .push(setting(&format!("http.{base}.extraHeader"), &header));
    }
}

/// Makes git connect to the addresses and request the host by name.
fn pin_git(url: &CloneUrl, addresses: &[IpAddr], remote: &mut Remote) {
    if let (Host::Name(_), Some(address)) = (&url.host, addresses.first()) {
        remote.url = format!("git://{}:{}{}", bracketed(*address), url.port(), url.path);
        remote
            .environment
            .push(setting("GIT_OVERRIDE_VIRTUAL_HOST", &url.authority()));
    }
}

/// Makes ssh connect to the addresses and check the host key by name. The key and the known hosts
/// are those of the account that the service runs under.
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
    /// Returns a remote for a path or file on this machine.
    pub(super) fn local(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            settings: Vec::new(),
            environment: vec![setting(ONLY_PROTOCOL, "file")],
        }
    }
}

pub(super) fn setting(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns the header for a token, which is `TOKEN` or `USER:PASSWORD`. Forges accept `TOKEN` as
/// the password of any user.
pub(super) fn authorization(token: &SecretString) -> String {
    let token = token.expose_secret();
    let pair = if token.contains(':') {
        token.to_owned()
    } else {
        format!("x-access-token:{token}")
    };
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    format!("Authorization: Basic {encoded}")
}
