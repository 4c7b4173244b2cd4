//! What a command prints: text for people, exact JSON for programs.

mod escape;
mod exact;
mod fields;
mod part;
mod shell;
mod short;
mod stream;
mod table;
mod time;

use self::escape::escape_text;
pub(crate) use self::escape::{escape, one_line};
pub(crate) use self::exact::Exact;
pub(crate) use self::fields::Fields;
pub(crate) use self::part::{Reader, item_block, item_block_for, optional, part_line, reference};
pub(crate) use self::shell::quote;
pub(crate) use self::short::ShortIds;
pub(crate) use self::stream::{Format, Output};
pub(crate) use self::table::Table;
pub(crate) use self::time::{clock, later, relative, time_of_day};
