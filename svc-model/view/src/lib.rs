//! What a reply says to people: the words that the shell, the console and the tools for agents share.
//!
//! Functions turn typed replies into words and never into a layout: tables, headings, links and plots
//! belong to each surface. What differs between surfaces, such as how external text is made visible
//! and how numbers and lengths of time are written, is a [`Surface`].
#![warn(missing_docs)]

mod call;
mod capture;
mod ci;
mod commit;
mod comparison;
mod found;
mod lifecycle;
mod models;
mod moment;
mod overview;
mod part;
mod product;
mod session;
mod snippet;
mod spend;
mod stratification;
mod surface;
mod text;
mod timeline;

pub use self::capture::{CaptureHint, declined, duplicates, stored};
pub use self::commit::{
    LinkedSession, link_reason, linked_sessions, none_at, reason, relation, through, through_on,
};
pub use self::comparison::{LOOK_ONCE, NOT_SHOWN, interval, known, least_difference, unknown_of};
pub use self::found::{NOTHING_FOUND, found, part_text};
pub use self::lifecycle::{
    NO_COMMIT, NOT_EVERY_PULL_REQUEST, NOT_IN_A_STAGE, PANELS, SCORES, STAGE_WITHOUT_ERASED, stages,
};
pub use self::models::{ATTRIBUTION_RATE, Line, attribution};
pub use self::moment::{age, before, is_date, midnight};
pub use self::overview::{
    Absence, Behind, Evidence, FlowPart, FlowRow, OutcomeBar, Piece, bar, flow,
};
pub use self::product::{Product, model, product};
pub use self::session::{Branch, branches};
pub use self::snippet::{Snippet, snippet};
pub use self::spend::{
    AT_LIST_PRICE, NO_EVIDENCE, dollars, period, spend_key_name, spend_outcomes, spend_unit,
    spend_verdicts,
};
pub use self::surface::{CONSOLE, SHELL, Surface, clock};
pub use self::text::is_hidden;
