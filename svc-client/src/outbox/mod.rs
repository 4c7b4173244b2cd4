//! A queue on disk that keeps deliveries while the service is unavailable.
//!
//! [`Outbox::put`] returns when the delivery is on disk, whether or not the service can be reached.
//! If it fails, the delivery was not kept. [`Outbox::run`] and [`Outbox::drain`] send the
//! deliveries in the order in which they were put, and remove those that the service has
//! acknowledged. A delivery that the service cannot accept yet is skipped and sent later, so
//! deliveries may arrive in another order; only those with [calls](Delivery::Calls) of one Session do
//! not. After a crash or a power failure, sending continues
//! where it stopped.
//!
//! # Exactly once
//!
//! The queue delivers *at least once*: after a crash between an acknowledgement and the removal, a
//! delivery is sent again. The service recognises it, because every attempt sends the same bytes,
//! and these identify the delivery: a model call by its capture, which [`Outbox::put`] adds if
//! necessary, or by its ids; a CI outcome by its run; an event by its content. So the service stores each delivery
//! exactly once.
//!
//! # Answers
//!
//! | Answer | The delivery | The queue |
//! |---|---|---|
//! | the receipt of the route | is removed | continues |
//! | 408, 429, 5xx, no answer, a success without a receipt, 400 because the delivery was cut off on the way | waits | continues [later](Outbox::run) |
//! | a receipt of calls that continue calls which the service does not have | waits, for [a day](Outbox::EARLIER_CALLS_PATIENCE) at most; then it is set aside | continues [later](Outbox::run) |
//! | any other 400, 409, 413, 422 | is set aside with the reason | continues |
//! | 401, 403, 3xx, anything else | waits | [stops](OutboxStatus::stopped) until a person acts |
//!
//! Nothing is dropped silently. Refused deliveries are kept in the folder `refused`, counted by
//! [`Outbox::status`] and listed by [`Outbox::refused`]. Once the cause is fixed,
//! [`Outbox::restore_refused`] puts them back into the queue.
//!
//! # Several programs
//!
//! Any number of programs may add deliveries to one folder at the same time. Each of them locks the
//! folder for a moment. If others keep it locked for [`Outbox::PATIENCE`], [`Outbox::put`] fails
//! with [`OutboxError::Locked`]: the delivery was not kept, and has to be put again. Even then,
//! [`OutboxView`] shows what an outbox contains and who is using it.
//!
//! Only one program sends at a time. A second [`Outbox::drain`] fails with [`OutboxError::Busy`]. A
//! second [`Outbox::run`] waits, and takes over when the first one ends. The folder must be on a
//! local disk, because advisory locks do not work on every network file system.
//!
//! # Privacy
//!
//! The folder contains captured content without encryption, so it is private to its user (0700,
//! files 0600, no links followed). It contains no token. A folder of another user is not used.
//!
//! If others can write to the folder all the same, as to the cache of a pipeline,
//! [`Outbox::signed`] sets aside what they have put there.

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
mod signing;
mod status;
mod verdict;
mod view;

pub use self::delivery::Delivery;
pub use self::error::OutboxError;
pub use self::handle::Outbox;
pub use self::limits::OutboxLimits;
pub use self::name::DeliveryId;
pub use self::sender::{Drained, Ending};
pub use self::status::{OutboxStatus, Reason, RefusedDelivery};
pub use self::view::{OutboxUser, OutboxView, OutboxWork};
