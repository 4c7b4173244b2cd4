//! Columns of text.

use std::sync::OnceLock;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};

/// The width of the terminal, if there is one.
static COLUMNS: OnceLock<u16> = OnceLock::new();

/// The minimum width that tables are fitted to, because anything narrower is unreadable.
const COLUMNS_MIN: u16 = 40;

/// Fits every table to this many columns. Only the first call has an effect.
pub(super) fn fit(columns: u16) {
    let _ = COLUMNS.set(columns);
}

/// Returns the width of the terminal, if there is one.
pub(super) fn columns() -> Option<u16> {
    let columns = COLUMNS.get().copied();
    columns.map(|columns| columns.max(COLUMNS_MIN))
}

/// A table without rules, which people can read and programs can split.
#[derive(Debug)]
pub(crate) struct Table {
    table: comfy_table::Table,
}

impl Table {
    /// Starts a table with these headings.
    pub(crate) fn new<const COLUMNS: usize>(headings: [&str; COLUMNS]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(headings);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { table }
    }

    /// Right-aligns columns of numbers.
    #[must_use]
    pub(crate) fn numbers(mut self, columns: &[usize]) -> Self {
        for column in columns {
            if let Some(column) = self.table.column_mut(*column) {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        self
    }

    /// Adds a row. External text must already be escaped.
    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.table.add_row(cells);
    }

    /// Returns the lines without trailing spaces.
    pub(crate) fn render(&self) -> String {
        self.within(COLUMNS.get().copied())
    }

    /// Returns the lines, wrapped to this many columns.
    fn within(&self, columns: Option<u16>) -> String {
        let mut text = match columns {
            Some(columns) => {
                let mut table = self.table.clone();
                table
                    .set_content_arrangement(ContentArrangement::Dynamic)
                    .set_width(columns.max(COLUMNS_MIN));
                table.trim_fmt()
            }
            None => self.table.trim_fmt(),
        };
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_lines() {
        let mut table = Table::new(["name", "count"]).numbers(&[1]);
        table.row(["a".to_owned(), "1".to_owned()]);
        table.row(["longer".to_owned(), "12".to_owned()]);
        assert_eq!(
            table.render(),
            "name    count\na           1\nlonger     12\n"
        );
    }

    #[test]
    fn a_terminal_breaks_long_texts_and_keeps_numbers_whole() {
        let mut table = Table::new(["name", "count"]).numbers(&[1]);
        table.row(["one two three ".repeat(8), "1234567890".to_owned()]);
        let whole = table.within(None);
        assert_eq!(whole.lines().count(), 2, "{whole}");
        let fitted = table.within(Some(60));
        assert!(fitted.lines().count() > 2, "{fitted}");
        assert!(fitted.lines().all(|line| line.len() <= 60), "{fitted}");
        assert!(fitted.contains("1234567890"), "{fitted}");
        assert_eq!(table.within(Some(200)), whole, "there is room");
    }
}
