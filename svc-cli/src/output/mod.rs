//! What a command prints: text for people, exact JSON for programs.

mod escape;
mod part;
mod shell;
mod stream;
mod table;

use self::escape::escape_text;
pub(crate) use self::escape::{escape, one_line};
pub(crate) use self::part::{item_block, optional, part_line, reference};
pub(crate) use self::shell::quote;
pub(crate) use self::stream::{Format, Output};
pub(crate) use self::table::Table;
