use super::Access;
use crate::limit;
use crate::search::{SearchRequest, SearchResult};

endpoint! {
    Search: POST "/query/search" as "search" for Access::Search,
    SearchRequest => SearchResult,
    "Find the Sessions and passages that match a query best, over everything that the caller may read." {
        const BODY_BYTES_MAX: usize = limit::SEARCH_BODY_BYTES_MAX;
    }
}
