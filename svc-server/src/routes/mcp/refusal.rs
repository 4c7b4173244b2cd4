//! Problems as refusals for agents, with the closed words of the client.

use std::time::Duration;

use svc_mcp::ToolRefusal;
use svc_model::problem::Problem;

use crate::problem::{code, message, status};

/// Turns a problem into a refusal for an agent.
pub(super) fn refusal(problem: &Problem) -> ToolRefusal {
    ToolRefusal {
        code: code(problem).to_owned(),
        status: Some(status(problem).as_u16()),
        message: message(problem),
        advice: problem.advice().agent(),
        retry_after: matches!(problem, Problem::CapacityExceeded).then(|| Duration::from_secs(1)),
    }
}
