use svc_model::json::Object;
use svc_model::limit::PATH_BYTES_MAX;

use super::value::text;

/// Returns the clone URL of a repository, without credentials; empty if the payload has no usable
/// one.
pub(super) fn clone_url(repository: Option<&Object>) -> String {
    text(repository, "clone_url")
        .and_then(|url| url.as_str())
        .filter(|url| url.len() <= PATH_BYTES_MAX && !url.contains('\0'))
        .map(without_credential)
        .unwrap_or_default()
}

/// Removes the user info from a URL and leaves the rest unchanged. Over SSH, the user name is not
/// secret and the forge needs it, so only the password is removed. A URL without `://` is a path or
/// `name@host:path`, and contains no credential.
fn without_credential(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, host)) = authority.rsplit_once('@') else {
        return url.to_owned();
    };
    let name = user.split(':').next().unwrap_or_default();
    let over_ssh = scheme.to_ascii_lowercase().contains("ssh") && !name.is_empty();
    let login = if over_ssh { [name, "@"] } else { [""; 2] };
    [scheme, "://", &login.concat(), host, path].concat()
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    fn read(url: &str) -> String {
        let repository = Json::parse(format!(r#"{{"clone_url":{url}}}"#).as_bytes());
        clone_url(repository.unwrap().as_object())
    }

    #[test]
    fn user_info_is_dropped_and_the_rest_is_kept() {
        for (url, expected) in [
            ("https://git.example/a/b.git", "https://git.example/a/b.git"),
            ("https://u@git.example/a", "https://git.example/a"),
            (
                "https://u:p@git.example:8443/a?b@c#d@e",
                "https://git.example:8443/a?b@c#d@e",
            ),
            ("HTTPS://u:p@h", "HTTPS://h"),
            ("https://x-access-token:ghs_1@h/a", "https://h/a"),
            ("https://u:p@ss@h/a", "https://h/a"),
            ("https://@h/a", "https://h/a"),
            ("https://u:p@h?a/b", "https://h?a/b"),
            ("https://h/a@b", "https://h/a@b"),
            ("ssh://git@h:22/a", "ssh://git@h:22/a"),
            ("ssh://git:secret@h/a", "ssh://git@h/a"),
            ("git+ssh://git:secret@h/a", "git+ssh://git@h/a"),
            ("ssh://:secret@h/a", "ssh://h/a"),
            ("git@h:a/b.git", "git@h:a/b.git"),
            ("/srv/git/a@b", "/srv/git/a@b"),
            ("file:///srv/a b.git", "file:///srv/a b.git"),
            (" https://h/a ", " https://h/a "),
            ("", ""),
            ("://", "://"),
            ("://u@", "://"),
        ] {
            assert_eq!(read(&format!("\"{url}\"")), expected, "{url}");
            let again = without_credential(expected);
            assert_eq!(again, expected, "nothing is left to drop");
        }
    }

    #[test]
    fn an_unusable_clone_url_is_dropped() {
        for none in [
            "null",
            "5",
            "[]",
            "\"https://h/\\u0000\"",
            "\"https://h/\\ud800\"",
        ] {
            assert_eq!(read(none), "", "{none}");
        }
        assert_eq!(clone_url(None), "");
        let longest = "x".repeat(PATH_BYTES_MAX);
        assert_eq!(read(&format!("\"{longest}\"")), longest);
        assert_eq!(read(&format!("\"{longest}x\"")), "");
    }
}
