//! Deliveries for tests.

use std::sync::LazyLock;

use svc_engine_fact::clock::Ids;
use svc_model::id::OrgId;
use svc_model::json::{Json, Object};
use svc_model::repository::RepositoryHost;
use svc_model::time::Instant;

use super::WebhookDelivery;
use crate::redaction::Secrets;
use crate::{Receipt, Redaction};

static ORG: LazyLock<OrgId> = LazyLock::new(|| OrgId::new("acme").unwrap());
static HOST: LazyLock<RepositoryHost> =
    LazyLock::new(|| RepositoryHost::new("git.example").unwrap());

static SECRETS: LazyLock<Secrets> = LazyLock::new(|| Secrets::new(["configured-secret"]));

/// Returns a delivery without an id, with redaction.
pub(super) fn delivery() -> WebhookDelivery<'static> {
    WebhookDelivery {
        receipt: Receipt {
            org_id: &ORG,
            received_at: Instant::from_microseconds(1).unwrap(),
            // Ids start at 1 in each delivery. The few leaked bytes are freed when the tests end.
            ids: Box::leak(Box::new(Ids::counting())),
            redaction: Redaction::On,
            secrets: &SECRETS,
        },
        host: &HOST,
        id: None,
    }
}

pub(super) fn object(text: &str) -> Object {
    Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
}

/// Returns the object with another JSON value at a dotted place; `-` removes the value.
pub(super) fn changed(object: &Object, place: &str, value: &str) -> Object {
    let mut object = object.clone();
    let (rest, name) = place.rsplit_once('.').unwrap_or(("", place));
    let mut parent = &mut object;
    for step in rest.split('.').filter(|step| !step.is_empty()) {
        parent = parent.get_mut(step).unwrap().as_object_mut().unwrap();
    }
    if value == "-" {
        parent.remove(name);
    } else {
        parent.insert(name, Json::parse(value.as_bytes()).unwrap());
    }
    object
}
