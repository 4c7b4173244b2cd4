//! The stored forms of values: how they become as few bytes as possible, and how they are read back.
//!
//! A form is for ever, because stored bytes are never rewritten. So these files are pure functions
//! of bytes, without a connection, and use only the values and errors of [`crate::sql`].

pub(crate) mod call_key;
pub(crate) mod column;
pub(crate) mod content_key;
pub(crate) mod dictionary;
pub(crate) mod edit_texts;
pub(crate) mod half;
pub(crate) mod id_list;
pub(crate) mod identity;
pub(crate) mod model_call_id;
pub(crate) mod number;
pub(crate) mod packing;
pub(crate) mod repetition;
pub(crate) mod skeleton;
pub(crate) mod spelling;
