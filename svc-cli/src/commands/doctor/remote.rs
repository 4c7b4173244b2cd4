//! Checks whether the service answers, accepts the token, and receives deliveries.

use std::time::SystemTime;

use svc_client::{Client, ErrorKind, RetryPolicy, environment};
use svc_engine::clock::Clock;
use svc_model::capture::{CaptureCounts, CaptureSource};
use svc_model::facts::FactTable;
use svc_model::identity::Authority;
use svc_model::ingest::LogsRequest;
use svc_model::json::{Json, Object};
use svc_model::open::Open;
use svc_model::time::Instant;
use svc_model::version::SERVICE_VERSION;
use svc_view::SHELL;

use super::{DoctorCheck, prices};
use crate::commands::capture::search_index;
use crate::commands::service;
use crate::credentials::{PRIVATE, Role};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::relative;

/// The largest accepted difference between the clocks, in seconds. The service reports its time to
/// the second.
const SKEW_SECONDS_MAX: i64 = 60;
/// What to do if the service cannot use its store.
const STORE_MEND: &str = "the service's log says why (store.unavailable): check the database; if it was \
    replaced under the running service, restart the service";

/// Also returns whether the service keeps mirrors, if it says so.
pub(super) fn checks(options: &ServiceOptions) -> (Vec<DoctorCheck>, Option<bool>) {
    let client = match service::client(options) {
        // Each check looks once. With retries, every one of them would wait several times for a
        // database that hangs.
        Ok(client) => client.with_retry(RetryPolicy::none()),
        Err(error) => {
            let mend = match service::given(options) {
                // No service can repair the credentials file.
                _ if error.code() == "credentials" => error
                    .hints()
                    .first()
                    .and_then(|hint| hint.strip_prefix(PRIVATE))
                    .unwrap_or("correct this file")
                    .to_owned(),
                Ok(_) if error.code() == "no_token" => {
                    return (without_token(options, &error), None);
                }
                Ok(_) => "correct SVC_URL or --url".to_owned(),
                Err(_) => "set SVC_URL to the URL of the service".to_owned(),
            };
            return (
                vec![DoctorCheck::failed("service", error.message(), mend)],
                None,
            );
        }
    };
    let checks = service::block_on(async { Ok(asked(&client).await) });
    checks.unwrap_or_else(|error: CommandError| {
        let failed = DoctorCheck::failed("service", error.message(), "svc doctor");
        (vec![failed], None)
    })
}

/// Returns how to give this shell another token. A token in the environment takes precedence over a
/// stored one.
fn token_mend(url: &str) -> String {
    match environment::token() {
        Ok(None) => service::login(url, Role::Operator),
        Ok(Some(_)) | Err(_) => format!(
            "set SVC_TOKEN to an operator token, or unset SVC_TOKEN and SVC_TOKEN_FILE and run: {}",
            service::login(url, Role::Operator)
        ),
    }
}

/// Checks whether the service answers at all, when this shell has no token for it.
fn without_token(options: &ServiceOptions, error: &CommandError) -> Vec<DoctorCheck> {
    let checks = service::block_on(async {
        let client = service::anonymous(options)?.with_retry(RetryPolicy::none());
        let mut checks = match answers(&client).await {
            Ok(checks) => checks,
            Err(check) => return Ok(vec![check]),
        };
        let login = service::login(client.url(), Role::Operator);
        checks.push(DoctorCheck::failed("token", error.message(), login));
        Ok(checks)
    });
    checks.unwrap_or_else(|error: CommandError| {
        vec![DoctorCheck::failed(
            "service",
            error.message(),
            "svc doctor",
        )]
    })
}

/// Checks whether the service answers, its version and its clock; or returns why it does not.
async fn answers(client: &Client) -> Result<Vec<DoctorCheck>, DoctorCheck> {
    let (traced, trace) = client.traced();
    let url = client.url();
    match traced.health().await {
        Ok(health) => Ok(vec![
            DoctorCheck::ok("service", url),
            version(&health.version),
            clock(trace.last().and_then(|attempt| attempt.answered_at)),
        ]),
        Err(error) => {
            let mend = if client.is_loopback() {
                "svc serve".to_owned()
            } else {
                format!("curl --fail-with-body {}/health", url.trim_end_matches('/'))
            };
            Err(DoctorCheck::failed(
                "service",
                format!("{url}: {error}"),
                mend,
            ))
        }
    }
}

async fn asked(client: &Client) -> (Vec<DoctorCheck>, Option<bool>) {
    let url = client.url().to_owned();
    let mut checks = match answers(client).await {
        Ok(checks) => checks,
        Err(check) => return (vec![check], None),
    };
    let probe = match client.me().await {
        Ok(probe) => probe,
        Err(error) => {
            checks.push(DoctorCheck::failed(
                "token",
                error.to_string(),
                token_mend(&url),
            ));
            return (checks, None);
        }
    };
    let authority = probe.authority.as_str().to_owned();
    let whose = format!(
        "{authority} of {}, organization {}",
        probe.client_id, probe.org_id
    );
    let is_operator = probe.authority == Open::Known(Authority::Operator);
    checks.push(if is_operator {
        DoctorCheck::ok("token", whose)
    } else {
        let mend = token_mend(&url);
        DoctorCheck::warning("token", format!("{whose}: not an operator token"), mend)
    });
    checks.push(logs(client, "logs as JSON", LogsRequest::Json(empty_export())).await);
    // An export without records is an empty message.
    checks.push(
        logs(
            client,
            "logs as protobuf",
            LogsRequest::Protobuf(Vec::new()),
        )
        .await,
    );
    let mut keeps_mirrors = None;
    if is_operator {
        match client.capture_counts().await {
            Ok(counts) => {
                keeps_mirrors = counts.keeps_mirrors;
                checks.extend(captured(&counts));
                checks.push(searching(&counts));
                checks.extend(prices::checks(client).await);
            }
            Err(error) => {
                let mend = match error.kind() {
                    ErrorKind::StoreUnavailable | ErrorKind::TimedOut => STORE_MEND,
                    _ => "look again: svc doctor; if it stays, the log of the service says why",
                };
                checks.push(DoctorCheck::failed("capture", error.to_string(), mend));
            }
        }
    }
    (checks, keeps_mirrors)
}

fn version(version: &str) -> DoctorCheck {
    if version == SERVICE_VERSION {
        DoctorCheck::ok("version", version)
    } else {
        DoctorCheck::warning(
            "version",
            format!("the service is version {version}, this program is {SERVICE_VERSION}"),
            format!("install svc {version} here, or {SERVICE_VERSION} there"),
        )
    }
}

/// Compares this clock with the service's, from the date of its answer.
fn clock(answered_at: Option<SystemTime>) -> DoctorCheck {
    let Some(answered_at) = answered_at else {
        return DoctorCheck::absent("clock", "the service's time is unknown");
    };
    let seconds = match SystemTime::now().duration_since(answered_at) {
        Ok(behind) => i64::try_from(behind.as_secs()).unwrap_or(i64::MAX),
        Err(ahead) => -i64::try_from(ahead.duration().as_secs()).unwrap_or(i64::MAX),
    };
    if seconds.abs() <= SKEW_SECONDS_MAX {
        return DoctorCheck::ok("clock", "within a minute of the service");
    }
    let how = if seconds > 0 { "ahead of" } else { "behind" };
    DoctorCheck::failed(
        "clock",
        format!("{} s {how} the service's", seconds.abs()),
        "set the clocks of both machines by NTP: timedatectl set-ntp true",
    )
}

fn empty_export() -> Object {
    Object::from_iter([("resourceLogs", Json::Array(Vec::new()))])
}

/// Sends an export without records. No fact is stored, but the service records the delivery, so the
/// answer shows whether deliveries can be stored.
async fn logs(client: &Client, name: &'static str, export: LogsRequest) -> DoctorCheck {
    match client.ingest_logs(&export).await {
        Ok(_) => DoctorCheck::ok(name, "received"),
        Err(error) if error.is_denied() => {
            DoctorCheck::absent(name, "this token may not send; senders use an ingest token")
        }
        // In protobuf, the service has no word for its store; and one that hangs answers nothing in time.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::StoreUnavailable
                    | ErrorKind::Unavailable { status: 503 }
                    | ErrorKind::TimedOut
            ) =>
        {
            DoctorCheck::failed(name, error.to_string(), STORE_MEND)
        }
        Err(error) => DoctorCheck::failed(name, error.to_string(), "svc capture"),
    }
}

/// Checks that the search index of the service goes on.
fn searching(counts: &CaptureCounts) -> DoctorCheck {
    const NAME: &str = "search";
    let Some(search) = &counts.search else {
        return DoctorCheck::absent(NAME, "off");
    };
    let found = search_index(search);
    match &search.obstacle {
        None => DoctorCheck::ok(NAME, found),
        Some(_) => DoctorCheck::warning(
            NAME,
            found,
            "make room on the disk of SVC_SEARCH_PATH, or let its folder be written; capture goes on \
             without it",
        ),
    }
}

/// Checks what has arrived from each source. A source that was never set up is not a failure.
fn captured(counts: &CaptureCounts) -> Vec<DoctorCheck> {
    let now = Clock::system().now();
    let last = |sources: &[CaptureSource]| {
        let counts = sources
            .iter()
            .filter_map(|source| counts.sources.get(&Open::Known(*source)));
        // An export without records counts as a delivery, but stores nothing.
        counts.filter_map(|count| count.last_stored_at).max()
    };
    let arrived = |name, sources: &[CaptureSource], install: &str| match last(sources) {
        Some(at) => DoctorCheck::ok(name, format!("last fact {}", relative(at, now))),
        None => DoctorCheck::warning(name, "nothing stored yet", install),
    };
    let forge = [
        CaptureSource::ForgePush,
        CaptureSource::ForgePullRequest,
        CaptureSource::ForgeCi,
        CaptureSource::ForgeRepository,
        CaptureSource::ForgeOther,
    ];
    let calls = counts.sources.iter().filter(|(_, of)| {
        let calls = of.facts.get(&Open::Known(FactTable::InferenceCalls));
        calls.is_some_and(|calls| calls.stored > 0)
    });
    let calls: Vec<CaptureSource> = calls
        .filter_map(|(source, _)| source.known().copied())
        .collect();
    let hints = SHELL.capture_hints(counts).into_iter();
    let hints = hints.map(|hint| DoctorCheck::warning("telemetry", hint.found, hint.mend));
    let pending = counts
        .pending_halves
        .and_then(|pending| SHELL.pending_halves(pending));
    let mut checks = vec![
        match pending.filter(|_| calls.is_empty()) {
            Some(pending) => DoctorCheck::ok("model calls", format!("waiting: {pending}")),
            None => arrived(
                "model calls",
                &calls,
                "svc install claude-code --calls, or svc install litellm",
            ),
        },
        arrived(
            "agents' events",
            &[CaptureSource::Logs],
            "svc install claude-code --print",
        ),
        arrived(
            "CI",
            &[CaptureSource::Ci, CaptureSource::ForgeCi],
            "svc install github-actions --print",
        ),
        webhooks(counts, last(&forge), now),
    ];
    checks.extend(hints);
    checks
}

/// Checks webhooks. A wrong secret shows as refused deliveries.
fn webhooks(counts: &CaptureCounts, last: Option<Instant>, now: Instant) -> DoctorCheck {
    let answers = counts.answers.iter();
    let of_forges = answers.filter(|(path, _)| path.starts_with("/ingest/forge"));
    let refused: u64 = of_forges
        .filter_map(|(_, by_status)| by_status.get(&401))
        .sum();
    match (refused, last) {
        (0, Some(at)) => DoctorCheck::ok("webhooks", format!("last fact {}", relative(at, now))),
        (0, None) => DoctorCheck::warning(
            "webhooks",
            "nothing stored yet",
            "svc install github --print",
        ),
        (refused, _) => DoctorCheck::failed(
            "webhooks",
            format!("signed with another secret since the service started: {refused}"),
            "set the forge's webhook secret to the service's SVC_FORGE_WEBHOOK_SECRET: svc install github --print",
        ),
    }
}
