//! The parsers of settings. Each returns `None` for a text that breaks the rule of its setting.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use axum::http::uri::Uri;
use secrecy::SecretString;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use svc_engine::capture::Redaction;
use svc_engine::mirror::NotesRef;
use svc_model::field::FromField as _;
use svc_model::grant::TokenName;
use svc_model::id::{OrgId, SessionId};
use svc_model::json::{Json, Text};
use svc_model::limit;
use svc_model::repository::RepositoryHost;

use crate::host::Host;

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

pub(super) fn log_format(text: &str) -> Option<LogFormat> {
    match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

/// Accepts a level, or directives in which a bare word is a level. (`loud` alone would be a target
/// that logs nothing.)
pub(super) fn log_filter(text: &str) -> Option<String> {
    let is_level = |word: &str| {
        word.parse::<tracing_subscriber::filter::LevelFilter>()
            .is_ok()
    };
    let plain = |part: &str| part.contains(['=', '[']) || is_level(part);
    // A comma within the fields of a span does not separate directives. Such a text is left to the
    // parser.
    let whole = text.contains('[') || text.split(',').map(str::trim).all(plain);
    let valid = whole && text.parse::<tracing_subscriber::EnvFilter>().is_ok();
    valid.then(|| text.to_owned())
}

pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
        "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
        _ => None,
    }
}

pub(super) fn redaction(text: &str) -> Option<Redaction> {
    let on = truth(text)?;
    Some(if on { Redaction::On } else { Redaction::Off })
}

pub(super) fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

pub(super) fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

pub(super) fn slots(text: &str) -> Option<usize> {
    let slots = positive(text)?;
    Some(usize::try_from(slots).unwrap_or(usize::MAX).min(1_024))
}

pub(super) fn seconds_of_an_hour(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().filter(|seconds| *seconds <= 3_600);
    seconds.map(Duration::from_secs)
}

pub(super) fn seconds_of_a_day(text: &str) -> Option<Duration> {
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (1..=86_400).contains(seconds));
    seconds.map(Duration::from_secs)
}

pub(super) fn org_id(text: &str) -> Option<OrgId> {
    OrgId::new(text).ok()
}

pub(super) fn session_id(text: &str) -> Option<SessionId> {
    SessionId::new(text).ok()
}

/// Reads distinct Sessions, and sorts them.
pub(super) fn session_ids(text: &str) -> Option<Vec<SessionId>> {
    if text.len() > limit::GRANT_BYTES_MAX {
        return None;
    }
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    let mut session_ids = items
        .iter()
        .map(|item| SessionId::from_field(item).ok())
        .collect::<Option<Vec<SessionId>>>()?;
    let given = session_ids.len();
    session_ids.sort();
    session_ids.dedup();
    let valid = session_ids.len() == given && (1..=limit::GRANT_SESSIONS_MAX).contains(&given);
    valid.then_some(session_ids)
}

/// Reads a JSON array of one or more hosts that requests may name.
pub(super) fn hosts(text: &str) -> Option<Vec<Host>> {
    list(text, Host::parse)
}

/// Reads a JSON array of one or more origins of web pages.
pub(super) fn origins(text: &str) -> Option<Vec<String>> {
    list(text, |text| is_origin(text).then(|| text.to_owned()))
}

/// Reads a JSON array of one or more items.
fn list<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    let items: Option<Vec<T>> = items.iter().map(|item| parse(item.as_str()?)).collect();
    // An empty list would allow every host.
    items.filter(|items| !items.is_empty())
}

fn is_origin(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.port_u16().is_some()
            && !text.contains('@')
            && uri.path_and_query().is_none_or(|path| path == "/")
            && !text.ends_with('/')
    })
}

pub(super) fn clone_hosts(text: &str) -> Option<Vec<String>> {
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    items
        .iter()
        .map(|item| clone_host(item.as_str()?))
        .collect()
}

/// Returns a host in the form that clone URLs are compared with.
fn clone_host(text: &str) -> Option<String> {
    let text = text.trim();
    match text.parse::<IpAddr>() {
        Ok(address) => Some(address.to_string()),
        Err(_) => RepositoryHost::new(text).map(String::from),
    }
}

pub(super) fn clone_tokens(text: &str) -> Option<BTreeMap<RepositoryHost, SecretString>> {
    let members = Json::parse(text.as_bytes()).ok()?.into_object()?;
    let token = |(host, token): (Text, Json)| {
        let host = RepositoryHost::new(host.as_str()?.trim())?;
        let token = token.as_str()?.trim();
        // It becomes part of a header line.
        let plain = !token.is_empty() && token.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        plain.then(|| (host, SecretString::from(token)))
    };
    let mut tokens = BTreeMap::new();
    for member in members {
        let (host, token) = token(member)?;
        // Two spellings of a host would leave open which token is meant.
        if tokens.insert(host, token).is_some() {
            return None;
        }
    }
    Some(tokens)
}

pub(super) fn notes_refs(text: &str) -> Option<Vec<NotesRef>> {
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    let mut refs = items
        .iter()
        .map(|item| NotesRef::from_name(item.as_str()?))
        .collect::<Option<Vec<NotesRef>>>()?;
    refs.sort();
    refs.dedup();
    (!refs.is_empty()).then_some(refs)
}

/// The members of a JSON object in order, including duplicates, which are errors here.
struct JsonMembers(Vec<(String, String)>);

impl<'de> Deserialize<'de> for JsonMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = JsonMembers;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonMembers, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(JsonMembers(members))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

fn tokens<K: Ord>(
    text: &str,
    name: impl Fn(String) -> Option<K>,
) -> Option<BTreeMap<K, SecretString>> {
    let JsonMembers(members) = serde_json::from_str(text).ok()?;
    let mut tokens = BTreeMap::new();
    for (client, token) in members {
        let earlier = tokens.insert(name(client)?, SecretString::from(token.trim()));
        if earlier.is_some() {
            return None;
        }
    }
    Some(tokens)
}

pub(super) fn retrieval_tokens(text: &str) -> Option<BTreeMap<TokenName, SecretString>> {
    tokens(text, |name| TokenName::new(&name).ok())
}

pub(super) fn ingest_tokens(text: &str) -> Option<BTreeMap<String, SecretString>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let follows = |byte: u8| plain(byte) || matches!(byte, b'.' | b'_' | b'-');
    let is_name = |name: &String| {
        name.len() <= 64
            && name.bytes().next().is_some_and(plain)
            && name.bytes().all(follows)
            && !matches!(name.as_str(), "operator" | "legacy" | "retrieval")
    };
    tokens(text, |name| Some(name).filter(is_name))
}
