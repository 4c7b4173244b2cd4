//! Every route of the service as a type, and the list of them.
//!
//! The server binds each type to a handler, the client calls it, and `openapi.json` and the access
//! test iterate over [`all`]. No path is written anywhere else, and no route can be forgotten: a
//! route that is not listed, or that the server does not bind, does not compile.

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limit;
pub use crate::parameter::{DefaultValue, Parameter, Place};
use crate::problem::{Decline, Problem, QueryFault};
use crate::request::Request;

/// The method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

impl Method {
    /// Returns the method as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Everyone.
    Open,
    /// Any valid bearer token.
    Any,
    /// Ingest and operator tokens.
    Ingest,
    /// Whoever signs the body with the webhook secret, as the forge does. Tokens are ignored.
    Signature,
    /// The operator token.
    Operator,
    /// Retrieval and operator tokens, which read only the Sessions of the configured grant. A named
    /// retrieval token reads what is granted to its name.
    Context(Grant),
    /// Retrieval tokens, which read what is granted to them, and operator tokens, which read all
    /// Sessions.
    Search,
}

/// The kind of grant that a context route needs; otherwise it answers 404. The grants of a named
/// token count as plural, so a request must name the Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grant {
    /// One configured Session.
    Single,
    /// One configured Session or several.
    Configured,
}

/// Whether it is safe to send a request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// It is safe: the request only reads, or its repetition is recognised as a redelivery.
    Safe,
    /// It is safe if the request names its delivery, which only the caller knows.
    WhenNamed,
    /// It is not safe: each request is recorded, whatever it contains.
    Never,
}

/// How many items a request has, and for how many of them the reply accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    /// The number of parts that were requested, or of payloads that were sent.
    pub requested: usize,
    /// The number of parts that were returned, or of payloads that the receipt counts.
    pub returned: usize,
}

impl Tally {
    /// Returns whether the reply accounts for exactly the items of its request.
    pub const fn is_whole(self) -> bool {
        self.requested == self.returned
    }
}

/// The content encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentEncoding {
    /// `gzip`, with one or more members.
    Gzip,
}

impl ContentEncoding {
    /// Returns the encoding as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
        }
    }
}

/// Marks a route that is in the list of routes. Only the list implements this trait, so a route
/// that is not listed does not compile.
pub trait Listed {}

/// One route.
pub trait Endpoint: Listed + 'static {
    /// The name of the operation: unique, in lower camel case.
    const NAME: &'static str;
    /// One sentence that describes the operation.
    const SUMMARY: &'static str;
    /// The method.
    const METHOD: Method;
    /// The path, with parameters in braces.
    const PATH: &'static str;
    /// Who may call it.
    const ACCESS: Access;
    /// The maximum size of a request body in bytes. It applies to the encoded and to the decoded
    /// body.
    const BODY_BYTES_MAX: usize = limit::BODY_BYTES_MAX;
    /// The accepted content encodings: those of deliveries. A route without any ignores the header
    /// `content-encoding`.
    const CONTENT_ENCODINGS: &'static [ContentEncoding] = match Self::ACCESS {
        Access::Ingest | Access::Signature => &[ContentEncoding::Gzip],
        Access::Open | Access::Any | Access::Operator | Access::Context(_) | Access::Search => &[],
    };
    /// Whether query parameters that resemble no declared one are ignored. Otherwise each undeclared
    /// one is refused.
    const IGNORES_OTHER_QUERY: bool = false;
    /// The maximum size of a reply in bytes: that of evidence, or of queries for a route with an
    /// answer of its own to a larger one.
    const REPLY_BYTES_MAX: usize = match size(Self::CONFLICT) {
        Some(_) => limit::QUERY_REPLY_BYTES_MAX,
        None => limit::EVIDENCE_REPLY_BYTES_MAX,
    };
    /// The answer to a body that cannot be read, with status 400.
    const UNREADABLE: Explanation = Explanation {
        description: "The body is not JSON.",
        problems: &[("malformed", Problem::MalformedJson)],
    };
    /// The answer with status 409, if a request may conflict with what is stored or exceed a bound.
    const CONFLICT: Option<Explanation> = None;
    /// The conflicts between the parameters of a request, with status 422.
    const FAULTS: Faults = &[];
    /// The documented statuses, besides 200.
    const STATUSES: &'static [u16] = statuses(Self::ACCESS, Self::METHOD, Self::CONFLICT.is_some());
    /// The answer in place of a reply that exceeds [`Endpoint::REPLY_BYTES_MAX`]: the problem `size`
    /// of [`Endpoint::CONFLICT`], or that of evidence.
    const OVERSIZE: &'static Problem = match size(Self::CONFLICT) {
        Some(problem) => problem,
        None => &Problem::Declined(Decline::EvidenceResponseLimit {
            limit: Self::REPLY_BYTES_MAX as u64,
        }),
    };
    /// Whether it is safe to send a request again.
    const REPEAT: Repeat = Repeat::Safe;
    /// The type of a request.
    type Request: Request;
    /// The type of the reply with status 200.
    type Reply: Serialize + DeserializeOwned + Published;
    /// The published schema of the request body, if it has one.
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> = None;
    /// The parameters in the path, the query and the headers.
    const PARAMETERS: &'static [Parameter] = Self::Request::PARAMETERS;

    /// Compares the items of a request with those of its reply; `None` for a route whose replies do
    /// not answer item by item.
    fn tally(_request: &Self::Request, _reply: &Self::Reply) -> Option<Tally> {
        None
    }
}

/// The conflicts between the parameters of a request, by name.
pub type Faults = &'static [(&'static str, QueryFault)];

/// What a status of a route means.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// When the status is returned.
    pub description: &'static str,
    /// The problems that it is used for, by name.
    pub problems: &'static [(&'static str, Problem)],
}

/// Returns the conflict of a reply that is too large, if a route has one.
const fn size(conflict: Option<Explanation>) -> Option<&'static Problem> {
    let Some(Explanation { mut problems, .. }) = conflict else {
        return None;
    };
    while let [(name, problem), others @ ..] = problems {
        if matches!(name.as_bytes(), b"size") {
            return Some(problem);
        }
        problems = others;
    }
    None
}

/// Returns the statuses of a route besides 200.
const fn statuses(access: Access, method: Method, conflicts: bool) -> &'static [u16] {
    match (access, method, conflicts) {
        (Access::Open, ..) => &[422, 503],
        // A named retrieval token is looked up in the store.
        (Access::Any, ..) => &[401, 422, 503],
        (Access::Signature, ..) => &[400, 401, 409, 413, 415, 422, 503],
        (Access::Ingest, _, true) => &[400, 401, 403, 409, 413, 415, 422, 503],
        (Access::Ingest, _, false) => &[400, 401, 403, 413, 415, 422, 503],
        (Access::Operator, Method::Get, true) => &[401, 403, 409, 422, 503],
        (Access::Operator, Method::Get, false) => &[401, 403, 422, 503],
        (Access::Operator, Method::Post, true) => &[400, 401, 403, 409, 413, 422, 503],
        (Access::Operator, Method::Post, false) => &[400, 401, 403, 413, 422, 503],
        (Access::Search, Method::Get, false) => &[401, 403, 404, 422, 503],
        (Access::Search, Method::Post, _) => &[400, 401, 403, 404, 413, 422, 503],
        (Access::Context(_), Method::Get, _) | (Access::Search, Method::Get, true) => {
            &[401, 403, 404, 409, 422, 503]
        }
        (Access::Context(_), Method::Post, _) => &[400, 401, 403, 404, 409, 413, 422, 503],
    }
}

/// A type with a published schema, which the feature `schema` can generate.
#[cfg(feature = "schema")]
pub trait Published: JsonSchema {}
#[cfg(feature = "schema")]
impl<T: JsonSchema> Published for T {}

/// A type with a published schema, which the feature `schema` can generate.
#[cfg(not(feature = "schema"))]
pub trait Published {}
#[cfg(not(feature = "schema"))]
impl<T> Published for T {}

/// A function that returns the schema of a type.
#[cfg(feature = "schema")]
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One route as a value.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// See [`Endpoint::NAME`].
    pub name: &'static str,
    /// See [`Endpoint::SUMMARY`].
    pub summary: &'static str,
    /// See [`Endpoint::METHOD`].
    pub method: Method,
    /// See [`Endpoint::PATH`].
    pub path: &'static str,
    /// See [`Endpoint::ACCESS`].
    pub access: Access,
    /// See [`Endpoint::BODY_BYTES_MAX`].
    pub body_bytes_max: usize,
    /// See [`Endpoint::CONTENT_ENCODINGS`].
    pub content_encodings: &'static [ContentEncoding],
    /// See [`Endpoint::REPLY_BYTES_MAX`].
    pub reply_bytes_max: usize,
    /// See [`Endpoint::UNREADABLE`].
    pub unreadable: Explanation,
    /// See [`Endpoint::CONFLICT`].
    pub conflict: Option<Explanation>,
    /// See [`Endpoint::FAULTS`].
    pub faults: Faults,
    /// See [`Endpoint::STATUSES`].
    pub statuses: &'static [u16],
    /// See [`Endpoint::REPEAT`].
    pub repeat: Repeat,
    /// See [`Endpoint::PARAMETERS`].
    pub parameters: &'static [Parameter],
    /// See [`Endpoint::REQUEST_SCHEMA`].
    #[cfg(feature = "schema")]
    pub request_schema: Option<SchemaOf>,
    /// The schema of the reply.
    #[cfg(feature = "schema")]
    pub reply_schema: SchemaOf,
}

/// Returns a route as a value.
pub fn describe<E: Endpoint>() -> Description {
    Description {
        name: E::NAME,
        summary: E::SUMMARY,
        method: E::METHOD,
        path: E::PATH,
        access: E::ACCESS,
        body_bytes_max: E::BODY_BYTES_MAX,
        content_encodings: E::CONTENT_ENCODINGS,
        reply_bytes_max: E::REPLY_BYTES_MAX,
        unreadable: E::UNREADABLE,
        conflict: E::CONFLICT,
        faults: E::FAULTS,
        statuses: E::STATUSES,
        repeat: E::REPEAT,
        parameters: E::PARAMETERS,
        #[cfg(feature = "schema")]
        request_schema: E::REQUEST_SCHEMA,
        #[cfg(feature = "schema")]
        reply_schema: SchemaGenerator::subschema_for::<E::Reply>,
    }
}

/// Declares one route: its type, method and path, the name of its operation, who may call it, its
/// request and reply, one sentence about it, and where it differs from the defaults of
/// [`Endpoint`].
macro_rules! endpoint {
    (
        $endpoint:ident: $method:ident $path:literal as $name:literal for $access:expr,
        $request:ty => $reply:ty,
        $summary:literal $({ $($more:tt)* })?
    ) => {
        #[doc = concat!("`", stringify!($method), " ", $path, "`. ", $summary)]
        #[derive(Debug)]
        pub enum $endpoint {}
        impl $crate::endpoint::Endpoint for $endpoint {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const METHOD: $crate::endpoint::Method = endpoint!(@method $method);
            const PATH: &'static str = $path;
            const ACCESS: $crate::endpoint::Access = $access;
            #[cfg(feature = "schema")]
            const REQUEST_SCHEMA: Option<$crate::endpoint::SchemaOf> =
                endpoint!(@schema $method $request);
            type Request = $request;
            type Reply = $reply;
            $($($more)*)?
        }
    };
    (@method GET) => { $crate::endpoint::Method::Get };
    (@method POST) => { $crate::endpoint::Method::Post };
    (@schema GET $request:ty) => { None };
    (@schema POST $request:ty) => { Some(schemars::SchemaGenerator::subschema_for::<$request>) };
}

/// Declares the routes by file. Every list of routes is generated here: the modules and their
/// exports, [`all`], [`Listed`], and [`for_each_endpoint`](crate::for_each_endpoint) for other
/// crates.
macro_rules! endpoints {
    ($($module:ident { $($endpoint:ident),+ $(,)? })+) => {
        $(
            mod $module;
            pub use self::$module::{$($endpoint),+};
        )+

        $($(impl Listed for $endpoint {})+)+

        /// Returns every route.
        pub fn all() -> Vec<Description> {
            vec![$($(describe::<$endpoint>()),+),+]
        }

        /// Calls a macro with the names of all routes: `callback! { HealthProbe Me … }`. Code that
        /// must handle every route, such as a server's router, cannot miss one.
        #[macro_export]
        macro_rules! for_each_endpoint {
            ($callback:ident) => {
                $callback! { $($($endpoint)+)+ }
            };
        }
    };
}

endpoints! {
    identity { HealthProbe, Me }
    ingest { IngestGateway, IngestGatewayBatch, IngestCalls, IngestCi }
    forge {
        IngestForge, IngestForgePush, IngestForgeRepository, IngestForgeCi, IngestForgePullRequest,
    }
    capture { Capture }
    logs { Logs }
    traces { Traces }
    quarantine { Quarantine, Release, QuarantineLogPage }
    grants { Grants, GrantExplain, GrantAdd, GrantRemove, TokenRevoke, TokenRestore }
    facts { Facts, SessionFacts, SessionCalls, Compatibility }
    evidence { EvidenceInventory, EvidenceManifest, EvidenceReading }
    query {
        CiOutcomeQuery, CiRunsQuery, CiFailuresQuery, SessionsQuery, GrantSessions, SessionQuery,
        CommitQuery,
    }
    prices { PriceLoad, PriceTables, PriceRates }
    reports { ModelOutcomesReport, AcceptedWorkLifecycleReport, CohortSpendReport, OverviewQuery }
    context {
        ContextRetrieval, Discovery, Selected, GrantInventory, GrantManifest, GrantRead,
    }
    search { Search }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_and_every_name_is_listed_once() {
        let all = all();
        let names: BTreeSet<_> = all.iter().map(|route| route.name).collect();
        let routes: BTreeSet<_> = all
            .iter()
            .map(|route| (route.path, route.method.as_str()))
            .collect();
        assert_eq!(names.len(), all.len());
        assert_eq!(routes.len(), all.len());
    }

    #[test]
    fn path_parameters_are_declared() {
        for route in all() {
            let in_path = route.path.matches('{').count();
            let declared = route
                .parameters
                .iter()
                .filter(|parameter| parameter.place == Place::Path)
                .count();
            assert_eq!(in_path, declared, "{}", route.path);
        }
    }
}
