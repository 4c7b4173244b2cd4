//! Refuses unknown names, with a suggestion.

use crate::env;

/// The maximum edit distance for a suggestion, which allows for a wrong letter or two, or a missing
/// `S`.
const EDITS_MAX: usize = 3;

/// The minimum length of a text that counts as the beginning of a name. Shorter ones begin too many
/// names.
const BEGUN_MIN: usize = 3;

/// Which unknown variables are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// All of them, because a server's environment is its own.
    All,
    /// Only those that look like a misspelled setting, because a user's environment may contain
    /// other programs' variables.
    Misspelled,
}

/// Returns the error in a variable with the prefix, if there is one.
pub(super) fn mistake_of_variable(name: &str, strictness: Strictness) -> Option<String> {
    if env::find(name).is_some() || env::OTHERS.contains(&name) || is_foreign(name) {
        return None;
    }
    let base = name.strip_suffix("_FILE").and_then(env::find);
    if let Some(variable) = base {
        return match variable.file_variable() {
            Some(_) => None,
            None => Some(format!(
                "{name} is unknown: {} is not a secret and cannot be read from a file",
                variable.name
            )),
        };
    }
    let names = env::ALL
        .iter()
        .flat_map(|variable| [Some(variable.name.to_owned()), variable.file_variable()]);
    match nearest(name, names.flatten()) {
        Some(near) => Some(format!("{name} is unknown; did you mean {near}?")),
        None if strictness == Strictness::All => Some(format!("{name} is unknown")),
        None => None,
    }
}

/// Returns the error in a key of `config.toml`, if there is one.
pub(super) fn mistake_of_key(key: &str) -> Option<String> {
    let mut keys = env::ALL.iter().map(env::Variable::key);
    if keys.any(|known| known == key) {
        return None;
    }
    // A key may be any text. A long one, or one with control characters, is not repeated.
    let plain = key.len() <= 64 && key.chars().all(|c| c.is_ascii_graphic());
    let shown = if plain { key } else { "a key" };
    let mut text = format!("{shown} is unknown");
    if let Some(near) = nearest(key, env::ALL.iter().map(env::Variable::key)) {
        text.push_str("; did you mean ");
        text.push_str(&near);
        text.push('?');
    }
    Some(text)
}

/// Returns whether the tests set a variable, or Kubernetes does for a service whose name begins
/// with `svc`, such as `SVC_SERVICE_HOST` or `SVC_PORT_8000_TCP_ADDR`.
fn is_foreign(name: &str) -> bool {
    let in_port = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.starts_with(env::TEST_PREFIX)
        || name.ends_with("_SERVICE_HOST")
        || name.ends_with("_PORT")
        || name.contains("_SERVICE_PORT")
        || name.split("_PORT_").skip(1).any(in_port)
}

/// Returns the known name that was probably meant: one that begins with the text, or else one that
/// differs little. The prefix that all variables share makes no name more similar.
fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let own = |name: &str| name.strip_prefix(env::PREFIX).unwrap_or(name).len();
    let begun = |known: &str| {
        let rest = known.strip_prefix(name);
        own(name) >= BEGUN_MIN && rest.is_some_and(|rest| rest.starts_with('_'))
    };
    known
        .map(|known| (strsim::damerau_levenshtein(name, &known), known))
        .map(|(edits, known)| (!begun(&known), edits, known))
        .filter(|(is_other, edits, known)| {
            !is_other || *edits <= EDITS_MAX && edits * 3 < own(known)
        })
        .min()
        .map(|(_, _, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(name: &str) -> Option<String> {
        mistake_of_variable(name, Strictness::All)
    }

    #[test]
    fn a_misspelled_variable_is_reported_with_the_intended_one() {
        for (name, near) in [
            ("SVC_LISTN", "SVC_LISTEN"),
            ("SVC_DATABASE_ULR", "SVC_DATABASE_URL"),
            ("SVC_INGEST_TOKEN", "SVC_INGEST_TOKENS"),
            ("SVC_OPERATOR_TOKEN_FIEL", "SVC_OPERATOR_TOKEN_FILE"),
            ("SVC_ORG", "SVC_ORG_ID"),
            ("SVC_DATABASE", "SVC_DATABASE_URL"),
        ] {
            let expected = format!("{name} is unknown; did you mean {near}?");
            assert_eq!(all(name).as_ref(), Some(&expected));
            let misspelled = mistake_of_variable(name, Strictness::Misspelled);
            assert_eq!(misspelled, Some(expected));
        }
    }

    #[test]
    fn an_unknown_variable_is_refused_if_the_environment_belongs_to_the_server() {
        for name in ["SVC_COLOUR", "SVC_DOG", "SVC_O"] {
            assert_eq!(all(name).unwrap(), format!("{name} is unknown"));
        }
        let elsewhere = mistake_of_variable("SVC_COLOUR", Strictness::Misspelled);
        assert_eq!(elsewhere, None);
    }

    #[test]
    fn only_secrets_are_read_from_files() {
        assert_eq!(all("SVC_OPERATOR_TOKEN_FILE"), None);
        assert!(all("SVC_LISTEN_FILE").unwrap().contains("not a secret"));
    }

    #[test]
    fn legitimate_variables_are_accepted() {
        for variable in env::ALL {
            assert_eq!(all(variable.name), None);
            assert_eq!(mistake_of_key(&variable.key()), None);
        }
        for name in [
            "SVC_URL",
            "SVC_TOKEN_FILE",
            "SVC_PROGRAM",
            "SVC_TEST_POSTGRES",
            "SVC_SERVICE_HOST",
            "SVC_SERVICE_PORT_HTTP",
            "SVC_PORT",
            "SVC_PORT_8000_TCP_ADDR",
        ] {
            assert_eq!(all(name), None, "{name}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_printed_is_not_repeated() {
        assert_eq!(mistake_of_key("a\u{1b}b").unwrap(), "a key is unknown");
        assert_eq!(
            mistake_of_key("listn").unwrap(),
            "listn is unknown; did you mean listen?"
        );
    }
}
