//! What a search found.

use std::collections::BTreeSet;

use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextSelectedRequest, DiscoveryResult,
};
use svc_model::endpoint::{Discovery, Search, Selected};
use svc_model::evidence::{EvidenceReadItem, Part};
use svc_model::json::Json;
use svc_model::limit::{CONTEXT_ITEMS_MAX, SEARCH_SESSIONS_MAX};
use svc_model::open::Open;
use svc_model::search::{SearchPart, SearchQuery, SearchRequest, SearchResult, SearchSession};
use svc_view::part_text;

use super::hit::{Hit, folded, written};
use super::{Answer, Members, NOTHING, NOTICE, Step, kind, opening, reference_value, typed};
use crate::moment::minute;
use crate::refusal::ToolRefusal;
use crate::text::counted;

/// The messages around a hit that the next call shows.
const AROUND: u64 = 2;

/// Makes an answer of what a search found.
pub(crate) fn found(request: &SearchRequest, reply: Json) -> Result<Step, ToolRefusal> {
    let result = typed::<Search>(reply)?;
    let words = request.query.words();
    let sessions = usize::try_from(request.limit.get()).unwrap_or(CONTEXT_ITEMS_MAX);
    let hits = folded(hits(&result.items, sessions), words);
    let left_out = left_out(request, &result);
    let narrower = if result.index_complete {
        "search_evidence with rarer words, a session_id, or fewer conditions"
    } else {
        "search_evidence with the same again in a moment"
    };
    Ok(answer(&hits, words, left_out, &searched(&result), narrower))
}

/// Returns the parts that are shown: the best of each Session, and as many others as there is room
/// for.
fn hits(sessions: &[SearchSession], room: usize) -> Vec<Hit> {
    let mut counts = vec![0; sessions.len()];
    let mut total = 0;
    for place in 0.. {
        let deeper: Vec<usize> = (0..sessions.len())
            .filter(|index| sessions[*index].parts.len() > place)
            .collect();
        if deeper.is_empty() {
            break;
        }
        for index in deeper {
            if place == 0 || total < room {
                counts[index] += 1;
                total += 1;
            }
        }
    }
    let shown = sessions.iter().zip(counts);
    shown
        .flat_map(|(session, count)| hits_of(session, count))
        .collect()
}

fn hits_of(session: &SearchSession, count: usize) -> Vec<Hit> {
    let parts = session.parts.iter().take(count);
    let mut hits: Vec<Hit> = parts.map(|part| hit(session, part)).collect();
    if let Some(first) = hits.first_mut() {
        first.more = session.matched_parts.saturating_sub(count as u64);
        first.title.clone_from(&session.title);
        let users = session.user_ids.iter().flatten();
        first.users = users.map(ToString::to_string).collect();
    }
    hits
}

fn hit(session: &SearchSession, part: &SearchPart) -> Hit {
    let lossy = |text: &svc_model::json::Text| text.to_string_lossy().into_owned();
    let text = match (&part.part, &part.excerpt) {
        (Some(whole), _) => part_text(whole),
        (None, Some(excerpt)) => lossy(&excerpt.text),
        (None, None) => String::new(),
    };
    Hit {
        session: session.session_id.to_string(),
        time: Some(part.observed_at),
        role: lossy(&part.role),
        kind: kind(&part.part_type),
        tool: part.tool_name.as_ref().map(lossy),
        text,
        reference: Some(reference_value(&part.reference)),
        offset: part.excerpt.as_ref().map_or(0, |excerpt| excerpt.start),
        ..Hit::default()
    }
}

fn searched(result: &SearchResult) -> String {
    let sessions = counted(result.coverage.sessions, "Session", "Sessions");
    let up_to = result
        .indexed_up_to
        .map(|moment| format!(" up to {}", minute(moment)));
    let incomplete = if result.index_complete {
        ""
    } else {
        "; the index is still being built, so there may be more"
    };
    format!("{sessions}{}{incomplete}", up_to.unwrap_or_default())
}

fn left_out(request: &SearchRequest, result: &SearchResult) -> Vec<String> {
    let skipped = &result.skipped;
    let mut lines = Vec::new();
    if !result.index_complete {
        lines.push("what the index, which is still being built, does not have yet".to_owned());
    }
    if skipped.session_limit > 0 {
        let more = counted(skipped.session_limit, "Session", "Sessions");
        let limit = request.limit.get();
        let next = if limit < SEARCH_SESSIONS_MAX {
            format!("the same call with limit {SEARCH_SESSIONS_MAX}")
        } else {
            "use rarer words or conditions".to_owned()
        };
        lines.push(format!("{more} beyond the first {limit}: {next}"));
    }
    let parts = |count, rest: &str| {
        (count > 0).then(|| format!("{} {rest}", counted(count, "part", "parts")))
    };
    lines.extend(parts(
        skipped.response_budget,
        "for which the answer had no room: use rarer words or a session_id",
    ));
    lines.extend(parts(
        skipped.withdrawn,
        "withdrawn since: quarantined, erased or no longer granted",
    ));
    lines.extend(parts(
        skipped.non_finite_number,
        "with a number that JSON cannot express",
    ));
    if !result.coverage.all_scored {
        lines.push("parts that contain only the commonest of the words: use rarer ones".to_owned());
    }
    lines
}

/// Makes an answer of hits.
fn answer(
    hits: &[Hit],
    words: &BTreeSet<String>,
    left_out: Vec<String>,
    searched: &str,
    narrower: &str,
) -> Step {
    let first = hits.iter().find_map(|hit| {
        let reference = hit.reference.as_ref()?;
        let mut more = vec![("around", AROUND)];
        more.extend((hit.offset > 0).then_some(("offset", hit.offset)));
        Some(opening(&hit.session, reference, &more))
    });
    let next = match (first, hits.first()) {
        (Some(first), _) => format!("To read the first hit among its neighbours: {first}"),
        (None, Some(hit)) => format!(
            "To browse the first Session: {}",
            super::call("open_evidence", super::of_session(&hit.session))
        ),
        (None, None) if left_out.is_empty() => {
            "Try other words for the same thing; list_sessions {} shows what there is.".to_owned()
        }
        (None, None) => format!("Call {narrower}."),
    };
    let is_nothing = hits.is_empty() && left_out.is_empty();
    let hits = written(hits, words);
    let mut structured = Members::default()
        .with("left_out", left_out)
        .with("next", next)
        .with("notice", (!hits.is_empty()).then_some(NOTICE))
        .with("note", is_nothing.then_some(NOTHING))
        .with("searched", searched)
        .0;
    structured.insert("hits".to_owned(), hits.into());
    Step::Answer(Answer::new(structured))
}

/// Returns the words of a query of policy 1, for excerpts.
fn words_of(query: &str) -> BTreeSet<String> {
    SearchQuery::new(query).map_or_else(|_| BTreeSet::new(), |query| query.words().clone())
}

fn hit_of_item(session: &str, item: &EvidenceReadItem) -> Hit {
    let tool = match &item.part {
        Open::Known(Part::ToolCall { name, .. }) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    Hit {
        session: session.to_owned(),
        time: Some(item.observed_at),
        role: item.role.to_string_lossy().into_owned(),
        kind: super::part::kind_of(&item.part),
        tool,
        text: part_text(&item.part),
        reference: Some(reference_value(&item.reference)),
        ..Hit::default()
    }
}

/// Makes an answer of the Sessions that a discovery found.
pub(crate) fn discovered(
    request: &ContextDiscoveryRequest,
    reply: Json,
) -> Result<Step, ToolRefusal> {
    let result = typed::<Discovery>(reply)?;
    let words = words_of(request.query.as_str());
    let mut hits = Vec::new();
    for candidate in &result.items {
        let session = candidate.session_id.as_str();
        let mut hit = match &candidate.preview {
            Some(preview) => hit_of_item(session, preview),
            None => Hit {
                session: session.to_owned(),
                ..Hit::default()
            },
        };
        hit.more = candidate
            .matched_parts
            .saturating_sub(u64::from(candidate.preview.is_some()));
        hit.at_commit = candidate.commit_match.is_some();
        hits.push(hit);
    }
    let hits = folded(hits, &words);
    let narrower = "search_evidence, which searches more, or find_evidence with rarer words";
    let searched = of_discovery(&result);
    Ok(answer(
        &hits,
        &words,
        left_out_of_discovery(&result),
        &searched,
        narrower,
    ))
}

fn of_discovery(result: &DiscoveryResult) -> String {
    let coverage = &result.coverage;
    let of = match coverage.searched_sessions {
        Some(searched) => format!("only the latest {searched} of {}", coverage.found_sessions),
        None => coverage.found_sessions.to_string(),
    };
    let granted = coverage.authorized_sessions;
    format!("{of} Sessions of {granted} granted")
}

fn left_out_of_discovery(result: &DiscoveryResult) -> Vec<String> {
    let skipped = &result.skipped;
    let bounded = beyond_bounds(
        ("Session", "Sessions"),
        skipped.candidate_limit,
        skipped.response_budget,
    );
    let unsearched = unsearched(
        skipped.reasoning_part,
        skipped.non_finite_number,
        skipped.content_erased,
        result.coverage.quarantined_inference_calls,
    );
    bounded.chain(unsearched).collect()
}

/// Says what policy 1 found beyond its first items, and what its budget had no room for.
fn beyond_bounds(
    (one, many): (&'static str, &'static str),
    beyond: u64,
    without_room: u64,
) -> impl Iterator<Item = String> {
    let bounds = [
        (
            beyond,
            format!("beyond the first {CONTEXT_ITEMS_MAX}: use rarer words"),
        ),
        (
            without_room,
            "for which max_bytes had no room: leave max_bytes out, or use search_evidence"
                .to_owned(),
        ),
    ];
    let nonzero = bounds.into_iter().filter(|(count, _)| *count > 0);
    nonzero.map(move |(count, rest)| format!("{} {rest}", counted(count, one, many)))
}

/// Makes an answer of the parts of one Session.
pub(crate) fn selected(request: &ContextSelectedRequest, reply: Json) -> Result<Step, ToolRefusal> {
    let result = typed::<Selected>(reply)?;
    let words = words_of(request.query.as_str());
    let session = result.source_session_id.as_str();
    let items = result.items.iter();
    let hits: Vec<Hit> = items
        .map(|item| hit_of_item(session, &item.evidence))
        .collect();
    let hits = folded(hits, &words);
    let narrower = "search_evidence with this session_id and rarer words";
    let searched = format!(
        "{} in {} of this Session",
        counted(result.coverage.scanned_parts, "part", "parts"),
        counted(result.coverage.visible_inference_calls, "call", "calls"),
    );
    Ok(answer(
        &hits,
        &words,
        left_out_of_selection(&result),
        &searched,
        narrower,
    ))
}

fn left_out_of_selection(result: &ContextResult) -> Vec<String> {
    let skipped = &result.skipped;
    let bounded = beyond_bounds(
        ("matching part", "matching parts"),
        skipped.item_limit,
        skipped.response_budget,
    );
    let unsearched = unsearched(
        skipped.reasoning_part,
        skipped.non_finite_number,
        skipped.content_erased,
        result.coverage.quarantined_inference_calls,
    );
    bounded.chain(unsearched).collect()
}

/// Says what no search of policy 1 covers.
fn unsearched(reasoning: u64, non_finite: u64, erased: u64, quarantined: u64) -> Vec<String> {
    let kinds = [
        (
            reasoning,
            "reasoning part, which search_evidence finds with kind reasoning",
            "reasoning parts, which search_evidence finds with kind reasoning",
        ),
        (
            non_finite,
            "tool part with a number that JSON cannot express",
            "tool parts with a number that JSON cannot express",
        ),
        (
            erased,
            "call with erased content",
            "calls with erased content",
        ),
        (quarantined, "quarantined call", "quarantined calls"),
    ];
    let nonzero = kinds.into_iter().filter(|(count, ..)| *count > 0);
    nonzero
        .map(|(count, one, many)| format!("not searched: {}", counted(count, one, many)))
        .collect()
}
