//! One page of a long list.
//!
//! Its cursor is the name of its last entry, which is stable because facts never change.

use svc_model::problem::{Problem, QueryFault};

use crate::refusal::ToolRefusal;

/// The requested entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The maximum number of entries.
    pub(crate) limit: usize,
    /// The name of the last entry of the previous page.
    pub(crate) cursor: Option<String>,
}

impl Page {
    /// Keeps only the entries of this page, and returns the cursor of the next page.
    ///
    /// # Errors
    ///
    /// If no entry has the name of the cursor, because it belongs to another list or the entry has
    /// been hidden since.
    pub(crate) fn cut<T>(
        &self,
        entries: &mut Vec<T>,
        name: impl Fn(&T) -> String,
    ) -> Result<Option<String>, ToolRefusal> {
        if let Some(cursor) = &self.cursor {
            let last = entries.iter().position(|entry| name(entry) == *cursor);
            let Some(last) = last else {
                return Err(ToolRefusal {
                    code: QueryFault::CursorMismatch.as_str().to_owned(),
                    advice: Problem::Query(QueryFault::CursorMismatch).advice().agent(),
                    ..ToolRefusal::invalid("the cursor is no longer valid")
                });
            };
            entries.drain(..=last);
        }
        if entries.len() <= self.limit {
            return Ok(None);
        }
        entries.truncate(self.limit);
        Ok(entries.last().map(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cursor: Option<&str>) -> (Vec<String>, Result<Option<String>, ToolRefusal>) {
        let mut entries = ["a", "b", "c"].map(str::to_owned).to_vec();
        let page = Page {
            limit: 2,
            cursor: cursor.map(str::to_owned),
        };
        let cursor = page.cut(&mut entries, String::clone);
        (entries, cursor)
    }

    #[test]
    fn the_pages_together_are_the_whole_list_in_order() {
        let (first, cursor) = page(None);
        assert_eq!(first, ["a", "b"]);
        let cursor = cursor.unwrap();
        assert_eq!(cursor.as_deref(), Some("b"));
        let (second, cursor) = page(cursor.as_deref());
        assert_eq!(second, ["c"]);
        assert_eq!(cursor, Ok(None));
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        assert_eq!(page(Some("x")).1.unwrap_err().code, "cursor_mismatch");
    }
}
