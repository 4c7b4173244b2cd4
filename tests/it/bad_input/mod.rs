//! No input whatever is a reason to fail: a body is stored, or it is refused with a documented
//! status and nothing of it is stored. It is never a 5xx, and never silence.

mod bodies;
mod members;
mod parameters;
mod place;
mod target;
mod valid;
