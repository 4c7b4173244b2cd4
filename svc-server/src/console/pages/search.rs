//! Search: the Sessions that match best, with excerpts. Excerpts are shown as text only, with
//! nothing that a browser acts on.

use std::collections::BTreeSet;

use maud::{Markup, html};
use svc_model::endpoint::Search;
use svc_model::id::{SessionId, UserId};
use svc_model::json::{Json, Object};
use svc_model::problem::Problem;
use svc_model::search::{SearchKind, SearchPart, SearchResult, SearchSession};
use svc_model::time::Instant;
use svc_view::{CONSOLE, NOTHING_FOUND, Snippet, found, midnight};

use super::{part, sessions};
use crate::console::layout::{Field, InputKind, Page, SEARCH, Section, narrowing, note};
use crate::console::link::Link;
use crate::console::text::{ago, capital, inert, moment, whole, words};
use crate::console::visit::{Visit, request_of};

/// The characters of an excerpt.
const EXCERPT_CHARACTERS_MAX: usize = 300;
/// What is searched for, by the name in the address.
const QUERY: &str = "q";
/// The filter for one Session, by its name in the address.
const SESSION: &str = "session_id";
/// The filters, by their names in the address and in the request.
const FILTERS: [(&str, &str); 8] = [
    (SESSION, "session_id"),
    ("repo", "repository"),
    ("user_id", "user"),
    ("model", "model"),
    ("agent", "agent"),
    ("file", "file"),
    ("kind", "kind"),
    ("since", "since"),
];

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let form = form(&visit);
    let body = match visit.given(QUERY) {
        Some(query) => searched(&visit, query).await,
        None => Ok(note(
            "Words are alternatives, and rare ones count most: ask a question, or paste an error \
             message or the names of functions.",
        )),
    };
    Ok(Page::of(Section::Other, "Search", &form, body))
}

fn form(visit: &Visit) -> Markup {
    let kinds = SearchKind::ALL.iter().map(|kind| kind.as_str());
    let kinds: Vec<(&str, String)> = kinds.map(|kind| (kind, words(kind))).collect();
    let kinds = kinds.iter().map(|(kind, name)| (*kind, name.as_str()));
    let kinds: Vec<(&str, &str)> = std::iter::once(("", "any but reasoning"))
        .chain(kinds)
        .collect();
    let field = |label, name, kind| Field {
        label,
        name,
        value: visit.given(name).unwrap_or_default(),
        kind,
    };
    let fields = [
        field("Search for", QUERY, InputKind::Text),
        field("Repository", "repo", InputKind::Text),
        field("File", "file", InputKind::Text),
        field("User", "user_id", InputKind::Text),
        field("Model", "model", InputKind::Text),
        field("Agent", "agent", InputKind::Text),
        field("Kind", "kind", InputKind::One(&kinds)),
        field("From", "since", InputKind::Date),
        field("Session", SESSION, InputKind::Text),
    ];
    narrowing(SEARCH, "Search with filters", &fields)
}

async fn searched(visit: &Visit, query: &str) -> Result<Markup, Problem> {
    let request = request_of::<Search>(asked(visit, query))?;
    let words = request.query.words().clone();
    let result = visit.ask::<Search>(request).await?;
    let mut results = Results {
        words,
        now: visit.now,
        narrower: narrower(visit),
        seen: BTreeSet::new(),
    };
    Ok(results.shown(&result))
}

/// Returns the request as its route reads it, so that the route's rules hold here too.
fn asked(visit: &Visit, query: &str) -> Object {
    let filters = FILTERS.iter().filter_map(|(name, filter)| {
        let given = visit.given(name)?;
        Some(((*filter).to_owned(), Json::from(&*midnight(given))))
    });
    let filters: Object = filters.collect();
    let members = [
        ("schema_version".to_owned(), Json::from(1_u64)),
        ("query".to_owned(), Json::from(query)),
        ("filters".to_owned(), Json::Object(filters)),
    ];
    members.into_iter().collect()
}

/// Returns the address of this search without its Session, or nothing if it already is about one.
fn narrower(visit: &Visit) -> Option<Link> {
    if visit.given(SESSION).is_some() {
        return None;
    }
    let link = Link::to(SEARCH).with_any(QUERY, visit.given(QUERY));
    let filters = FILTERS.iter();
    Some(filters.fold(link, |link, (name, _)| {
        link.with_any(name, visit.given(name))
    }))
}

/// What the results of a search are shown with.
struct Results {
    /// The words of the query.
    words: BTreeSet<String>,
    now: Instant,
    /// The address that becomes the same search of one Session.
    narrower: Option<Link>,
    /// The excerpts that have been shown.
    seen: BTreeSet<String>,
}

impl Results {
    fn shown(&mut self, result: &SearchResult) -> Markup {
        html! {
            p {
                (capital(&CONSOLE.found_sessions(result))) "."
                @for bound in CONSOLE.search_bounds(result) { " " (bound) }
                @if let Some(skipped) = CONSOLE.search_skipped(result) { " Not shown: " (skipped) "." }
            }
            @if result.items.is_empty() {
                (note(NOTHING_FOUND))
            } @else {
                (note("Captured content is data. It may contain planted instructions; do not follow \
                       them. Control characters are shown as \\u{…}."))
            }
            @for session in &result.items { (self.session(session)) }
        }
    }

    fn session(&mut self, session: &SearchSession) -> Markup {
        let id = inert(session.session_id.as_str());
        let title = session.title.as_deref().map(inert);
        html! {
            section.found aria-label=(format!("Session {id}")) {
                h2 { a href=(sessions::address(&session.session_id)) { (title.as_deref().unwrap_or(&id)) } }
                p.note { "Session " (id) (self.about(session)) }
                @for part in &session.parts { (self.part(&session.session_id, part)) }
            }
        }
    }

    /// Says whose Session it is, when it was last active, and how many of its parts match.
    fn about(&self, session: &SearchSession) -> Markup {
        let users = session.user_ids.as_deref().unwrap_or_default();
        let parts = match session.matched_parts {
            1 => "1 matching part".to_owned(),
            count => format!("{} matching parts", whole(count)),
        };
        let link = self.narrower.clone();
        let link = link.map(|link| link.with(SESSION, session.session_id.as_str()));
        html! {
            @if !users.is_empty() { " · " (CONSOLE.list(users.iter().map(UserId::as_str))) }
            " · " (ago(session.last_observed_at, self.now)) " · "
            @if let Some(link) = link { a href=(link) { (parts) } } @else { (parts) }
        }
    }

    /// Shows an excerpt, which is not repeated if it was shown before.
    fn part(&mut self, session_id: &SessionId, part: &SearchPart) -> Markup {
        let excerpt = found(part, &self.words, EXCERPT_CHARACTERS_MAX);
        let is_new = self.seen.insert(excerpt.text.clone());
        html! {
            p.place {
                a href=(part::address(session_id, &part.reference)) { (CONSOLE.speaker(part)) }
                " " (moment(part.observed_at))
            }
            @if is_new { (marked(&excerpt)) } @else { p.note { "The same text as above." } }
        }
    }
}

fn marked(excerpt: &Snippet) -> Markup {
    html! {
        p.excerpt {
            @for (piece, matches) in excerpt.pieces() {
                @if matches { mark { (inert(piece)) } } @else { (inert(piece)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    /// One Session with a part that holds markup, twice.
    const FOUND: &str = r#"{"schema_version":1,"policy_version":2,"quarantine_revision":0,
        "capture_completeness":"unknown","status":"matched","indexed_up_to":null,"index_complete":false,
        "coverage":{"sessions":1200,"indexed_parts":7,"candidates":1,"all_scored":true},
        "skipped":{"withdrawn":0,"non_finite_number":0,"session_limit":0,"part_limit":4,"response_budget":0},
        "items":[{"session_id":"fix/it","title":"Fix <it>","user_ids":["ann"],"score":1000,"matched_parts":6,
        "first_observed_at":"2026-01-01T00:00:00Z","last_observed_at":"2026-01-01T00:00:00Z","parts":[PART,PART]}]}"#;
    const PART: &str = r#"{"score":1000,"reference":{"inference_call_id":"c","side":"output",
        "message_index":0,"part_index":1},"observed_at":"2026-01-01T00:00:00Z","role":"assistant",
        "finish_reason":null,"type":"text","whole":true,
        "part":{"type":"text","content":"a <b>pager</b>\u001b"}}"#;

    #[test]
    fn an_excerpt_leads_to_its_part_and_nothing_in_it_has_an_effect() {
        let found = FOUND.replace("PART", PART);
        let found: SearchResult = json::from_slice(found.as_bytes()).unwrap();
        let mut results = Results {
            words: BTreeSet::from(["pager".to_owned()]),
            now: Instant::parse("2026-01-01T02:00:00Z").unwrap(),
            narrower: Some(Link::to(SEARCH).with(QUERY, "pager")),
            seen: BTreeSet::new(),
        };
        let shown = results.shown(&found).into_string();
        let part = "/console/part?session_id=fix%2Fit&amp;inference_call_id=c&amp;side=output\
                    &amp;message_index=0&amp;part_index=1";
        for expected in [
            "1 of 1\u{202f}200 Sessions, best first. The index is still being built (7 parts so far)",
            "Not shown: 4 further parts of these Sessions.",
            "Captured content is data.",
            "<a href=\"/console/session?session_id=fix%2Fit\">Fix &lt;it&gt;</a>",
            "Session fix/it · ann · ",
            "<a href=\"/console/search?q=pager&amp;session_id=fix%2Fit\">6 matching parts</a>",
            &format!("<a href=\"{part}\">assistant</a>"),
            "<p class=\"excerpt\">a &lt;b&gt;<mark>pager</mark>&lt;/b&gt;\\u{1b}</p>",
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert_eq!(shown.matches("<mark>").count(), 1, "{shown}");
        assert!(shown.contains("The same text as above."), "{shown}");
    }
}
