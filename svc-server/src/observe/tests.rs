use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the only line that is logged in JSON.
fn line(logged: impl FnOnce()) -> String {
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || written.clone())
        .json()
        .map_event_format(JsonLine)
        .finish();
    tracing::subscriber::with_default(subscriber, logged);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    text
}

#[test]
fn a_line_of_json_keeps_every_cause_of_an_error() {
    #[derive(Debug, thiserror::Error)]
    #[error("the read")]
    struct Read(#[source] StoreError);

    let full = io::Error::new(io::ErrorKind::StorageFull, "no \"space\"\nleft");
    let error = Read(StoreError::File(full));
    let line = line(|| {
        tracing::error_span!("request", request_id = "r-1").in_scope(|| {
            tracing::warn!(
                error = &error as &dyn Error,
                mend = "\"fields\":{",
                "failed"
            );
        });
    });
    let order = ["timestamp", "level", "fields", "target", "span"];
    let places = order.map(|name| line.find(&format!("\"{name}\":")).unwrap());
    assert!(places.is_sorted(), "{line}");
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        line["fields"],
        json!({
            "message": "failed",
            "error": "the read",
            "error.sources": ["cannot use the database file", "no \"space\"\nleft"],
            "mend": "\"fields\":{",
        })
    );
    assert_eq!(line["span"]["request_id"], "r-1");
}

#[test]
fn a_line_of_json_without_a_cause_is_the_librarys() {
    let line = line(|| tracing::warn!(error = &StoreError::Closed as &dyn Error, "failed"));
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        line["fields"],
        json!({"message": "failed", "error": "the writer has stopped"})
    );
}
