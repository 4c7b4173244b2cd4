//! One page of a long list.
//!
//! A page is the body of the route's reply with fewer entries in its list; counts are still those
//! of the whole list. Its cursor is the name of its last entry, which is stable because facts never
//! change.

use std::num::NonZeroUsize;

use svc_model::json::{Json, Object};
use svc_model::problem::{Problem, QueryFault};

use crate::refusal::ToolRefusal;

/// The member of a page with the cursor of the next page, because some agents see only the structured
/// content.
pub(crate) const NEXT_OF_PAGE: &str = "next_cursor";

/// The requested entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The maximum number of entries. Without it, there is no limit.
    pub(crate) limit: Option<NonZeroUsize>,
    /// The name of the last entry of the previous page.
    pub(crate) cursor: Option<String>,
}

/// Where a body has its list, and how the entries are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PagedList {
    pub(crate) list: &'static str,
    pub(crate) name: fn(&Object) -> Option<String>,
}

/// The calls of an inventory.
pub(crate) const CALLS: PagedList = PagedList {
    list: "calls",
    name: |call| Some(call.get("inference_call_id")?.as_str()?.to_owned()),
};

/// The messages of a manifest.
pub(crate) const MESSAGES: PagedList = PagedList {
    list: "messages",
    name: |message| {
        let side = message.get("side")?.as_str()?;
        let index = message.get("message_index")?.as_number()?;
        Some(format!("{side}:{}", index.as_str()))
    },
};

impl Page {
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Keeps only the entries of this page in a body, and returns the cursor of the next page.
    ///
    /// # Errors
    ///
    /// If no entry has the name of the cursor, because it belongs to another list or the entry has
    /// been hidden since.
    pub(crate) fn cut(
        &self,
        body: &mut Json,
        paged: PagedList,
    ) -> Result<Option<String>, ToolRefusal> {
        let list = body
            .as_object_mut()
            .and_then(|body| body.get_mut(paged.list));
        let Some(Json::Array(entries)) = list else {
            return Err(ToolRefusal::unreadable());
        };
        let name = |entry: &Json| (paged.name)(entry.as_object()?);
        if let Some(cursor) = &self.cursor {
            let last = entries
                .iter()
                .position(|entry| name(entry).as_ref() == Some(cursor));
            let Some(last) = last else {
                return Err(ToolRefusal {
                    code: QueryFault::CursorMismatch.as_str().to_owned(),
                    advice: Problem::Query(QueryFault::CursorMismatch).advice().agent(),
                    ..ToolRefusal::invalid("the cursor is no longer valid")
                });
            };
            entries.drain(..=last);
        }
        match self.limit {
            Some(limit) if entries.len() > limit.get() => {
                entries.truncate(limit.get());
                Ok(entries.last().and_then(name))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory() -> Json {
        Json::parse(
            br#"{"found":true,"calls":[{"inference_call_id":"a"},{"inference_call_id":"b"},{"inference_call_id":"c"}]}"#,
        )
        .unwrap()
    }

    fn names(body: &Json) -> Vec<String> {
        let calls = body.as_object().unwrap().get("calls").unwrap();
        let calls = calls.as_array().unwrap().iter();
        calls
            .filter_map(|call| (CALLS.name)(call.as_object()?))
            .collect()
    }

    #[test]
    fn the_pages_together_are_the_whole_list_in_order() {
        let (mut read, mut cursor) = (Vec::new(), None);
        loop {
            let mut body = inventory();
            let page = Page {
                limit: NonZeroUsize::new(2),
                cursor,
            };
            cursor = page.cut(&mut body, CALLS).unwrap();
            read.push(names(&body));
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(read, [vec!["a", "b"], vec!["c"]]);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let page = Page {
            limit: None,
            cursor: Some("x".to_owned()),
        };
        let refusal = page.cut(&mut inventory(), CALLS).unwrap_err();
        assert_eq!(refusal.code, "cursor_mismatch");
    }

    #[test]
    fn messages_are_named_by_side_and_index() {
        let message = Json::parse(br#"{"side":"input","message_index":7}"#).unwrap();
        let name = (MESSAGES.name)(message.as_object().unwrap());
        assert_eq!(name.as_deref(), Some("input:7"));
    }
}
