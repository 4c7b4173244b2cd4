//! The variables of a job, and the event that started it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;

use svc_model::json::{Json, Object};

/// The maximum size of an event, which is the most that a forge sends. In bytes.
const EVENT_BYTES_MAX: u64 = 25 * 1024 * 1024;

/// The variables of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    variables: BTreeMap<String, String>,
    event: OnceCell<Option<Object>>,
}

impl Environment {
    /// Returns the variables of this process. A variable that is not Unicode counts as absent.
    pub(super) fn process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            variables: variables.collect(),
            ..Self::default()
        }
    }

    /// Returns a variable, trimmed. A blank one counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Returns the first of these variables that is set.
    pub(super) fn first<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
        let mut values = names.into_iter().filter_map(|name| self.get(name));
        values.next().map(str::to_owned)
    }

    /// Returns what is at a path of members, such as `a.b`, in the [event](Self::event) that a
    /// variable names.
    pub(super) fn at(&self, path: &str, event: &str) -> Option<String> {
        let path: Vec<&str> = path.split('.').collect();
        text_at(self.event(event)?, &path)
    }

    /// Returns the JSON object in the file that a variable names, which is read once. A pipe or a
    /// device, which may never end, counts as absent.
    fn event(&self, name: &str) -> Option<&Object> {
        let event = self.event.get_or_init(|| event_in(self.get(name)?));
        event.as_ref()
    }

    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        let owned = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            variables: owned.collect(),
            ..Self::default()
        }
    }
}

fn event_in(path: &str) -> Option<Object> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(EVENT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Json::parse(&bytes).ok()?.into_object()
}

/// Returns the text, or a number as it is spelled, at a path of members.
fn text_at(object: &Object, path: &[&str]) -> Option<String> {
    let (last, parents) = path.split_last()?;
    let mut object = object;
    for name in parents {
        object = object.get(name)?.as_object()?;
    }
    let text = match object.get(last)? {
        Json::String(text) => text.as_str()?.trim().to_owned(),
        Json::Number(number) => number.as_str().to_owned(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_variable_is_absent() {
        let environment = Environment::of(&[("A", " "), ("B", " b ")]);
        assert_eq!(environment.get("A"), None);
        assert_eq!(environment.first(["A", "B", "C"]).unwrap(), "b");
    }

    #[test]
    fn an_event_is_read_from_a_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("event"), folder.path().join("pipe"));
        fs::write(&file, b"{}").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let event = |path: &std::path::Path| {
            Environment::of(&[("EVENT", path.to_str().unwrap())])
                .event("EVENT")
                .cloned()
        };
        assert!(event(&file).is_some());
        for other in [&*pipe, "/dev/zero".as_ref(), folder.path()] {
            assert_eq!(event(other), None);
        }
    }

    #[test]
    fn an_event_is_read_member_by_member() {
        let event = Json::parse(br#"{"a":{"b":{"id":90071992547409931,"name":" n ","no":true}}}"#);
        let event = event.unwrap().into_object().unwrap();
        let at = |path: &[&str]| text_at(&event, path);
        assert_eq!(at(&["a", "b", "id"]).unwrap(), "90071992547409931");
        assert_eq!(at(&["a", "b", "name"]).unwrap(), "n");
        assert_eq!(at(&["a", "b", "no"]), None);
        assert_eq!(at(&["a", "c", "id"]), None);
    }
}
