use super::Access;
use crate::identity::{Health, IdentityProbe};
use crate::request::NoParameters;

endpoint! {
    HealthProbe: GET "/health" as "health" for Access::Open,
    NoParameters => Health,
    "Check whether the service is running."
}

endpoint! {
    Me: GET "/v1/me" as "me" for Access::Any,
    NoParameters => IdentityProbe,
    "Show the client and authority of the presented token."
}
