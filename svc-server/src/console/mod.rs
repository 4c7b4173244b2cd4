//! The console: pages for people, at `/console`.
//!
//! A page calls the functions of the routes, as agents' tools do, and shows their answers. It is
//! read-only. There are no scripts: a page is a document with our style sheet and nothing else.
//!
//! One list names every page and who may open it. For each request, the host is checked, then the
//! sign-in, then the page runs. One place writes the answer, with the common headers.

mod answer;
mod asset;
mod attempts;
mod guard;
mod layout;
mod link;
mod pages;
mod plot;
mod refused;
mod sign_in;
mod signed_in;
mod text;
mod visit;

use axum::http::HeaderMap;
use svc_model::endpoint::Method;

use self::attempts::Attempts;
use self::guard::Hosts;
use self::signed_in::SignedIn;
use crate::handler::Handler;
use crate::settings::ConsoleSettings;

/// The state of the console: who has signed in, and the failed attempts.
pub(crate) struct Console {
    hosts: Hosts,
    signed_in: SignedIn,
    attempts: Attempts,
}

impl Console {
    pub(crate) fn new(settings: &ConsoleSettings) -> Self {
        Self {
            hosts: Hosts::new(&settings.hosts),
            signed_in: SignedIn::default(),
            attempts: Attempts::default(),
        }
    }

    /// Returns whether a request names a host of the console.
    fn is_host(&self, headers: &HeaderMap) -> bool {
        self.hosts.name(headers)
    }
}

/// One page or form of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleRoute {
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// Whether it is open to people who have not signed in.
    pub is_open: bool,
}

macro_rules! pages {
    ($($access:ident $method:ident $path:literal => $function:path;)+) => {
        /// Returns every page and form of the console.
        pub fn routes() -> Vec<ConsoleRoute> {
            vec![$(ConsoleRoute {
                method: Method::$method,
                path: $path,
                is_open: pages!(@is_open $access),
            }),+]
        }

        /// Returns every page and form with its handler.
        pub(crate) fn handlers() -> Vec<(ConsoleRoute, Handler)> {
            let handlers = [$(pages!(@bind $access $function)),+];
            routes().into_iter().zip(handlers).collect()
        }
    };
    (@is_open open) => { true };
    (@is_open operator) => { false };
    (@bind open $function:path) => { answer::open($function) };
    (@bind operator $function:path) => { answer::signed_in($function) };
}

pages! {
    open Get "/console/assets/{name}" => asset::asset;
    open Get "/console/sign-in" => sign_in::form;
    open Post "/console/sign-in" => sign_in::sign_in;
    operator Get "/console/sign-out" => sign_in::sign_out_form;
    open Post "/console/sign-out" => sign_in::sign_out;
    operator Get "/console" => pages::overview::page;
    operator Get "/console/sessions" => pages::sessions::page;
    operator Get "/console/search" => pages::search::page;
    operator Get "/console/session" => pages::session::page;
    operator Get "/console/calls" => pages::calls::page;
    operator Get "/console/call" => pages::call::page;
    operator Get "/console/part" => pages::part::page;
    operator Get "/console/failures" => pages::failures::page;
    operator Get "/console/commit" => pages::commit::page;
    operator Get "/console/models" => pages::models::page;
    operator Get "/console/comparison" => pages::comparison::page;
    operator Get "/console/lifecycle" => pages::lifecycle::page;
    operator Get "/console/abandonment" => pages::abandonment::page;
    operator Get "/console/retention" => pages::retention::page;
    operator Get "/console/share" => pages::share::page;
    operator Get "/console/spend" => pages::spend::page;
    operator Get "/console/health" => pages::health::page;
    operator Get "/console/quarantine" => pages::quarantine::page;
}
