//! What a search found, and what it looked at.

use std::collections::BTreeSet;

use svc_model::context::ContextStatus;
use svc_model::evidence::{Part, PartType};
use svc_model::open::Open;
use svc_model::search::{SearchPart, SearchResult, search_text};

use crate::snippet::{CUT, Snippet, snippet};
use crate::surface::{Surface, clock};

/// What an answer without Sessions does not say.
pub const NOTHING_FOUND: &str = "What is not found may still have happened: what was never captured \
                           cannot be found.";

/// The characters of a role or of the name of a tool that are shown.
const NAME_CHARACTERS_MAX: usize = 80;

/// Returns an excerpt of a part that was found, of at most so many characters, around the words of
/// the query.
pub fn found(part: &SearchPart, query: &BTreeSet<String>, characters_max: usize) -> Snippet {
    let Some(excerpt) = &part.excerpt else {
        let whole = part.part.as_ref().map(part_text).unwrap_or_default();
        return snippet(&whole, query, characters_max);
    };
    let mut found = snippet(&excerpt.text.to_string(), query, characters_max);
    if excerpt.start > 0 && !found.text.starts_with(CUT) {
        found.text.insert_str(0, CUT);
        for mark in &mut found.marks {
            *mark = mark.start + CUT.len()..mark.end + CUT.len();
        }
    }
    if excerpt.end < excerpt.total && !found.text.ends_with(CUT) {
        found.text.push_str(CUT);
    }
    found
}

/// Returns the text of a part, as it is searched. Of a kind that is not known, that is its JSON.
pub fn part_text(part: &Open<Part>) -> String {
    match part {
        Open::Known(part) => search_text(part).to_string_lossy().into_owned(),
        // A newer service knows more kinds of parts.
        Open::Unknown(part) => String::from_utf8_lossy(&part.value().to_canonical()).into_owned(),
    }
}

impl Surface {
    /// Says who speaks in a part that was found, and what kind of part it is.
    pub fn speaker(self, part: &SearchPart) -> String {
        let role = self.or_none(self.line(&part.role, NAME_CHARACTERS_MAX));
        let kind = match &part.part_type {
            Open::Known(PartType::Text) => return role,
            Open::Known(PartType::ToolCall) => {
                let name = part.tool_name.as_ref();
                let name = name.map(|name| self.line(name, NAME_CHARACTERS_MAX));
                return format!("{role} calls {}", self.or_none(name.unwrap_or_default()));
            }
            Open::Known(PartType::ToolCallResponse) => "result of a tool call".to_owned(),
            newer => self.word(newer.as_str()),
        };
        format!("{role} ({kind})")
    }

    /// Says how many Sessions an answer has, and how many were searched.
    pub fn found_sessions(self, result: &SearchResult) -> String {
        let searched = self.whole(result.coverage.sessions);
        let items = u64::try_from(result.items.len()).unwrap_or(u64::MAX);
        if items > 0 {
            return format!("{} of {searched} Sessions, best first", self.whole(items));
        }
        if result.status == ContextStatus::BudgetExhausted {
            return format!("Sessions match, but none of them fits; {searched} were searched");
        }
        if !result.index_complete {
            return "no Session matches so far".to_owned();
        }
        format!("no Session matches; {searched} were searched")
    }

    /// Says what an answer does not cover: one sentence for each reason.
    pub fn search_bounds(self, result: &SearchResult) -> Vec<String> {
        let mut bounds = Vec::new();
        match result.indexed_up_to {
            Some(up_to) if result.index_complete => bounds.push(format!(
                "Everything captured up to {} UTC was searched.",
                clock(up_to)
            )),
            _ => bounds.push(format!(
                "The index is still being built ({} parts so far), so more may be found later.",
                self.whole(result.coverage.indexed_parts)
            )),
        }
        if !result.coverage.all_scored {
            bounds.push(format!(
                "Only the {} parts with the rarest words of the query were compared.",
                self.whole(result.coverage.candidates)
            ));
        }
        bounds
    }

    /// Returns what was found and is not in the answer, or `None` if that is nothing.
    pub fn search_skipped(self, result: &SearchResult) -> Option<String> {
        let skipped = &result.skipped;
        let counts = [
            (skipped.session_limit, "further Sessions"),
            (skipped.part_limit, "further parts of these Sessions"),
            (skipped.response_budget, "too large for the answer"),
            (skipped.withdrawn, "no longer visible"),
            (
                skipped.non_finite_number,
                "with a number that is not finite",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{} {what}", self.whole(count)))
            .collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;
    use crate::surface::{CONSOLE, SHELL};

    fn part(more: &str) -> SearchPart {
        let text = format!(
            r#"{{"score":1000,"reference":{{"inference_call_id":"c","side":"output","message_index":0,
            "part_index":0}},"observed_at":"2026-01-15T09:30:00Z","role":"assistant",
            "finish_reason":null,{more}}}"#
        );
        json::from_slice(text.as_bytes()).unwrap()
    }

    fn result(more: &str) -> SearchResult {
        let text = format!(
            r#"{{"schema_version":1,"policy_version":2,"quarantine_revision":0,
            "capture_completeness":"unknown",{more},"items":[]}}"#
        );
        json::from_slice(text.as_bytes()).unwrap()
    }

    fn words(text: &str) -> BTreeSet<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_excerpt_shows_where_its_part_goes_on() {
        let cut = part(
            r#""type":"text","whole":false,"excerpt":{"text":"the pump \ud800","start":5,"end":17,"total":30}"#,
        );
        let found = found(&cut, &words("pump"), 100);
        assert_eq!(found.text, "…the pump \u{fffd}…");
        assert_eq!(&found.text[found.marks[0].clone()], "pump");
    }

    #[test]
    fn a_whole_part_is_shown_by_its_search_text() {
        let call = part(
            r#""type":"tool_call","tool_name":"Edit\u001b","whole":true,"part":{"type":"tool_call",
            "id":"t","name":"Edit","arguments":{"path":"a.rs"}}"#,
        );
        assert_eq!(found(&call, &words("rs"), 100).text, "Edit path: a.rs");
        assert_eq!(SHELL.speaker(&call), "assistant calls Edit\\u{1b}");
        let newer = part(r#""type":"image_x","whole":true,"part":{"type":"image_x","n":1}"#);
        assert_eq!(
            found(&newer, &words("x"), 100).text,
            r#"{"type":"image_x","n":1}"#
        );
        assert_eq!(CONSOLE.speaker(&newer), "assistant (image x)");
        let answer = part(
            r#""type":"tool_call_response","whole":true,"part":{"type":"tool_call_response","id":"t","result":"x"}"#,
        );
        assert_eq!(SHELL.speaker(&answer), "assistant (result of a tool call)");
    }

    #[test]
    fn what_an_answer_does_not_cover_is_said() {
        let complete = result(
            r#""status":"no_match","indexed_up_to":"2026-01-15T09:30:00Z","index_complete":true,
            "coverage":{"sessions":1200,"indexed_parts":9,"candidates":0,"all_scored":true},
            "skipped":{"withdrawn":0,"non_finite_number":0,"session_limit":0,"part_limit":0,"response_budget":0}"#,
        );
        assert_eq!(
            SHELL.found_sessions(&complete),
            "no Session matches; 1200 were searched"
        );
        assert_eq!(
            SHELL.search_bounds(&complete),
            ["Everything captured up to 2026-01-15 09:30:00 UTC was searched."]
        );
        assert_eq!(SHELL.search_skipped(&complete), None);
        let building = result(
            r#""status":"budget_exhausted","indexed_up_to":null,"index_complete":false,
            "coverage":{"sessions":3,"indexed_parts":2000,"candidates":20000,"all_scored":false},
            "skipped":{"withdrawn":1,"non_finite_number":0,"session_limit":0,"part_limit":0,"response_budget":2}"#,
        );
        assert_eq!(
            CONSOLE.found_sessions(&building),
            "Sessions match, but none of them fits; 3 were searched"
        );
        assert_eq!(
            SHELL.search_bounds(&building),
            [
                "The index is still being built (2000 parts so far), so more may be found later.",
                "Only the 20000 parts with the rarest words of the query were compared."
            ]
        );
        assert_eq!(
            SHELL.search_skipped(&building).as_deref(),
            Some("2 too large for the answer, 1 no longer visible")
        );
    }
}
