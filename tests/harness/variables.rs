//! The variables of a case: `{{name}}` in any of its strings.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use svc_model::json::{Json, Object, Text};

use crate::pattern::{Mismatch, shown};

/// The values that the names in a case stand for.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, Json>);

impl Variables {
    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.0.insert(name.into(), value.into());
    }

    /// Returns the value with every variable in its strings replaced, including in the names of
    /// members. A string that consists of one variable becomes the variable's value, of whatever
    /// type.
    ///
    /// # Errors
    ///
    /// If a variable is not set.
    pub fn fill(&mut self, value: &Json) -> Result<Json, Mismatch> {
        match value {
            Json::String(text) => match whole(text) {
                Some(name) => self.get(name),
                None => self.fill_text(text).map(Json::String),
            },
            Json::Array(items) => {
                let items: Result<Vec<Json>, Mismatch> =
                    items.iter().map(|item| self.fill(item)).collect();
                items.map(Json::Array)
            }
            Json::Object(object) => {
                let mut filled = Object::with_capacity(object.len());
                for (name, value) in object {
                    let name = self.fill_text(name)?;
                    filled.insert(name, self.fill(value)?);
                }
                Ok(Json::Object(filled))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(value.clone()),
        }
    }

    /// Returns the text with every variable replaced by its value's text.
    ///
    /// # Errors
    ///
    /// If a variable is not set, or has no text.
    pub fn fill_text(&mut self, text: &Text) -> Result<Text, Mismatch> {
        let mut rest = text.as_bytes();
        let mut filled = Vec::with_capacity(rest.len());
        while let Some(start) = find(rest, b"{{") {
            filled.extend_from_slice(&rest[..start]);
            rest = &rest[start..];
            if let Some((name, after)) = variable(rest) {
                let value = self.get(name)?;
                filled.extend_from_slice(spelled(name, &value)?.as_bytes());
                rest = after;
            } else {
                filled.push(rest[0]);
                rest = &rest[1..];
            }
        }
        filled.extend_from_slice(rest);
        Text::from_wtf8(filled).ok_or_else(|| Mismatch("two halves make one character".into()))
    }

    /// Returns the text with every variable replaced, as an ordinary string.
    ///
    /// # Errors
    ///
    /// If a variable is not set, or the result contains a surrogate.
    pub fn fill_str(&mut self, text: &str) -> Result<String, Mismatch> {
        let filled = self.fill_text(&text.into())?.into_string();
        filled.map_err(|text| Mismatch(format!("{text:?} holds a surrogate")))
    }

    fn get(&mut self, name: &str) -> Result<Json, Mismatch> {
        let name = name.trim();
        if let Some(value) = self.0.get(name) {
            return Ok(value.clone());
        }
        let moment = moment(name).ok_or_else(|| Mismatch(format!("no variable {name}")))?;
        // The same moment throughout the case.
        self.set(name, moment.clone());
        Ok(moment.into())
    }
}

/// Returns the variable, if it is the whole text.
fn whole(text: &Text) -> Option<&str> {
    let (name, after) = variable(text.as_bytes())?;
    after.is_empty().then_some(name)
}

/// Returns the variable at the start of the text, and what follows it.
fn variable(text: &[u8]) -> Option<(&str, &[u8])> {
    let inner = text.strip_prefix(b"{{")?;
    let end = inner.iter().position(|byte| matches!(byte, b'{' | b'}'))?;
    let after = inner[end..].strip_prefix(b"}}")?;
    let name = std::str::from_utf8(&inner[..end]).ok()?;
    (end > 0).then_some((name, after))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Returns a value as it is written inside a longer string.
fn spelled(name: &str, value: &Json) -> Result<Text, Mismatch> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) => Ok(number.as_str().into()),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => Err(Mismatch(format!(
            "{name} inside a string is {}",
            shown(value)
        ))),
    }
}

/// Returns the moment that `now`, `now-1h` or `nowus` stands for: in seconds, or with `us` in
/// microseconds.
fn moment(name: &str) -> Option<String> {
    let rest = name.strip_prefix("now")?;
    let (rest, microseconds) = match rest.strip_suffix("us") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let distance = if rest.is_empty() {
        SignedDuration::ZERO
    } else {
        let (number, unit) = rest.split_at_checked(rest.len() - 1)?;
        let signed =
            number.starts_with(['+', '-']) && number[1..].bytes().all(|b| b.is_ascii_digit());
        let number: i64 = number.parse().ok().filter(|_| signed)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        SignedDuration::from_secs(number * unit)
    };
    let now = Timestamp::try_from(SystemTime::now()).ok()?;
    let moment = now.checked_add(distance).ok()?;
    Some(if microseconds {
        format!("{moment:.6}")
    } else {
        format!("{moment:.0}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).expect("JSON")
    }

    fn variables() -> Variables {
        let mut variables = Variables::default();
        variables.set("n", 5);
        variables.set("s", "x");
        variables.set("list", json("[1]"));
        variables
    }

    #[test]
    fn a_variable_that_is_the_whole_string_keeps_its_type() {
        let filled = variables().fill(&json(
            r#"["{{n}}","a{{n}}{{s}}","{{list}}",{"k{{s}}":"{{ s }}"}]"#,
        ));
        assert_eq!(filled, Ok(json(r#"[5,"a5x",[1],{"kx":"x"}]"#)));
    }

    #[test]
    fn braces_that_are_not_a_variable_are_kept() {
        for (given, wanted) in [
            (r#""{}{{}}{{a""#, r#""{}{{}}{{a""#),
            (r#""{{{s}}}""#, r#""{x}""#),
            (r#""\ud800{{s}}""#, r#""\ud800x""#),
        ] {
            assert_eq!(variables().fill(&json(given)), Ok(json(wanted)));
        }
    }

    #[test]
    fn an_unknown_name_and_a_list_inside_a_string_are_mismatches() {
        for given in [
            r#""{{other}}""#,
            r#""x{{list}}""#,
            r#""{{now+1x}}""#,
            r#""{{now1h}}""#,
        ] {
            assert!(variables().fill(&json(given)).is_err(), "{given}");
        }
    }

    #[test]
    fn a_moment_stays_the_same_and_has_the_wanted_precision() {
        let mut variables = variables();
        let first = variables.fill(&json(r#""{{nowus}}""#)).expect("a moment");
        assert_eq!(variables.fill(&json(r#""{{nowus}}""#)), Ok(first.clone()));
        assert_eq!(
            first.as_str().expect("text").len(),
            "2026-01-02T03:04:05.000000Z".len()
        );
        let second = variables.fill(&json(r#""{{now-1d}}""#)).expect("a moment");
        assert_eq!(
            second.as_str().expect("text").len(),
            "2026-01-02T03:04:05Z".len()
        );
        assert!(second.as_str() < first.as_str());
    }
}
