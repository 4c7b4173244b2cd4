//! What tests build on: throw-away stores on both backends, and facts with sensible defaults.

pub use svc_engine_capture::testing as otlp;
pub use svc_engine_fact::testing::{builders, processes};
pub use svc_engine_mirror::testing::{git, git_server};
pub use svc_engine_store::testing::{Backend, TestStore, postgres, postgres_with_schema, run_sql};
