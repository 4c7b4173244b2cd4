//! Columns of text.

use comfy_table::{CellAlignment, presets};

/// A table without lines: it can be read by people and split by programs.
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

    /// Aligns columns to the right: those of numbers.
    #[must_use]
    pub(crate) fn numbers(mut self, columns: &[usize]) -> Self {
        for column in columns {
            if let Some(column) = self.table.column_mut(*column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self
    }

    /// Adds a row. Text from outside is already escaped.
    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.table.add_row(cells);
    }

    /// Returns the lines, without blanks at their ends.
    pub(crate) fn render(&self) -> String {
        let mut text = self.table.trim_fmt();
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
}
