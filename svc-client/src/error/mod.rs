//! Errors of calls.

mod failure;
mod kind;
mod text;

pub use self::failure::Error;
pub(crate) use self::failure::Failure;
pub use self::kind::{Denial, ErrorKind};
