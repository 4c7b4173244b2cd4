//! The evidence service over HTTP.
//!
//! For each request, the body is measured, the caller is identified, the body is parsed as the
//! endpoint's type, the engine is called once, and the reply is written within its budget. The
//! order of these checks is the same for every route (`dispatch`). Only `problem` knows status
//! codes, and this crate makes no decisions about facts.

mod accept;
mod admission;
mod allocator;
mod alone;
mod app;
mod auth;
mod body;
mod console;
mod counts;
mod dispatch;
mod embedded;
pub mod env;
mod gzip;
mod handler;
mod head;
mod host;
mod limits;
mod log_limit;
pub mod memory;
mod metrics;
mod observe;
mod open_files;
mod places;
mod presence;
mod problem;
mod reply;
mod routes;
pub mod schemas;
mod serve;
mod settings;
mod signature;
mod socket;
mod source;

pub use alone::alone;
pub use console::{ConsoleRoute, routes as console_routes};
pub use embedded::{LocalCredentials, as_local, local_credentials, local_url, running_here};
pub use env::LogFormat;
pub use presence::find as running_at;
pub use schemas::OPENAPI;
pub use serve::{RunningServer, ServeError, serve, start, start_by};
pub use settings::{
    Grant, MirrorSettings, Overrides, SearchSetting, Settings, SettingsError, ShownSetting,
    StoreSettings, mirrors_beside, shown_settings,
};
pub use source::{SettingOrigin, config_folder, data_folder, state_folder};
