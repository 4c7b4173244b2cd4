#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, ContentEncoding, Endpoint, Method, Parameter};
use crate::ingest::{DELIVERY_HEADERS, EVENT_HEADERS, ForgeDelivery, HeaderText, IngestReceipt};
use crate::open::Open;
use crate::parameter::Declared;

/// The headers in which a forge names its event and its delivery. None of them is required by
/// itself, because each forge has its own.
const HEADERS: &[Parameter] = &[
    event(0, "The event. One of the event headers is required."),
    event(1, "The event, as GitHub names it."),
    event(2, "The event, as Forgejo names it."),
    event(3, "The event, as Gitea names it."),
    delivery(0, "The id of the delivery, which identifies a redelivery."),
    delivery(1, "The id of the delivery, as GitHub gives it."),
    delivery(2, "The id of the delivery, as Forgejo gives it."),
    delivery(3, "The id of the delivery, as Gitea gives it."),
];

const fn event(index: usize, description: &'static str) -> Parameter {
    header(EVENT_HEADERS[index], description)
}

const fn delivery(index: usize, description: &'static str) -> Parameter {
    header(DELIVERY_HEADERS[index], description)
}

const fn header(name: &'static str, description: &'static str) -> Parameter {
    Declared::<HeaderText>::header(name, description).parameter()
}

/// Declares a route for a forge's webhook. The routes differ in the events that they accept.
macro_rules! webhook {
    ($(#[$doc:meta])* $endpoint:ident, $path:literal, $name:literal, $summary:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $endpoint {}
        impl Endpoint for $endpoint {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const METHOD: Method = Method::Post;
            const PATH: &'static str = $path;
            const ACCESS: Access = Access::Signature;
            // The signature is that of the bytes as they arrive.
            const CONTENT_ENCODINGS: &'static [ContentEncoding] = &[ContentEncoding::Gzip];
            const STATUSES: &'static [u16] = &[400, 401, 409, 413, 415, 422, 503];
            type Request = ForgeDelivery;
            type Reply = Open<IngestReceipt>;
            #[cfg(feature = "schema")]
            const REQUEST_SCHEMA: Option<SchemaOf> =
                Some(SchemaGenerator::subschema_for::<ForgeDelivery>);
            const PARAMETERS: &'static [Parameter] = HEADERS;
        }
    };
}

webhook! {
    /// `POST /ingest/forge`.
    IngestForge, "/ingest/forge", "ingestForge",
    "Store any captured event of a forge, so that one webhook serves all of them."
}
webhook! {
    /// `POST /ingest/forge/push`.
    IngestForgePush, "/ingest/forge/push", "ingestForgePush",
    "Store a push to a branch."
}
webhook! {
    /// `POST /ingest/forge/repository`.
    IngestForgeRepository, "/ingest/forge/repository", "ingestForgeRepository",
    "Store a rename of a repository."
}
webhook! {
    /// `POST /ingest/forge/ci`.
    IngestForgeCi, "/ingest/forge/ci", "ingestForgeCi",
    "Store the outcome of a run of the forge's own CI."
}
webhook! {
    /// `POST /ingest/forge/pull-request`.
    IngestForgePullRequest, "/ingest/forge/pull-request", "ingestForgePullRequest",
    "Store that a pull request was opened, updated or merged."
}
