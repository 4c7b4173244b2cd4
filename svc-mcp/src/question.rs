//! Questions to the service, independent of the transport.

use bytes::Bytes;
use svc_model::endpoint::Endpoint;

use crate::refusal::ToolRefusal;

/// A service that answers the requests to one route.
pub trait Ask<E: Endpoint> {
    /// Asks a question and returns the body of the reply.
    ///
    /// # Errors
    ///
    /// If the service refuses or cannot be reached.
    fn ask(&self, request: E::Request) -> impl Future<Output = Result<Bytes, ToolRefusal>> + Send;
}

/// Declares the questions: the routes behind the tools, each with what is made of its reply.
macro_rules! questions {
    ($($endpoint:ident => |$shown:pat_param, $request:pat_param, $reply:ident| $step:expr;)+) => {
        /// A request to one of the routes behind the tools.
        #[derive(Clone, Debug)]
        pub(crate) enum Question {
            $($endpoint(<$endpoint as svc_model::endpoint::Endpoint>::Request),)+
        }

        impl Question {
            /// Asks the service and returns the body of the reply.
            pub(crate) async fn put(self, service: &impl Service) -> Result<bytes::Bytes, $crate::refusal::ToolRefusal> {
                match self {
                    $(Self::$endpoint(request) => $crate::question::Ask::<$endpoint>::ask(service, request).await,)+
                }
            }

            /// Makes an answer of the reply, or the next question.
            pub(crate) fn step(&self, shown: &$crate::arguments::Shown, reply: svc_model::json::Json) -> Result<$crate::answer::Step, $crate::refusal::ToolRefusal> {
                match self {
                    $(Self::$endpoint($request) => {
                        let ($shown, $reply) = (shown, reply);
                        $step
                    })+
                }
            }
        }

        /// A service that answers the questions of one caller.
        pub trait Service: $($crate::question::Ask<$endpoint> +)+ Send + Sync + 'static {
            /// Returns the caller's authority.
            ///
            /// # Errors
            ///
            /// If the service cannot be reached or does not know the caller.
            fn authority(&self) -> impl Future<Output = Result<svc_model::identity::Authority, $crate::refusal::ToolRefusal>> + Send;
        }
    };
}
pub(crate) use questions;
