//! Questions to the service, independent of the transport, and what is said of each reply.

use bytes::Bytes;
use svc_model::endpoint::{
    AcceptedWorkLifecycleReport, CiRunsQuery, CommitQuery, Discovery, Endpoint, EvidenceInventory,
    EvidenceManifest, EvidenceReading, GrantInventory, GrantManifest, GrantRead,
    ModelOutcomesReport, Selected, SessionQuery,
};
use svc_model::identity::Authority;
use svc_model::json::Object;

use crate::refusal::Refusal;
use crate::text;

/// A service that answers the requests to one route.
pub trait Ask<E: Endpoint> {
    /// Asks a question and returns the body of the reply.
    ///
    /// # Errors
    ///
    /// If the service refuses or cannot be reached.
    fn ask(&self, request: E::Request) -> impl Future<Output = Result<Bytes, Refusal>> + Send;
}

/// Lists the routes behind the tools, each with the text of its reply.
macro_rules! questions {
    ($($endpoint:ident => |$request:pat_param, $reply:ident| $text:expr;)+) => {
        /// A request to one of the routes behind the tools.
        #[derive(Clone, Debug)]
        pub(crate) enum Question {
            $($endpoint(<$endpoint as Endpoint>::Request),)+
        }

        impl Question {
            /// Asks the service and returns the body of the reply.
            pub(crate) async fn put(self, service: &impl Service) -> Result<Bytes, Refusal> {
                match self {
                    $(Self::$endpoint(request) => Ask::<$endpoint>::ask(service, request).await,)+
                }
            }

            /// Writes the text for a reply.
            pub(crate) fn text(&self, reply: &Object) -> String {
                match self {
                    $(Self::$endpoint($request) => {
                        let $reply = reply;
                        $text
                    })+
                }
            }
        }

        /// A service that answers the questions of one caller.
        pub trait Service: $(Ask<$endpoint> +)+ Send + Sync + 'static {
            /// Returns the caller's authority.
            ///
            /// # Errors
            ///
            /// If the service cannot be reached or does not know the caller.
            fn authority(&self) -> impl Future<Output = Result<Authority, Refusal>> + Send;

            /// Returns whether the caller may search any Session. The operator's token searches
            /// only those in the settings, of which there may be none.
            fn searches(&self) -> impl Future<Output = bool> + Send;
        }
    };
}

questions! {
    Discovery => |request, reply| text::sessions(reply, request.max_bytes.get());
    Selected => |request, reply| text::parts(reply, request.max_bytes.get());
    GrantInventory => |_, reply| text::calls(reply);
    GrantManifest => |_, reply| text::messages(reply);
    GrantRead => |_, reply| text::read(reply);
    EvidenceInventory => |_, reply| text::calls(reply);
    EvidenceManifest => |_, reply| text::messages(reply);
    EvidenceReading => |_, reply| text::read(reply);
    SessionQuery => |_, reply| text::session(reply);
    CommitQuery => |_, reply| text::commit(reply);
    CiRunsQuery => |_, reply| text::ci_runs(reply);
    ModelOutcomesReport => |_, reply| text::model_outcomes(reply);
    AcceptedWorkLifecycleReport => |_, reply| text::accepted_work_lifecycle(reply);
}
