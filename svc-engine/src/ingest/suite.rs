//! Deliveries of every source, ingested without a server.

use rstest::rstest;
use serde_json::{Value, json};
use svc_engine_fact::clock::{Clock, Ids};
use svc_engine_store::testing::{Backend, TestStore};
use svc_model::capture::{CaptureTotals, SourceCounts};
use svc_model::id::{OrgId, SessionId};
use svc_model::ingest::{
    ForgeDelivery, ForgeEvent, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider,
    LogsReceipt, LogsRequest, RejectedPayload, VendorCIRequest,
};
use svc_model::json::{Json, Object};
use svc_model::problem::Code;
use svc_model::repository::RepositoryHost;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::engine::EngineConfig;

/// An engine in a program with a single thread.
struct Program {
    engine: Engine,
    runtime: Runtime,
    // Last, so that the database is dropped when nothing uses it any more.
    _database: TestStore,
}

impl Program {
    fn start(backend: Backend) -> Option<Self> {
        let database = TestStore::create(backend)?;
        let config = EngineConfig::new(database.url().clone(), OrgId::new("acme").unwrap());
        Some(Self {
            engine: Engine::open(&config, Clock::system(), Ids::random()).unwrap(),
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            _database: database,
        })
    }

    /// Ingests a delivery with a body so large that a server would make room for others.
    fn ingest<D: Ingest>(&self, delivery: D) -> Result<D::Receipt, Error> {
        let budget = BodyBudget::new(1024 * 1024);
        self.runtime.block_on(self.engine.ingest(delivery, budget))
    }

    fn forge(&self, event: &str, only: Option<ForgeEvent>, payload: &Value) -> IngestReceipt {
        let host = RepositoryHost::new("git.example").unwrap();
        let delivery = ForgeDelivery {
            event: event.to_owned(),
            delivery_id: None,
            payload: object(payload),
        };
        let webhook = ForgeWebhook {
            delivery,
            host: &host,
            only,
        };
        self.ingest(webhook).unwrap()
    }

    /// Returns the counts of this process, which are those of the organization.
    fn counts(&self) -> CaptureTotals {
        let here = self.engine.captured_here();
        let of_all = self.runtime.block_on(self.engine.captured()).unwrap();
        assert_eq!(here, of_all);
        here
    }
}

fn object(value: &Value) -> Object {
    let json = Json::parse(value.to_string().as_bytes()).unwrap();
    json.into_object().unwrap()
}

fn payload(id: &str) -> Value {
    json!({
        "litellm_call_id": id, "model": "m", "startTime": 1_795_177_187,
        "metadata": {"requester_metadata": {"session_id": "s"}},
        "messages": [{"role": "user", "content": "hello"}],
        "response": {"choices": [{"message": {"role": "assistant", "content": "hi"}}]},
    })
}

fn call(provider: GatewayProvider, payload: &Value) -> GatewayIngestRequest {
    GatewayIngestRequest {
        provider,
        session_id: SessionId::new("s").ok(),
        user_id: None,
        payload: object(payload).into(),
        capture: None,
        compare: false,
    }
}

fn batch(
    provider: GatewayProvider,
    payloads: impl IntoIterator<Item = Result<Value, RejectedPayload>>,
) -> GatewayBatchRequest {
    let payloads = payloads.into_iter();
    GatewayBatchRequest {
        provider,
        payloads: payloads
            .map(|payload| payload.map(|payload| object(&payload)))
            .collect(),
    }
}

fn ci(commit: char) -> VendorCIRequest {
    let report = json!({
        "provider": "ci_a", "run_id": "1", "repo": "o/r", "commit_sha": sha(commit),
        "branch": "main", "workflow_name": "build", "result": "passed",
    });
    serde_json::from_value(report).unwrap()
}

fn sha(digit: char) -> String {
    digit.to_string().repeat(40)
}

fn decision() -> LogsRequest {
    let attribute =
        |(key, value): (&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    let mut attributes: Vec<Value> = [
        ("event.name", "svc.tool_decision"),
        ("agent", "pi"),
        ("session.id", "s"),
        ("tool_use_id", "t"),
        ("file_path", "a"),
        ("decision", "accept"),
    ]
    .map(attribute)
    .into();
    attributes.push(json!({"key": "explicit", "value": {"boolValue": true}}));
    let records = [
        json!({"timeUnixNano": "1795177187000000000", "attributes": attributes}),
        json!(7),
    ];
    let export = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]});
    LogsRequest::Json(object(&export))
}

/// Returns a delivery of each event of a forge.
fn events() -> [(ForgeEvent, Value); 4] {
    let repository = json!({"id": 900, "full_name": "o/new"});
    let push = json!({
        "ref": "refs/heads/main", "before": sha('a'), "after": sha('b'),
        "repository": repository,
    });
    let run = json!({
        "workflow_run": {
            "id": 1, "name": "CI", "head_sha": sha('b'), "status": "completed",
            "conclusion": "success", "head_branch": "main",
        },
        "action": "completed", "repository": repository,
    });
    let branch = |commit| json!({"ref": "main", "sha": sha(commit), "repo": repository});
    let opened = json!({
        "action": "opened", "number": 1, "repository": repository,
        "pull_request": {"number": 1, "head": branch('b'), "base": branch('a')},
    });
    let renamed = json!({
        "action": "renamed", "repository": repository,
        "changes": {"repository": {"name": {"from": "old"}}},
    });
    [
        (ForgeEvent::Push, push),
        (ForgeEvent::WorkflowRun, run),
        (ForgeEvent::PullRequest, opened),
        (ForgeEvent::Repository, renamed),
    ]
}

fn is_stored(receipt: &IngestReceipt) -> bool {
    matches!(receipt, IngestReceipt::Fact(result) if result.stored)
}

/// Returns a line for each source: its deliveries, new facts by kind, and what was skipped and
/// rejected by reason.
fn lines(counts: &CaptureTotals) -> Vec<String> {
    let line = |(source, counts): (&Open<CaptureSource>, &SourceCounts)| {
        let facts = counts.facts.iter();
        let facts = facts.map(|(table, of)| (table.as_str(), of.stored));
        let reasons = counts.skipped.iter().chain(&counts.rejected);
        let reasons = reasons.map(|(reason, by)| (reason.as_str(), *by));
        let all = facts
            .chain(reasons)
            .map(|(name, by)| format!(", {name} {by}"));
        let all = all.collect::<String>();
        format!("{}: {}{all}", source.as_str(), counts.deliveries)
    };
    counts.sources.iter().map(line).collect()
}

#[rstest]
fn a_delivery_of_each_source_gets_its_receipt_and_is_counted(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(program) = Program::start(backend) else {
        return;
    };
    let gateway = GatewayProvider::GatewayA;

    let mut empty = payload("one");
    empty["messages"] = json!([]);
    empty["response"] = json!({});
    assert!(is_stored(&program.ingest(call(gateway, &empty)).unwrap()));
    let items = [
        Ok(payload("two")),
        Ok(payload("two")),
        Ok(json!({"call_type": "embedding"})),
        Err(RejectedPayload::NotAnObject),
    ];
    let receipt = program.ingest(batch(gateway, items)).unwrap();
    assert_eq!((receipt.stored, receipt.duplicates), (1, 1));
    assert_eq!(receipt.skipped.values().sum::<u64>(), 1);
    assert_eq!(receipt.rejected.values().sum::<u64>(), 1);

    assert!(program.ingest(ci('a')).unwrap().stored);
    assert_eq!(program.ingest(decision()).unwrap(), LogsReceipt {});
    let nothing = LogsRequest::Json(Object::new());
    assert_eq!(program.ingest(nothing).unwrap(), LogsReceipt {});

    for (event, payload) in events() {
        let receipt = program.forge(event.as_str(), Some(event), &payload);
        assert!(is_stored(&receipt), "{event:?}: {receipt:?}");
    }
    for (event, only, reason) in [
        ("ping", None, SkipReason::Ping),
        ("star", None, SkipReason::UnsupportedEvent),
        ("ping", Some(ForgeEvent::Push), SkipReason::NotPush),
    ] {
        let receipt = program.forge(event, only, &json!({}));
        assert_eq!(receipt, IngestReceipt::Skipped(Skipped::new(reason)));
    }
    let receipt = program.forge("push", None, &json!({}));
    assert!(matches!(receipt, IngestReceipt::Skipped(_)), "{receipt:?}");

    let counts = program.counts();
    assert_eq!(counts.log_records.translated, 1);
    assert_eq!(counts.log_records.malformed, 1);
    let expected = [
        "gateway: 2, inference_calls 2, no_content 1, not_an_inference_call 1, not_an_object 1",
        "logs: 2, developer_decisions 1",
        "ci: 1, ci_outcomes 1",
        "forge_push: 2, pushes 1, not_a_branch 1",
        "forge_pull_request: 1, pull_request_revisions 1",
        "forge_ci: 1, ci_outcomes 1",
        "forge_repository: 1, repository_renames 1",
        "forge_other: 3, not a push event 1, ping 1, unsupported_event 1",
    ];
    assert_eq!(lines(&counts), expected);
    program.engine.close();
}

#[test]
fn a_delivery_that_can_never_be_stored_is_an_error() {
    let program = Program::start(Backend::Sqlite).unwrap();
    let other = GatewayProvider::Unknown;
    for refused in [
        program.ingest(call(other, &payload("one"))).err(),
        program.ingest(batch(other, [Ok(payload("one"))])).err(),
    ] {
        assert!(matches!(refused, Some(Error::UnsupportedProvider(provider)) if provider == other));
    }
    let malformed = program.ingest(LogsRequest::Protobuf(vec![0xff]));
    assert!(matches!(malformed, Err(Error::MalformedProtobuf)));
    assert!(program.counts().is_empty());

    let invalid = program.ingest(call(GatewayProvider::GatewayA, &payload("a\0")));
    assert!(matches!(invalid, Err(Error::InvalidPayload)));
    let rejected = program.counts().of(CaptureSource::Gateway).rejected.clone();
    assert_eq!(rejected, [("invalid_payload".to_owned(), 1)].into());

    assert!(program.ingest(ci('a')).unwrap().stored);
    let conflict = program.ingest(ci('b')).err();
    let code = Code::RepositoryIdentityConflict;
    assert!(
        matches!(conflict, Some(Error::Conflict(found)) if found == code),
        "{conflict:?}"
    );
    assert_eq!(program.counts().of(CaptureSource::Ci).conflicts, 1);
    program.engine.close();
}
