//! The repository that a clone URL names.

/// A clone URL without any credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryUrl {
    /// The host, without the port.
    pub(super) host: String,
    /// The path, without slashes at its ends and without `.git`: `owner/name`, or longer.
    pub(super) path: String,
}

impl RepositoryUrl {
    /// Parses `scheme://user@host:port/path` or `user@host:path`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (authority, path) = match text.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?,
            None => text.split_once(':')?,
        };
        let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let host = host.split(':').next().unwrap_or_default();
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let whole = !host.is_empty() && !host.contains('/') && !path.is_empty();
        whole.then(|| Self {
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }
}

/// Returns the host of a URL, without the port.
pub(super) fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = host.split(':').next().unwrap_or_default();
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_names_a_host_and_a_path() {
        for (text, host, path) in [
            (
                "https://github.com/acme/shop.git",
                "github.com",
                "acme/shop",
            ),
            ("https://github.com/acme/shop/", "github.com", "acme/shop"),
            (
                "https://x:token@git.example:8443/acme/shop",
                "git.example",
                "acme/shop",
            ),
            ("git@github.com:acme/shop.git", "github.com", "acme/shop"),
            (
                "ssh://git@git.example:2222/acme/shop.git",
                "git.example",
                "acme/shop",
            ),
            (
                "git://git.example/group/sub/shop.git",
                "git.example",
                "group/sub/shop",
            ),
        ] {
            let expected = RepositoryUrl {
                host: host.to_owned(),
                path: path.to_owned(),
            };
            assert_eq!(RepositoryUrl::parse(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "shop",
            "/srv/git/shop.git",
            "https://",
            "https://host",
            "https:///a/b",
        ] {
            assert_eq!(RepositoryUrl::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_server_url_has_a_host() {
        assert_eq!(host("https://github.com").unwrap(), "github.com");
        assert_eq!(host("http://git.example:3000/x").unwrap(), "git.example");
        assert_eq!(host("git.example"), None);
    }
}
