//! No input makes the service fail. A body is stored, or it is refused with a documented status and
//! nothing of it is stored. The answer is never a 5xx, and there is always an answer.

mod bodies;
mod members;
mod parameters;
mod place;
mod target;
mod valid;
