//! A queue on disk, so that a sender loses nothing while the service is away.
//!
//! [`Outbox::put`] returns when the delivery is on disk, whether or not the service can be reached;
//! [`Outbox::run`] or [`Outbox::drain`] sends what is there, in order, and removes what the service
//! has acknowledged. A program that crashes, or a machine that loses its power, goes on where it was.
//!
//! # Exactly once
//!
//! The queue delivers *at least once*: a crash between an acknowledgement and the removal sends a
//! delivery again. The service recognises it, because the same bytes are sent on every attempt and
//! they name what they deliver: a model call by the capture that [`Outbox::put`] gives it when it has
//! none, a CI outcome by its run, an event by what it says. Both together make it exactly once.
//!
//! # What becomes of a delivery
//!
//! | Answer | The delivery | The queue |
//! |---|---|---|
//! | the receipt of the route | is removed | goes on |
//! | 408, 429, 5xx, no answer, a success that is no receipt | waits | goes on later |
//! | 400, 409, 413, 422 | is set aside with the reason | goes on |
//! | 401, 403, 3xx, anything else | waits | [stops](OutboxStatus::stopped) until a person acts |
//!
//! Nothing is ever given up in silence: what the service refuses is kept in the folder `refused`,
//! counted by [`Outbox::status`], listed by [`Outbox::refused`], and put back by
//! [`Outbox::restore_refused`] when a person has removed the cause.
//!
//! # Several programs
//!
//! Any number of programs may put into one folder at once. One at a time sends: a second
//! [`Outbox::drain`] is [`OutboxError::Busy`], a second [`Outbox::run`] waits and takes over when the
//! first one ends, however it ends. The folder must be on a disk of this machine, since advisory
//! locks do not hold on every network file system.
//!
//! # Privacy
//!
//! The folder holds captured content in the clear, so it is private to its user (0700, files 0600).
//! It holds no token.

mod admission;
mod delivery;
mod disk;
mod error;
mod folder;
mod handle;
mod limits;
mod name;
mod record;
mod sender;
mod status;
mod verdict;

pub use self::delivery::Delivery;
pub use self::error::OutboxError;
pub use self::handle::Outbox;
pub use self::limits::OutboxLimits;
pub use self::name::DeliveryId;
pub use self::sender::{Drained, Ending};
pub use self::status::{OutboxStatus, Reason, RefusedDelivery};
