//! What arrived, and what became of it.

use std::borrow::Cow;

use svc_model::capture::{
    ArrivedFacts, CaptureCounts, CaptureSource, CommitClaimCounts, LogRecordCounts, PendingHalves,
    ReaderCounts, SourceCounts,
};
use svc_model::facts::FactTable;
use svc_model::ingest::LogSkip;
use svc_model::open::Open;

use crate::surface::Surface;

/// Returns the number of facts that a source brought first.
pub fn stored(of: &SourceCounts) -> u64 {
    of.facts.values().map(|facts| facts.stored).sum()
}

/// Returns the number of facts that a source brought again.
pub fn duplicates(of: &SourceCounts) -> u64 {
    of.facts.values().map(|facts| facts.duplicates).sum()
}

/// Returns how something was declined, why, and how often.
pub fn declined(of: &SourceCounts) -> impl Iterator<Item = (&'static str, &str, u64)> {
    let skipped = of.skipped.iter().map(|skipped| ("skipped", skipped));
    let rejected = of.rejected.iter().map(|rejected| ("rejected", rejected));
    let all = skipped.chain(rejected);
    all.map(|(how, (reason, count))| (how, reason.as_str(), *count))
}

/// What could arrive with one more setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureHint {
    /// What arrives now.
    pub found: String,
    /// What to do.
    pub mend: Cow<'static, str>,
}

/// Returns how many facts of a kind a source brought, whether they were new or not.
fn arrived(of: &SourceCounts, table: FactTable) -> u64 {
    let facts = of.facts.get(&Open::Known(table));
    facts.map_or(
        0,
        |ArrivedFacts {
             stored, duplicates, ..
         }| stored + duplicates,
    )
}

impl Surface {
    /// Says what clients could send with one more setting.
    pub fn capture_hints(self, counts: &CaptureCounts) -> Vec<CaptureHint> {
        let source = |source| counts.sources.get(&Open::Known(source));
        let mut hints = Vec::new();
        let mut hint = |found: String, mend: &'static str| {
            let mend = mend.into();
            hints.push(CaptureHint { found, mend });
        };
        if let Some(logs) = source(CaptureSource::Logs) {
            self.log_hints(logs, &mut hint);
        }
        let refused = counts.answers.get("/v1/logs").and_then(|by| by.get(&413));
        if let Some(refused) = refused {
            hint(
                format!(
                    "{} exports of logs were too large to be read",
                    self.whole(*refused)
                ),
                "export more often: OTEL_LOGS_EXPORT_INTERVAL=1000 where the client starts",
            );
        }
        let readers = counts.readers.iter();
        hints.extend(
            readers
                .filter(|(_, met)| met.format_changed > 0)
                .map(|(agent, met)| {
                    let agent = self.escape(agent);
                    CaptureHint {
                        found: format!(
                            "{} has changed the format of {} transcripts, so they were not read",
                            agent,
                            self.whole(met.format_changed)
                        ),
                        mend: format!(
                            "update svc, and see what is left: svc import {agent} --dry-run"
                        )
                        .into(),
                    }
                }),
        );
        hints
    }

    fn log_hints(self, logs: &SourceCounts, hint: &mut impl FnMut(String, &'static str)) {
        let skipped = |reason: LogSkip| logs.skipped.get(reason.as_str()).copied().unwrap_or(0);
        let [receipts, calls] =
            [FactTable::UsageReceipts, FactTable::InferenceCalls].map(|table| arrived(logs, table));
        let bodies = [
            LogSkip::BodyTruncated,
            LogSkip::BodyNotInline,
            LogSkip::MalformedBody,
            LogSkip::RequestUnpaired,
        ];
        let [truncated, elsewhere, _, unpaired] = bodies.map(skipped);
        if receipts > 0 && calls == 0 && bodies.into_iter().all(|reason| skipped(reason) == 0) {
            hint(
                format!(
                    "clients report the usage of {} calls, but not what was said in them",
                    self.whole(receipts)
                ),
                "svc install claude-code --calls",
            );
        }
        if truncated > 0 {
            hint(
                format!(
                    "clients cut {} bodies before they sent them",
                    self.whole(truncated)
                ),
                "set CLAUDE_CODE_OTEL_CONTENT_MAX_LENGTH: svc install claude-code --calls",
            );
        }
        if elsewhere > 0 {
            hint(
                format!(
                    "{} bodies stayed in files on the clients",
                    self.whole(elsewhere)
                ),
                "set OTEL_LOG_RAW_API_BODIES to 1: svc install claude-code --calls",
            );
        }
        // One in twenty is more than retries and ends of Sessions explain.
        if unpaired.saturating_mul(20) > calls {
            hint(
                format!(
                    "the requests of {} of {} calls did not arrive, so they have no input",
                    self.whole(unpaired),
                    self.whole(calls)
                ),
                "let all that a client logs go to one service, and see the docs: docs/integrate/claude-code.md",
            );
        }
    }

    /// Says what became of log records or spans, if any arrived.
    pub fn log_records(self, records: LogRecordCounts) -> Option<String> {
        if records.received == 0 && records.malformed_containers == 0 {
            return None;
        }
        let containers = match records.malformed_containers {
            0 => String::new(),
            containers => format!("; {} malformed around them", self.whole(containers)),
        };
        Some(format!(
            "{} received, {} translated, {} not, {} malformed{containers}",
            self.whole(records.received),
            self.whole(records.translated),
            self.whole(records.untranslated),
            self.whole(records.malformed)
        ))
    }

    /// Says what the readers of transcripts met, a text for each agent.
    pub fn readers(self, counts: &CaptureCounts) -> Vec<String> {
        let readers = counts.readers.iter();
        let text = |(agent, met): (&String, &ReaderCounts)| {
            format!(
                "{}: {} lines read, {} of unknown kinds, {} files in a changed format",
                self.escape(agent),
                self.whole(met.lines),
                self.whole(met.unknown),
                self.whole(met.format_changed)
            )
        };
        readers.map(text).collect()
    }

    /// Says which bodies wait for their request or response, if any do.
    pub fn pending_halves(self, pending: PendingHalves) -> Option<String> {
        (pending.count > 0).then(|| {
            format!(
                "{} requests and responses ({} bytes), until the next request or for a minute",
                self.whole(pending.count),
                self.whole(pending.bytes)
            )
        })
    }

    /// Says what became of the commits that clients reported.
    pub fn commit_claims(self, claims: CommitClaimCounts) -> String {
        format!(
            "{} open, {} linked to their Sessions, {} ambiguous, {} expired",
            self.whole(claims.open),
            self.whole(claims.resolved),
            self.whole(claims.ambiguous),
            self.whole(claims.expired)
        )
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use crate::surface::SHELL;

    fn found(facts: &str, skipped: &str, answers: &str) -> Vec<String> {
        let counts = format!(
            r#"{{"since":null,"server_since":"2026-01-02T04:04:05Z","sources":{{"logs":{{
                "deliveries":1,"facts":{{{facts}}},"conflicts":0,"skipped":{{{skipped}}},
                "rejected":{{}},"last_delivery_at":null,"last_stored_at":null}}}},
                "log_records":{{"received":0,"translated":0,"untranslated":0,"malformed":0,
                "malformed_containers":0}},"answers":{{{answers}}}}}"#
        );
        let counts = json::from_slice(counts.as_bytes()).unwrap();
        let hints = SHELL.capture_hints(&counts).into_iter();
        hints
            .map(|hint| format!("{}: {}", hint.found, hint.mend))
            .collect()
    }

    #[test]
    fn a_changed_format_is_said_with_the_agent_that_changed_it() {
        let counts = r#"{"since":null,"server_since":"2026-01-02T04:04:05Z","sources":{},
            "log_records":{"received":0,"translated":0,"untranslated":0,"malformed":0,
            "malformed_containers":0},"answers":{},
            "readers":{"codex":{"lines":1200,"unknown":3,"format_changed":2},
                "pi":{"lines":5,"unknown":0,"format_changed":0}}}"#;
        let counts = json::from_slice(counts.as_bytes()).unwrap();
        let hints = SHELL.capture_hints(&counts);
        assert_eq!(hints.len(), 1);
        assert!(
            hints[0]
                .found
                .starts_with("codex has changed the format of 2")
        );
        assert!(hints[0].mend.ends_with("svc import codex --dry-run"));
        assert_eq!(
            SHELL.readers(&counts)[1],
            "pi: 5 lines read, 0 of unknown kinds, 0 files in a changed format"
        );
    }

    #[test]
    fn usage_without_calls_is_said_with_the_setting_that_brings_them() {
        let receipts = r#""usage_receipts":{"stored":3,"duplicates":1}"#;
        assert_eq!(
            found(receipts, "", ""),
            [
                "clients report the usage of 4 calls, but not what was said in them: \
              svc install claude-code --calls"
            ]
        );
        let both = format!(r#"{receipts},"inference_calls":{{"stored":100,"duplicates":0}}"#);
        assert!(found(&both, "", "").is_empty());
        assert!(found(&both, r#""request_unpaired":5"#, "").is_empty());
        assert!(found("", "", "").is_empty());
        assert_eq!(found(&both, r#""request_unpaired":6"#, "").len(), 1);
    }

    #[test]
    fn what_a_client_cut_or_kept_is_said() {
        let skipped = r#""body_truncated":2,"body_not_inline":1"#;
        let hints = found("", skipped, r#""/v1/logs":{"200":1,"413":2}"#);
        assert_eq!(hints.len(), 3, "{hints:?}");
        assert!(hints[0].starts_with("clients cut 2 bodies"), "{hints:?}");
        assert!(hints[2].contains("OTEL_LOGS_EXPORT_INTERVAL"), "{hints:?}");
    }
}
