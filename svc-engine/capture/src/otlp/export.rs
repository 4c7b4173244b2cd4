//! Splits an export into resources and records: log records, or spans.

use svc_model::json::{Json, Object, Text};
use svc_model::limit::{LOG_RECORDS_MAX, SPANS_MAX};

use super::LogsError;

/// What an export is about.
#[derive(Debug)]
pub(super) struct Signal {
    /// The names of the lists from the outside in.
    pub(super) resources: &'static str,
    pub(super) scopes: &'static str,
    pub(super) records: &'static str,
    /// How many records an export may have.
    pub(super) records_max: usize,
}

/// Log records.
pub(super) const LOGS: Signal = Signal {
    resources: "resourceLogs",
    scopes: "scopeLogs",
    records: "logRecords",
    records_max: LOG_RECORDS_MAX,
};

/// Spans.
pub(super) const TRACES: Signal = Signal {
    resources: "resourceSpans",
    scopes: "scopeSpans",
    records: "spans",
    records_max: SPANS_MAX,
};

/// The records of an export without their containers.
#[derive(Debug)]
pub(super) struct Export {
    /// The resources that have records.
    pub(super) resources: Vec<Object>,
    /// The scopes that have records, each with the index of its resource.
    pub(super) scopes: Vec<ExportScope>,
    /// The records, each with the index of its scope.
    pub(super) records: Vec<(usize, Object)>,
    /// Records that are not objects.
    pub(super) malformed_records: u64,
    /// Containers that are not the list or the object that their place requires.
    pub(super) malformed_containers: u64,
    /// How many more records may follow.
    records_left: usize,
}

/// What made the records of an export.
#[derive(Debug)]
pub(super) struct ExportScope {
    /// The index of its resource.
    pub(super) resource: usize,
    /// Its name, such as that of a library.
    pub(super) name: Option<Text>,
}

impl Export {
    /// Splits an export. A level that is not a list counts as empty, and an element that is not an
    /// object is ignored. Neither affects the rest.
    ///
    /// # Errors
    ///
    /// If there are too many records.
    pub(super) fn of(mut request: Object, signal: &Signal) -> Result<Self, LogsError> {
        let mut export = Self {
            resources: Vec::new(),
            scopes: Vec::new(),
            records: Vec::new(),
            malformed_records: 0,
            malformed_containers: 0,
            records_left: signal.records_max,
        };
        for mut of_resource in export.objects(&mut request, signal.resources) {
            let mut scopes = Vec::new();
            for mut of_scope in export.objects(&mut of_resource, signal.scopes) {
                let records = export.list(&mut of_scope, signal.records);
                if !records.is_empty() {
                    scopes.push((scope_name(&mut of_scope), records));
                }
            }
            let resource = match of_resource.get_mut("resource").map(std::mem::take) {
                None | Some(Json::Null) => Object::new(),
                Some(Json::Object(resource)) => resource,
                Some(_) => {
                    export.malformed_containers += 1;
                    Object::new()
                }
            };
            if scopes.is_empty() {
                continue;
            }
            let place = export.resources.len();
            export.resources.push(resource);
            for (name, records) in scopes {
                let resource = place;
                export.add(ExportScope { resource, name }, records)?;
            }
        }
        Ok(export)
    }

    fn add(&mut self, scope: ExportScope, records: Vec<Json>) -> Result<(), LogsError> {
        self.records_left = self
            .records_left
            .checked_sub(records.len())
            .ok_or(LogsError::TooLarge)?;
        let place = self.scopes.len();
        self.scopes.push(scope);
        for record in records {
            match record {
                Json::Object(record) => self.records.push((place, record)),
                _ => self.malformed_records += 1,
            }
        }
        Ok(())
    }

    fn objects(&mut self, holder: &mut Object, name: &str) -> Vec<Object> {
        let items = self.list(holder, name);
        let count = items.len();
        let objects: Vec<Object> = items.into_iter().filter_map(Json::into_object).collect();
        self.malformed_containers += (count - objects.len()) as u64;
        objects
    }

    fn list(&mut self, holder: &mut Object, name: &str) -> Vec<Json> {
        match holder.get_mut(name).map(std::mem::take) {
            None => {
                // A list of nearly this name is not read, which its sender should know.
                let is_meant = holder.iter().any(|(other, _)| is_alike(other, name));
                self.malformed_containers += u64::from(is_meant);
                Vec::new()
            }
            Some(Json::Null) => Vec::new(),
            Some(Json::Array(items)) => items,
            Some(_) => {
                self.malformed_containers += 1;
                Vec::new()
            }
        }
    }
}

fn scope_name(of_scope: &mut Object) -> Option<Text> {
    let scope = of_scope.get_mut("scope")?.as_object_mut()?;
    scope.get_mut("name").map(std::mem::take)?.into_text()
}

/// Returns whether two names are equal apart from case and underscores.
fn is_alike(one: &Text, other: &str) -> bool {
    let letters = |name: &str| name.replace('_', "").to_ascii_lowercase();
    one.as_str()
        .is_some_and(|one| letters(one) == letters(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(text: &str) -> Export {
        let object = Json::parse(text.as_bytes()).unwrap().into_object();
        Export::of(object.unwrap(), &LOGS).unwrap()
    }

    #[test]
    fn a_container_of_the_wrong_type_counts_as_empty() {
        for (text, malformed_containers) in [
            ("{}", 0),
            (r#"{"resourceLogs":null}"#, 0),
            (r#"{"resourceLogs":[]}"#, 0),
            (r#"{"resourceLogs":{"x":1}}"#, 1),
            (r#"{"resource_logs":[{"scope_logs":[]}]}"#, 1),
            (r#"{"resourcelogs":[]}"#, 1),
            (r#"{"resourceLogs":[{"ScopeLogs":[]}]}"#, 1),
            (r#"{"resourceSpans":[]}"#, 0),
            (r#"{"resourceLogs":[1,null,"x",{}]}"#, 3),
            (
                r#"{"resourceLogs":[{"scopeLogs":7},{"scopeLogs":[[]]}]}"#,
                2,
            ),
            (
                r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":true}]}]}"#,
                1,
            ),
            (r#"{"resourceLogs":[{"resource":[],"scopeLogs":null}]}"#, 1),
        ] {
            let export = export(text);
            assert_eq!(export.malformed_containers, malformed_containers, "{text}");
            assert!(export.records.is_empty() && export.resources.is_empty());
        }
    }

    #[test]
    fn an_export_with_too_many_records_is_refused() {
        let export = |record: &str, count: usize| {
            let scope = format!(
                r#"{{"scopeLogs":[{{"logRecords":[{}]}}]}}"#,
                vec![record; count / 2].join(",")
            );
            let text = format!(r#"{{"resourceLogs":[{scope},{scope}]}}"#);
            let object = Json::parse(text.as_bytes()).unwrap().into_object();
            Export::of(object.unwrap(), &LOGS).map(|export| export.records.len())
        };
        assert_eq!(export("{}", LOG_RECORDS_MAX), Ok(LOG_RECORDS_MAX));
        for record in ["{}", "0"] {
            let refused = export(record, LOG_RECORDS_MAX + 2);
            assert_eq!(refused, Err(LogsError::TooLarge), "{record}");
        }
    }

    #[test]
    fn records_keep_their_order_and_their_resource() {
        let export = export(
            r#"{"resourceLogs":[
                {"scopeLogs":[{"logRecords":[{"n":1},2,{"n":3}]},5,{"logRecords":[{"n":4}]}],"resource":{"r":1}},
                {"resource":{"r":0}},
                {"resource":7,"scopeLogs":[{"logRecords":[null,{"n":5}]}]}]}"#,
        );
        assert_eq!(
            (export.malformed_records, export.malformed_containers),
            (2, 2)
        );
        assert_eq!(export.resources.len(), 2);
        let records: Vec<(usize, i64)> = export
            .records
            .iter()
            .map(|(scope, record)| {
                (
                    export.scopes[*scope].resource,
                    record
                        .get("n")
                        .unwrap()
                        .as_number()
                        .unwrap()
                        .as_i64()
                        .unwrap(),
                )
            })
            .collect();
        assert_eq!(records, [(0, 1), (0, 3), (0, 4), (1, 5)]);
        assert!(export.resources[0].contains_key("r") && export.resources[1].is_empty());
    }
}
