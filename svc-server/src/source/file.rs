//! `config.toml`: one key per setting. Every error is reported with its line.

use std::collections::BTreeMap;
use std::ops::Range;

use svc_model::json::{Json, Object, Text};
use toml::de::{DeTable, DeValue};

use super::names;
use crate::env::{self, SettingForm};

/// Reads the settings in a file, by key. Lists and tables become JSON text, as in variables. Errors
/// are added to `mistakes` without values, and the places of the keys to `places`, for errors that
/// are found later.
pub(super) fn read(
    text: &str,
    path: &str,
    places: &mut BTreeMap<String, String>,
    mistakes: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let place = |span: &Range<usize>| {
        let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
        format!("{path}, line {line}")
    };
    let mut mistake = |span: Range<usize>, what: &str| {
        mistakes.push(format!("{}: {what}", place(&span)));
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            mistake(error.span().unwrap_or_default(), error.message());
        }
        return BTreeMap::new();
    }
    let mut settings = BTreeMap::new();
    for (key, value) in table.into_inner() {
        let span = key.span();
        let key = key.into_inner();
        if let Some(unknown) = names::mistake_of_key(&key) {
            let section = matches!(value.get_ref(), DeValue::Table(_));
            let hint = if section {
                "; settings are at the top of the file, not in a table"
            } else {
                ""
            };
            mistake(span, &format!("{unknown}{hint}"));
            continue;
        }
        match setting(form_of(&key), value.into_inner()) {
            Ok(value) => {
                places.insert(key.clone().into_owned(), place(&span));
                settings.insert(key.into_owned(), value);
            }
            Err(expected) => mistake(span, &format!("{key} {expected}")),
        }
    }
    settings
}

fn form_of(key: &str) -> SettingForm {
    let variable = env::ALL.iter().find(|variable| variable.key() == key);
    variable.map_or(SettingForm::Text, |variable| variable.form)
}

/// Returns a value in the form that its variable has.
fn setting(form: SettingForm, value: DeValue<'_>) -> Result<String, &'static str> {
    let (accepted, expected) = match form {
        SettingForm::Text => (false, "must be a text, a number, true or false"),
        SettingForm::List => (
            matches!(value, DeValue::Array(_)),
            "must be a list of texts",
        ),
        SettingForm::Table => (
            matches!(value, DeValue::Table(_)),
            "must be a table of texts",
        ),
    };
    match value {
        DeValue::String(text) => Ok(text.into_owned()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        DeValue::Array(_) | DeValue::Table(_) if accepted => {
            let json = texts(value).ok_or(expected)?;
            String::from_utf8(json.to_canonical()).map_err(|_| expected)
        }
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => Err(expected),
    }
}

/// Returns a list or a table of texts as JSON.
fn texts(value: DeValue<'_>) -> Option<Json> {
    let text = |value: DeValue<'_>| match value {
        DeValue::String(text) => Some(Json::from(text.into_owned())),
        _ => None,
    };
    match value {
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| text(item.into_inner()));
            items.collect::<Option<Vec<Json>>>().map(Json::Array)
        }
        DeValue::Table(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let name = Text::from(name.into_inner().into_owned());
                Some((name, text(value.into_inner())?))
            });
            members.collect::<Option<Object>>().map(Json::Object)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (BTreeMap<String, String>, Vec<String>) {
        let mut mistakes = Vec::new();
        let settings = read(text, "config.toml", &mut BTreeMap::new(), &mut mistakes);
        (settings, mistakes)
    }

    #[test]
    fn a_settings_file_may_contain_texts_numbers_lists_and_tables() {
        let (read, mistakes) = read_all(
            "listen = \"a:1\"\nread_slots = 3\nenable_docs = true\n\
             retrieval_session_ids = [\"a\", \"b\"]\n[ingest_tokens]\nci = \"x\"",
        );
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!(read["listen"], "a:1");
        assert_eq!(read["read_slots"], "3");
        assert_eq!(read["enable_docs"], "true");
        assert_eq!(read["retrieval_session_ids"], "[\"a\",\"b\"]");
        assert_eq!(read["ingest_tokens"], "{\"ci\":\"x\"}");
    }

    #[test]
    fn unknown_and_nested_keys_are_reported_with_their_line() {
        let (read, mistakes) = read_all(
            "read_slots = 3\nlistn = \"a:1\"\nlog.level = \"debug\"\n\n[server]\nlisten = \"a:1\"\n",
        );
        assert_eq!(read.len(), 1);
        let mut mistakes = mistakes;
        mistakes.sort();
        assert_eq!(
            mistakes,
            [
                "config.toml, line 2: listn is unknown; did you mean listen?",
                "config.toml, line 3: log must be a text, a number, true or false",
                "config.toml, line 5: server is unknown; settings are at the top of the file, \
                 not in a table",
            ]
        );
    }

    #[test]
    fn invalid_toml_is_reported_with_its_line_but_not_its_text() {
        let secret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t";
        let (read, mistakes) = read_all(&format!(
            "listen = \"a:1\"\noperator_token = {secret}\nlog = \"x\nread_slots = 2\n"
        ));
        assert!(read.is_empty());
        assert!(mistakes[0].starts_with("config.toml, line 2: "));
        let other = |mistake: &String| mistake.starts_with("config.toml, line 3: ");
        assert!(mistakes.iter().any(other), "{mistakes:?}");
        assert!(!mistakes.concat().contains("s3cr3t"), "{mistakes:?}");
    }
}
