//! What needs a look, with links to where to look.

use maud::{Markup, html};
use svc_model::open::Open;
use svc_model::overview::{Attention, Overview};
use svc_model::time::Instant;
use svc_view::CONSOLE;

use crate::console::layout::note;
use crate::console::pages::{repository, sessions};
use crate::console::text::whole;

/// How much of it is shown at once.
const SHOWN_MAX: usize = 10;
/// How many Sessions behind a commit are named.
const SESSIONS_MAX: usize = 3;

pub(super) fn shown(overview: &Overview, now: Instant) -> Markup {
    html! {
        section aria-labelledby="attention" {
            h2 #attention { "Needs a look" }
            @if overview.attention.is_empty() { p { "Nothing that was captured stands out." } }
            @let (first, more) = overview.attention.split_at(overview.attention.len().min(SHOWN_MAX));
            (items(first, now))
            @if !more.is_empty() {
                details {
                    summary { (whole(more.len() as u64)) " more" }
                    (items(more, now))
                }
            }
            @if overview.attention_left_out > 0 {
                (note(&format!("And {} more.", whole(overview.attention_left_out))))
            }
        }
    }
}

fn items(all: &[Open<Attention>], now: Instant) -> Markup {
    html! {
        ul {
            @for attention in all {
                li { (CONSOLE.attention(attention, now)) (place(attention)) }
            }
        }
    }
}

fn place(attention: &Open<Attention>) -> Markup {
    let Some(attention) = attention.known() else {
        return html! {};
    };
    html! {
        ": "
        @match attention {
            Attention::FailedCommit { repo, repository_identity, commit_sha, session_ids, .. } => {
                "commit " (repository::commit(commit_sha, repo, repository_identity.as_ref()))
                @for session_id in session_ids.iter().take(SESSIONS_MAX) {
                    ", Session " (sessions::link(session_id))
                }
            }
            Attention::DeletedEdits { session_id, .. } => (sessions::link(session_id)),
            Attention::NotesAbsent { .. } => a href="/console/share" { "the share of commits with notes" },
            Attention::PushesAbsent { .. } => a href="/console/health#mirrors" { "the mirrors" },
            Attention::SilentSource { .. } => a href="/console/health#arrives" { "what arrives" },
        }
        "."
    }
}
