//! Where a payload names the caller.

use svc_model::json::{Json, Object, Text};

use svc_messages::identity::usable;

/// The members of a payload that may name Sessions and users.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metadata<'p> {
    payload: &'p Object,
    /// The gateway's own metadata of the call.
    gateway: Option<&'p Object>,
    /// The client's metadata.
    requester: Option<&'p Object>,
    /// The client's headers: first those that the gateway lists separately, then all that it kept.
    headers: [Option<&'p Object>; 2],
}

impl<'p> Metadata<'p> {
    pub(super) fn new(payload: &'p Object) -> Self {
        let object = |holder: Option<&'p Object>, name| holder?.get(name)?.as_object();
        let gateway = object(Some(payload), "metadata");
        let requester = object(gateway, "requester_metadata");
        let headers = [
            object(gateway, "requester_custom_headers"),
            object(requester, "headers"),
        ];
        Self {
            payload,
            gateway,
            requester,
            headers,
        }
    }

    /// Returns a usable text at the top level of the payload.
    pub(super) fn top_level(&self, name: &str) -> Option<&'p Text> {
        usable(self.payload.get(name))
    }

    /// Returns a usable text from the gateway's metadata, or else from the client's.
    pub(super) fn get(&self, name: &str) -> Option<&'p Text> {
        [self.gateway, self.requester]
            .into_iter()
            .flatten()
            .find_map(|object| usable(object.get(name)))
    }

    /// Returns the texts that may name a user, and a Session along with the user.
    pub(super) fn user_identities(&self) -> impl Iterator<Item = &'p Text> + use<'p> {
        [self.top_level("end_user"), self.get("user_id")]
            .into_iter()
            .flatten()
    }

    /// Returns the usable client headers of this name, which is in lower case.
    pub(super) fn headers<'n>(
        &self,
        name: &'n str,
    ) -> impl Iterator<Item = &'p Text> + use<'p, 'n> {
        let named = move |(known, value): (&Text, &'p Json)| {
            usable(Some(value)).filter(|_| known.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
        };
        let all = self.headers.into_iter().flatten();
        all.flat_map(move |headers| headers.iter().filter_map(named))
    }
}
