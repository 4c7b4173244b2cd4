use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CommitRequest, RepositorySelector};
use crate::repository::{
    CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use crate::time::Instant;

/// The path and the query of `GET /query/commit/{sha}`, for one repository and with the boundary of
/// the reply that contains the link. Append it unchanged to the URL of the service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(extend("examples" = [
    "/query/commit/9b2f3a6c1d4e5f708192a3b4c5d6e7f8091a2b3c?repository_provider=github&repository_host=github.com&repository_id=514200317&as_of=2026-11-20T12%3A08%3A33%2B00%3A00"
])))]
pub struct CommitLink(String);

/// The path before the commit.
const PATH: &str = "/query/commit/";

impl CommitLink {
    /// Returns the link for this request.
    pub fn new(request: &CommitRequest) -> Self {
        let mut link = format!("{PATH}{}", request.commit_sha);
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            link.push(separator);
            separator = '&';
            link.push_str(name);
            link.push('=');
            encode(value, &mut link);
        };
        if let Some(repo) = &request.repository.repo {
            add("repo", repo.as_str());
        }
        if let Some(identity) = &request.repository.identity {
            add("repository_provider", identity.repository_provider.as_str());
            add("repository_host", identity.repository_host.as_str());
            add("repository_id", identity.repository_id.as_str());
        }
        if let Some(as_of) = request.as_of {
            let utc = as_of.to_string();
            add("as_of", &format!("{}+00:00", utc.trim_end_matches('Z')));
        }
        Self(link)
    }

    /// Returns the path and query.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the request that the link makes; nothing if this version does not understand it,
    /// because a later version may add parameters.
    pub fn request(&self) -> Option<CommitRequest> {
        let rest = self.0.strip_prefix(PATH)?;
        let (sha, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut request = CommitRequest {
            commit_sha: CommitSha::new(sha)?,
            repository: RepositorySelector::default(),
            as_of: None,
            explain: false,
        };
        let (mut provider, mut host, mut id) = (None, None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            let value = decode(value)?;
            match name {
                "repo" => request.repository.repo = Some(RepositoryName::new(&value)?),
                "repository_provider" => provider = Some(RepositoryProvider::from_wire(&value)?),
                "repository_host" => host = Some(RepositoryHost::new(&value)?),
                "repository_id" => id = Some(RepositoryId::new(&value)?),
                "as_of" => request.as_of = Some(Instant::parse(&value).ok()?),
                _ => return None,
            }
        }
        request.repository.identity = match (provider, host, id) {
            (Some(repository_provider), Some(repository_host), Some(repository_id)) => {
                Some(RepositoryIdentity {
                    repository_provider,
                    repository_host,
                    repository_id,
                })
            }
            (None, None, None) => None,
            _ => return None,
        };
        Some(request)
    }
}

impl fmt::Display for CommitLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Appends a query value, form-encoded.
fn encode(value: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
}

/// Decodes a form-encoded value.
fn decode(encoded: &str) -> Option<String> {
    let mut value = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let code = digit(*high)? * 16 + digit(*low)?;
                value.push(u8::try_from(code).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            (b'+', _) => value.push(b' '),
            (byte, _) => value.push(*byte),
        }
    }
    String::from_utf8(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CommitRequest {
        CommitRequest {
            commit_sha: CommitSha::new(&"b".repeat(40)).unwrap(),
            repository: RepositorySelector::default(),
            as_of: None,
            explain: false,
        }
    }

    fn identity() -> RepositoryIdentity {
        RepositoryIdentity {
            repository_provider: RepositoryProvider::Github,
            repository_host: RepositoryHost::new("github.com").unwrap(),
            repository_id: RepositoryId::new("1011259506").unwrap(),
        }
    }

    #[test]
    fn a_link_names_the_repository_and_the_boundary() {
        let as_of = Instant::parse("2026-11-20T12:08:33Z").ok();
        let sha = "b".repeat(40);
        let link = CommitLink::new(&CommitRequest {
            repository: RepositorySelector::identified(identity()),
            as_of,
            ..request()
        });
        assert_eq!(
            link.as_str(),
            format!(
                "/query/commit/{sha}?repository_provider=github&repository_host=github.com&\
                 repository_id=1011259506&as_of=2026-11-20T12%3A08%3A33%2B00%3A00"
            )
        );
        let microseconds = Instant::parse("2026-11-20T11:08:02.836278Z").ok();
        let link = CommitLink::new(&CommitRequest {
            as_of: microseconds,
            ..request()
        });
        assert_eq!(
            link.as_str(),
            format!("/query/commit/{sha}?as_of=2026-11-20T11%3A08%3A02.836278%2B00%3A00")
        );
        assert_eq!(
            CommitLink::new(&request()).as_str(),
            format!("/query/commit/{sha}")
        );
    }

    #[test]
    fn a_link_is_parsed_back_to_its_question() {
        let named = RepositoryName::new("own/r\u{e9}po +%&=").unwrap();
        for repository in [
            RepositorySelector::default(),
            RepositorySelector::identified(identity()),
            RepositorySelector::named(named.clone()),
            RepositorySelector {
                repo: Some(named),
                identity: Some(identity()),
            },
        ] {
            for as_of in [None, Instant::parse("2026-11-20T11:08:02.000001Z").ok()] {
                let asked = CommitRequest {
                    repository: repository.clone(),
                    as_of,
                    ..request()
                };
                let link = CommitLink::new(&asked);
                assert_eq!(link.request(), Some(asked), "{link}");
            }
        }
    }

    #[test]
    fn a_link_of_another_form_is_not_parsed() {
        let sha = "b".repeat(40);
        for text in [
            String::new(),
            format!("/query/commits/{sha}"),
            format!("{PATH}{}", &sha[1..]),
            format!("{PATH}{sha}?depth=2"),
            format!("{PATH}{sha}?as_of"),
            format!("{PATH}{sha}?as_of=soon"),
            format!("{PATH}{sha}?repo=%"),
            format!("{PATH}{sha}?repo=a%2"),
            format!("{PATH}{sha}?repo=%ff%2Fa"),
            format!("{PATH}{sha}?repository_id=1"),
        ] {
            assert_eq!(CommitLink(text.clone()).request(), None, "{text}");
        }
    }
}
