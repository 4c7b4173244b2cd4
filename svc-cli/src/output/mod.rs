//! The output of commands: text for people, exact JSON for programs.

mod bytes;
mod escape;
mod exact;
mod fields;
mod fill;
mod part;
mod program;
mod shell;
mod short;
#[cfg(test)]
mod sink;
mod stream;
mod table;
mod time;

use clap::ColorChoice;
use terminal_size::{Width, terminal_size_of};

pub(crate) use self::bytes::shown_bytes;
use self::escape::escape_text;
pub(crate) use self::escape::{escape, one_line};
pub(crate) use self::exact::Exact;
pub(crate) use self::fields::Fields;
pub(crate) use self::fill::fill;
pub(crate) use self::part::{item_block, optional, part_line, reference};
pub(crate) use self::program::{is_executable, program, program_path};
pub(crate) use self::shell::{long_option, positional, quote, with_options};
pub(crate) use self::short::ShortIds;
#[cfg(test)]
pub(crate) use self::sink::Sink;
pub(crate) use self::stream::{Format, Output};
pub(crate) use self::table::Table;
pub(crate) use self::time::{clock, later, relative, time_of_day};

/// Prepares the output: colours, and tables as wide as the terminal. Without a terminal, lines are
/// not wrapped.
pub(crate) fn begin(color: ColorChoice) {
    let choice = match color {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    if let Some((Width(columns), _)) = terminal_size_of(std::io::stdout()) {
        table::fit(columns);
    }
}
