//! Where a mirror may be fetched from.
//!
//! The URL comes from outside, and git would follow it anywhere: into this machine, into the
//! network behind the firewall, to a program. So the URL is parsed, and git gets one that is
//! composed here, with the checked addresses. A name that resolves differently a second later leads
//! nowhere else.

mod arguments;
mod clone_url;
mod public;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use secrecy::SecretString;
use svc_model::repository::RepositoryHost;

pub(super) use self::arguments::Remote;
pub use self::clone_url::CloneUrlRefusal;
use svc_engine_fact::deadline::Passed;

use self::clone_url::{CloneUrl, Host, Scheme};
use self::public::is_public;
use super::allowance::{Allowance, StopReason};

/// The time limit for resolving a name.
const RESOLUTION_MAX: Duration = Duration::from_secs(10);
/// How often to check for a cancellation while resolving.
const LOOK: Duration = Duration::from_millis(50);

/// Which hosts a mirror may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// These hosts, at any address: whole names, without a port.
    Listed(Vec<String>),
    /// Every host whose addresses are all public.
    Public,
    /// Every host, and local paths and files. For development only.
    Anything,
}

/// Why nothing can be fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    /// The URL is refused permanently.
    #[error(transparent)]
    Refused(#[from] CloneUrlRefusal),
    /// The host name does not resolve at the moment.
    #[error("the host does not resolve")]
    Unresolved(#[source] io::Error),
    /// The allowance is used up.
    #[error(transparent)]
    Stopped(#[from] StopReason),
}

/// Returns the addresses of a name.
pub type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Decides where mirrors may be fetched from, and with which credentials.
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

impl Remotes {
    /// Allows these hosts, with these tokens, and uses the system's resolver.
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

    /// Uses another resolver.
    #[must_use]
    pub fn resolving_with(mut self, resolve: Arc<Resolve>) -> Self {
        self.resolve = resolve;
        self
    }

    /// Returns git's arguments for fetching from a clone URL.
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
                    return Err(CloneUrlRefusal::NotListed.into());
                }
            }
            AllowedHosts::Public => {
                if url.scheme == Scheme::Git {
                    return Err(CloneUrlRefusal::Unauthenticated.into());
                }
                if is_this_machine(&name) {
                    return Err(CloneUrlRefusal::Internal.into());
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
            return Err(CloneUrlRefusal::Internal.into());
        }
        let token = RepositoryHost::new(&name).and_then(|host| self.tokens.get(&host));
        Ok(arguments::remote(&url, &addresses, token))
    }

    /// Resolves a name. The system's resolver cannot be stopped, but its answer can be ignored.
    fn addresses(
        &self,
        name: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<Vec<IpAddr>, RemoteError> {
        let allowance = allowance.within(RESOLUTION_MAX);
        let (answer, answered) = sync_channel(1);
        let (resolve, name) = (Arc::clone(&self.resolve), name.to_owned());
        std::thread::Builder::new()
            .name("svc-resolver".to_owned())
            .spawn(move || drop(answer.send(resolve(&name, port))))
            .map_err(RemoteError::Unresolved)?;
        let addresses = loop {
            let left = match allowance.left() {
                Ok(left) => left,
                Err(StopReason::Passed(Passed::Time)) => {
                    return Err(RemoteError::Unresolved(io::ErrorKind::TimedOut.into()));
                }
                Err(stopped) => return Err(stopped.into()),
            };
            match answered.recv_timeout(left.min(LOOK)) {
                Ok(addresses) => break addresses,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::Other.into()),
            }
        };
        let addresses = addresses.map_err(RemoteError::Unresolved)?;
        if addresses.is_empty() {
            return Err(RemoteError::Unresolved(io::ErrorKind::NotFound.into()));
        }
        Ok(addresses)
    }
}

/// Returns the host in a clone URL, with its port: another port is another forge.
pub(super) fn host_of(url: &str) -> Option<String> {
    let url = CloneUrl::parse(url).ok()?;
    Some(format!(
        "{}:{}",
        url.host.to_string().to_ascii_lowercase(),
        url.port()
    ))
}

/// Returns whether a name always means this machine, wherever it is used and whatever a resolver
/// says.
fn is_this_machine(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::deadline::Deadline;

    use super::arguments::{authorization, setting};
    use super::*;

    fn long() -> Allowance {
        Allowance::until(Deadline::after(Duration::from_secs(30)))
    }

    /// Resolves some names for the tests.
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

    fn refusal(remotes: &Remotes, url: &str) -> Option<CloneUrlRefusal> {
        match remotes.check(url, &long()) {
            Ok(_) => None,
            Err(RemoteError::Refused(refusal)) => Some(refusal),
            Err(other) => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn invalid_forge_urls_are_refused() {
        let remotes = listed(&["public.example"]);
        for (url, expected) in [
            ("", CloneUrlRefusal::Scheme),
            ("/srv/git/r.git", CloneUrlRefusal::Scheme),
            ("r.git", CloneUrlRefusal::Scheme),
            ("file:///srv/git/r.git", CloneUrlRefusal::Scheme),
            ("ftp://public.example/r.git", CloneUrlRefusal::Scheme),
            ("ext::git-upload-pack /srv/r.git", CloneUrlRefusal::Scheme),
            (
                "ext::sh -c 'x' https://public.example/",
                CloneUrlRefusal::Scheme,
            ),
            ("git@public.example:o/r.git", CloneUrlRefusal::Scheme),
            (" https://public.example/r", CloneUrlRefusal::Scheme),
            ("--upload-pack=x", CloneUrlRefusal::Scheme),
            ("git+ssh://public.example/r", CloneUrlRefusal::Scheme),
            ("https://", CloneUrlRefusal::Host),
            ("https:///r.git", CloneUrlRefusal::Host),
            ("https://user@/r.git", CloneUrlRefusal::Host),
            ("https://-oProxyCommand=x/r.git", CloneUrlRefusal::Host),
            ("ssh://-oProxyCommand=x/r.git", CloneUrlRefusal::Host),
            ("https://public.example./r.git", CloneUrlRefusal::Host),
            ("https://public_example/r.git", CloneUrlRefusal::Host),
            ("https://pub%6cic.example/r.git", CloneUrlRefusal::Host),
            ("https://evil\\@public example/r.git", CloneUrlRefusal::Host),
            ("https://[::1/r.git", CloneUrlRefusal::Host),
            ("https://[fe80::1%25eth0]/r.git", CloneUrlRefusal::Host),
            ("https://public.example", CloneUrlRefusal::Shape),
            ("https://public.example?x/r.git", CloneUrlRefusal::Shape),
            ("https://public.example/r.git?x=1", CloneUrlRefusal::Shape),
            ("https://public.example/r.git#x", CloneUrlRefusal::Shape),
            ("https://public.example/a b", CloneUrlRefusal::Shape),
            ("https://public.example/a\nb", CloneUrlRefusal::Shape),
            ("https://public.example/a\\b", CloneUrlRefusal::Shape),
            ("https://public.example:0/r.git", CloneUrlRefusal::Shape),
            ("https://public.example:65536/r.git", CloneUrlRefusal::Shape),
            ("https://public.example:4a/r.git", CloneUrlRefusal::Shape),
        ] {
            assert_eq!(refusal(&remotes, url), Some(expected), "{url:?}");
        }
    }

    #[test]
    fn allowed_hosts_match_only_complete_names() {
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
            assert_eq!(
                refusal(&remotes, url),
                Some(CloneUrlRefusal::NotListed),
                "{url}"
            );
        }
    }

    #[test]
    fn without_a_list_every_address_must_be_public() {
        let remotes = remotes(AllowedHosts::Public);
        assert_eq!(refusal(&remotes, "https://public.example/r"), None);
        assert_eq!(refusal(&remotes, "https://8.8.8.8/r"), None);
        assert_eq!(
            refusal(&remotes, "git://public.example/r"),
            Some(CloneUrlRefusal::Unauthenticated)
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
            assert_eq!(
                refusal(&remotes, &url),
                Some(CloneUrlRefusal::Internal),
                "{host}"
            );
        }
        let unresolving: Arc<Resolve> = Arc::new(|_, _| Err(io::ErrorKind::NotFound.into()));
        let without_names = remotes.clone().resolving_with(unresolving);
        for host in [
            "localhost",
            "LocalHost:3000",
            "x.localhost",
            "a.b.LOCALHOST",
        ] {
            let url = format!("http://{host}/r");
            let refused = refusal(&without_names, &url);
            assert_eq!(refused, Some(CloneUrlRefusal::Internal), "{host} by name");
        }
        for host in ["empty.example", "absent.example", "localhost.example"] {
            let checked = remotes.check(&format!("https://{host}/r"), &long());
            assert!(matches!(checked, Err(RemoteError::Unresolved(_))), "{host}");
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
            (literal.settings, literal.environment),
            (Vec::new(), vec![setting("GIT_ALLOW_PROTOCOL", "http")]),
            "an address is not pinned"
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
            [
                setting("GIT_ALLOW_PROTOCOL", "git"),
                setting("GIT_OVERRIDE_VIRTUAL_HOST", "public.example:9000")
            ]
        );
        let ssh = remotes
            .check("ssh://git@public.example/o/r.git", &long())
            .unwrap();
        assert_eq!(ssh.url, "ssh://public.example/o/r.git");
        assert_eq!(ssh.environment[0], setting("GIT_ALLOW_PROTOCOL", "ssh"));
        let command = &ssh.environment[1].1;
        assert!(command.contains("-o 'HostName=93.184.216.34' -o 'HostKeyAlias=public.example'"));
        assert!(command.contains("BatchMode=yes"));
        let port = remotes
            .check("ssh://public.example:2222/r", &long())
            .unwrap();
        assert!(
            port.environment[1]
                .1
                .contains("'HostKeyAlias=[public.example]:2222'")
        );
    }

    #[test]
    fn unrestricted_hosts_allow_file_urls_and_local_addresses() {
        let remotes = remotes(AllowedHosts::Anything);
        let file = remotes.check("file:///srv/r.git", &long()).unwrap();
        assert_eq!(file.url, "file:///srv/r.git");
        assert_eq!(file.environment, [setting("GIT_ALLOW_PROTOCOL", "file")]);
        assert!(remotes.check("git://127.0.0.1/r", &long()).is_ok());
    }

    #[test]
    fn a_hanging_resolver_does_not_delay_a_stop() {
        let (asked, was_asked) = std::sync::mpsc::channel();
        let asked = std::sync::Mutex::new(asked);
        let hanging: Arc<Resolve> = Arc::new(move |_, _| {
            asked.lock().unwrap().send(()).unwrap();
            std::thread::sleep(Duration::from_secs(20));
            Ok(Vec::new())
        });
        let remotes = listed(&["public.example"]).resolving_with(hanging);
        let deadline = Deadline::after(Duration::from_mins(2));
        std::thread::scope(|scope| {
            let checked = scope.spawn(|| {
                let allowance = Allowance::until(deadline.clone());
                remotes.check("https://public.example/r", &allowance)
            });
            was_asked.recv().unwrap();
            let start = std::time::Instant::now();
            deadline.cancel();
            let checked = checked.join().unwrap();
            assert!(
                matches!(
                    checked,
                    Err(RemoteError::Stopped(StopReason::Passed(Passed::Cancelled)))
                ),
                "{checked:?}"
            );
            assert!(start.elapsed() < Duration::from_secs(5));
        });
    }

    #[test]
    fn a_hanging_resolver_is_abandoned_at_the_deadline() {
        let hanging: Arc<Resolve> = Arc::new(|_, _| {
            std::thread::sleep(Duration::from_secs(3));
            Ok(Vec::new())
        });
        let remotes = listed(&["public.example"]).resolving_with(hanging);
        let short = Allowance::until(Deadline::after(Duration::from_millis(100)));
        let start = std::time::Instant::now();
        let checked = remotes.check("https://public.example/r", &short);
        assert!(matches!(checked, Err(RemoteError::Unresolved(_))));
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}
