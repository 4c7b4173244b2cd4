//! What the URL of a repository says of it.

/// Returns the host and the path in the URL of a repository, without the ending `.git`:
/// `https://host/owner/name.git`, `ssh://git@host:22/owner/name` or `git@host:owner/name.git`.
/// `None` if it names no host.
pub fn host_and_path(url: &str) -> Option<(&str, &str)> {
    let url = url.trim();
    let (authority, path) = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':')?,
    };
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let path = path.trim_matches('/');
    (!host.is_empty()).then(|| (host, path.strip_suffix(".git").unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_host_names_no_repository() {
        for (url, expected) in [
            (
                "https://a:b@host:8443/own/repo.git",
                Some(("host", "own/repo")),
            ),
            ("git@host:own/repo", Some(("host", "own/repo"))),
            ("file:///own/repo.git", None),
            ("/own/repo.git", None),
            ("", None),
        ] {
            assert_eq!(host_and_path(url), expected, "{url}");
        }
    }
}
