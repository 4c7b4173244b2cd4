//! A fake service for tests. It gives scripted answers, one for each request.
//!
//! ```
//! use svc_client::testing::{Answer, FakeServer};
//!
//! let server = FakeServer::start([
//!     Answer::text(503, "").header("retry-after", "0"),
//!     Answer::text(200, r#"{"status":"ok","version":"0.1.0"}"#),
//! ]);
//! let client = server.client();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let health = client.health().await.unwrap();
//! assert_eq!(health.version, "0.1.0");
//! # });
//! assert_eq!(server.received().len(), 2);
//! ```

mod answer;
mod server;

pub use self::answer::Answer;
pub use self::server::{FakeServer, Received};
