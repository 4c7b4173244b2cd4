//! Search: Sessions and their best passages, over everything that a caller may read.
//!
//! The words of a query are alternatives. Parts are ranked by how rare the words are that they
//! contain (BM25 over passages of parts): retrieval policy version 2. What is found is read in the
//! store before it is answered, so an answer has exact content and nothing that was withdrawn.

mod request;
mod result;
mod text;
mod words;

pub use request::{
    FilePath, SearchFilters, SearchKind, SearchLimit, SearchQuery, SearchRepository, SearchRequest,
    SearchWord, file_name,
};
pub use result::{Excerpt, SearchCoverage, SearchPart, SearchResult, SearchSession, SearchSkipped};
pub use text::{passages, search_text};
pub use words::words;
