//! Every route of the service as a type, and the list of them.
//!
//! The server binds each type to a handler, the client calls it, `openapi.json` and the access test
//! walk [`all`]. No path is written anywhere else, and no route can be forgotten: one that is not
//! listed, or that the server does not bind, does not compile.

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limit;
pub use crate::parameter::{DefaultValue, Parameter, Place};
use crate::problem::{Decline, Problem};
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
    /// Everybody.
    Open,
    /// Every configured bearer token.
    Any,
    /// Ingest and operator tokens.
    Ingest,
    /// Whoever signs the body with the webhook secret: the forge. No token is looked at.
    Signature,
    /// The operator token.
    Operator,
    /// Retrieval and operator tokens, within the configured grant; a retrieval token with a name within
    /// what is granted to it.
    Context(Grant),
}

/// Which grant a context route needs; with another it is 404. That of a token with a name is one of several
/// Sessions, which must be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grant {
    /// One configured Session.
    Single,
    /// One configured Session or several.
    Configured,
}

/// Whether a repeated request is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// It reads only, or its repetition is recognised as a redelivery.
    Safe,
    /// It is safe when the request names its delivery, which the caller knows.
    WhenNamed,
}

/// How a body is encoded for its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentEncoding {
    /// `gzip`: one member or several.
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

/// That a route stands in the list of routes. Only the list implements it, so that a route which is
/// not listed does not compile.
pub trait Listed {}

/// One route.
pub trait Endpoint: Listed + 'static {
    /// The name of the operation, unique, in lower camel case.
    const NAME: &'static str;
    /// One sentence that says what it answers.
    const SUMMARY: &'static str;
    /// The method.
    const METHOD: Method;
    /// The path; parameters in braces.
    const PATH: &'static str;
    /// Who may call it.
    const ACCESS: Access;
    /// The most bytes of a request body, on its way and decoded.
    const BODY_BYTES_MAX: usize = limit::BODY_BYTES_MAX;
    /// How a request body may be encoded for its way. On a route that names none the header
    /// `content-encoding` is not looked at.
    const CONTENT_ENCODINGS: &'static [ContentEncoding] = &[];
    /// The most bytes of a reply.
    const REPLY_BYTES_MAX: usize = limit::EVIDENCE_REPLY_BYTES_MAX;
    /// The statuses beside 200 that it documents.
    const STATUSES: &'static [u16];
    /// What is answered instead of a reply over [`Endpoint::REPLY_BYTES_MAX`].
    const OVERSIZE: Problem = Problem::Declined(Decline::EvidenceResponseLimit {
        limit: Self::REPLY_BYTES_MAX as u64,
    });
    /// Whether a repeated request is safe.
    const REPEAT: Repeat = Repeat::Safe;
    /// What it is asked.
    type Request: Request;
    /// What it answers with status 200.
    type Reply: Serialize + DeserializeOwned + Published;
    /// The published schema of the request body, when it has one.
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> = None;
    /// The parameters in the path, the query and the headers.
    const PARAMETERS: &'static [Parameter] = &[];
}

/// What has a published schema; with the feature `schema` it can be made.
#[cfg(feature = "schema")]
pub trait Published: JsonSchema {}
#[cfg(feature = "schema")]
impl<T: JsonSchema> Published for T {}

/// What has a published schema; with the feature `schema` it can be made.
#[cfg(not(feature = "schema"))]
pub trait Published {}
#[cfg(not(feature = "schema"))]
impl<T> Published for T {}

/// Gives the schema of a type.
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
    /// See [`Endpoint::STATUSES`].
    pub statuses: &'static [u16],
    /// See [`Endpoint::PARAMETERS`].
    pub parameters: &'static [Parameter],
    /// See [`Endpoint::REQUEST_SCHEMA`].
    #[cfg(feature = "schema")]
    pub request_schema: Option<SchemaOf>,
    /// The schema of the reply.
    #[cfg(feature = "schema")]
    pub reply_schema: SchemaOf,
}

/// Returns the route as a value.
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
        statuses: E::STATUSES,
        parameters: E::PARAMETERS,
        #[cfg(feature = "schema")]
        request_schema: E::REQUEST_SCHEMA,
        #[cfg(feature = "schema")]
        reply_schema: SchemaGenerator::subschema_for::<E::Reply>,
    }
}

/// Declares the routes by the file they are in. Every list of routes comes from here: the modules and
/// their exports, [`all`], [`Listed`], and what other crates walk with
/// [`for_each_endpoint`](crate::for_each_endpoint).
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

        /// Calls a macro with the names of all routes: `callback! { HealthProbe Me … }`. Who has to
        /// do something for each, as a server that binds them, forgets none.
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
    ingest { IngestGateway, IngestGatewayBatch, IngestCi }
    forge {
        IngestForge, IngestForgePush, IngestForgeRepository, IngestForgeCi, IngestForgePullRequest,
    }
    capture { Capture }
    logs { Logs }
    quarantine { Quarantine, Release, QuarantineLogPage }
    grants { Grants, GrantExplain, GrantAdd, GrantRemove, TokenRevoke, TokenRestore }
    facts { Facts, SessionFacts, SessionCalls, Compatibility }
    evidence { EvidenceInventory, EvidenceManifest, EvidenceReading }
    query {
        CiOutcomeQuery, CiRunsQuery, CiFailuresQuery, SessionsQuery, SessionQuery, CommitQuery,
    }
    reports { ModelOutcomesReport, AcceptedWorkLifecycleReport }
    context {
        ContextRetrieval, Discovery, Selected, GrantInventory, GrantManifest, GrantRead,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_and_every_name_stands_once() {
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
