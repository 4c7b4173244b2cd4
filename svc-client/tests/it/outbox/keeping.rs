//! What is put into an outbox is kept, privately and within limits.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use svc_client::model::ingest::{Capture, LogsRequest, PROTOBUF};
use svc_client::model::json::Json;
use svc_client::model::time::Instant;
use svc_client::outbox::{OutboxView, OutboxWork};
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Outbox, OutboxError, OutboxLimits};
use uuid::Uuid;

use super::{TOKEN, call, client, event, files, files_ending, number, numbers, open, outbox, run};

#[tokio::test]
async fn deliveries_are_sent_in_order_and_byte_for_byte() {
    let (_folder, outbox) = outbox();
    let given = Capture {
        id: Uuid::from_u128(7),
        observed_at: Instant::parse("2026-07-07T19:57:35Z").unwrap(),
    };
    let mut named = call(1);
    named.capture = Some(given);
    outbox.put(named).await.unwrap();
    let second = call(2);
    let id = outbox.put(&second).await.unwrap();
    outbox.put_blocking(run(3)).unwrap();
    outbox.put(&event(4)).await.unwrap();
    let in_protobuf = LogsRequest::Protobuf(b"\n\0\"call 5\"".to_vec());
    outbox.put(in_protobuf).await.unwrap();
    let server = FakeServer::start(vec![Answer::stored(); 5]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (5, 0));

    let received = server.received();
    let targets: Vec<_> = received
        .iter()
        .map(|request| request.target.as_str())
        .collect();
    assert_eq!(
        targets,
        [
            "/ingest/gateway",
            "/ingest/gateway",
            "/ingest/ci",
            "/v1/logs",
            "/v1/logs"
        ]
    );
    let types: Vec<_> = received
        .iter()
        .map(|request| request.header("content-type").unwrap())
        .collect();
    let json = "application/json";
    assert_eq!(types, [json, json, json, json, PROTOBUF]);
    let first: Vec<_> = received[..4].iter().map(number).collect();
    assert_eq!(first, [1, 2, 3, 4]);
    assert_eq!(received[4].body, b"\n\0\"call 5\"");
    assert_eq!(
        String::from_utf8_lossy(&received[0].body),
        r#"{"provider":"gateway_a","payload":{"number":1},"capture":{"id":"00000000-0000-0000-0000-000000000007","observed_at":"2026-07-07T19:57:35Z"}}"#
    );
    let capture = Json::parse(&received[1].body).unwrap();
    let capture = capture.as_object().unwrap().get("capture").unwrap();
    let capture = capture.as_object().unwrap();
    assert_eq!(capture.get("id").unwrap().as_str(), Some(&*id.to_string()));
    let observed_at = capture.get("observed_at").unwrap().as_str().unwrap();
    assert!(Instant::parse(observed_at).unwrap() > given.observed_at);
}

#[tokio::test]
async fn the_status_shows_what_waits_and_for_how_long() {
    let (_folder, outbox) = outbox();
    let status = outbox.status().unwrap();
    assert_eq!((status.waiting, status.waiting_bytes), (0, 0));
    assert_eq!((status.oldest_age, status.stopped), (None, None));
    outbox.put(call(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    outbox.put(call(2)).await.unwrap();
    let status = outbox.status().unwrap();
    let on_disk: u64 = files_ending(outbox.folder(), ".delivery")
        .iter()
        .map(|name| fs::metadata(outbox.folder().join(name)).unwrap().len())
        .sum();
    assert_eq!((status.waiting, status.waiting_bytes), (2, on_disk));
    assert!(status.oldest_age.unwrap() >= Duration::from_millis(20));
    assert!(status.oldest_age.unwrap() < Duration::from_mins(1));
}

#[tokio::test]
async fn a_view_shows_a_locked_outbox_and_who_holds_the_locks() {
    let (_folder, outbox) = outbox();
    outbox.put(call(1)).await.unwrap();
    let view = OutboxView::of(outbox.folder()).unwrap();
    assert_eq!(view.users(), []);
    let before = files(outbox.folder());
    let lock = |name| {
        let file = fs::File::create(outbox.folder().join(name)).unwrap();
        file.lock().unwrap();
        file
    };
    let (_adding, _sending) = (lock("writers"), lock("sender"));
    assert_eq!(view.status().unwrap().waiting, 1);
    assert_eq!(view.refused().unwrap(), []);
    let mut users = view.users();
    if cfg!(target_os = "linux") {
        let own = Some(std::process::id());
        assert_eq!((users[0].process, users[1].process), (own, own));
        let sending = users.pop().unwrap();
        assert_eq!(sending.work, OutboxWork::Sending);
    }
    assert_eq!(users.len(), 1);
    assert_eq!(users[0].work, OutboxWork::Adding);
    fs::remove_file(outbox.folder().join("sender")).unwrap();
    assert_eq!(files(outbox.folder()), before, "it leaves nothing behind");
}

#[test]
fn a_view_needs_an_existing_private_folder() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent");
    assert!(OutboxView::of(&absent).is_err());
    assert!(!absent.exists());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = OutboxView::of(&file).unwrap_err();
    assert!(matches!(error, OutboxError::Disk { .. }), "{error}");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
    let error = OutboxView::of(folder.path()).unwrap_err();
    assert!(matches!(error, OutboxError::Exposed { .. }), "{error}");
}

#[tokio::test]
async fn the_outbox_is_private_and_contains_no_token() {
    let (_folder, outbox) = outbox();
    for number in 1..=3 {
        outbox.put(call(number)).await.unwrap();
    }
    let server = FakeServer::start([Answer::text(422, ""), Answer::text(401, TOKEN)]);
    outbox.drain(&client(&server)).await.unwrap();
    let refused = outbox.folder().join("refused");
    let mut looked_at = 0;
    for folder in [outbox.folder(), &refused] {
        assert_eq!(mode(folder), 0o700);
        for name in files(folder).iter().filter(|name| *name != "refused") {
            let path = folder.join(name);
            assert_eq!(mode(&path), 0o600, "{name}");
            let content = fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&content).contains(TOKEN), "{name}");
            looked_at += 1;
        }
    }
    // Two that wait, one refused and its reason, `stopped`, and the two locks.
    assert_eq!(looked_at, 7);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_folder_that_others_can_access_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("outbox");
    fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    drop(open(&folder));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
    let error = Outbox::open(&folder, OutboxLimits::default()).unwrap_err();
    assert!(matches!(error, OutboxError::Exposed { path } if path == folder));
}

#[tokio::test]
async fn a_full_outbox_takes_nothing_more_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let limits = OutboxLimits {
        deliveries: 2,
        ..OutboxLimits::default()
    };
    let folder = folder.path().join("outbox");
    let outbox = Outbox::open(&folder, limits).unwrap();
    // Two handles together must not exceed the limit.
    let other = Outbox::open(&folder, limits).unwrap();
    outbox.put(call(1)).await.unwrap();
    other.put(call(2)).await.unwrap();
    for full in [&outbox, &other] {
        let error = full.put(call(3)).await.unwrap_err();
        let OutboxError::Full { deliveries, bytes } = error else {
            panic!("{error}");
        };
        assert_eq!(deliveries, 2);
        assert_eq!(bytes, outbox.status().unwrap().waiting_bytes);
        assert_eq!(
            error.to_string(),
            format!(
                "the delivery was not kept: with it, the outbox would exceed its limits; it holds \
                 2 deliveries of {bytes} bytes; make room, or raise the limits"
            )
        );
    }
    assert_eq!(files_ending(&folder, ".partial"), [""; 0]);

    // Refused deliveries count too: they are evidence, and they stay until a person acts.
    let server = FakeServer::start([Answer::text(422, ""), Answer::stored()]);
    outbox.drain(&client(&server)).await.unwrap();
    other.put(call(3)).await.unwrap();
    assert!(matches!(
        outbox.put(call(4)).await,
        Err(OutboxError::Full { .. })
    ));
    assert_eq!(outbox.restore_refused().unwrap(), 1);
    let server = FakeServer::start([Answer::stored(), Answer::stored()]);
    outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(numbers(&server), [1, 3]);
    outbox.put(call(4)).await.unwrap();
}

#[tokio::test]
async fn the_limit_of_bytes_is_enforced_when_putting() {
    let (_folder, outbox) = outbox();
    outbox.put(call(1)).await.unwrap();
    let bytes = outbox.status().unwrap().waiting_bytes;
    // The time in the file has no fraction if its microseconds are 0. With a fraction, it is seven
    // bytes longer.
    for (limit, fits) in [(2 * bytes + 14, true), (2 * bytes - 15, false)] {
        let folder = tempfile::tempdir().unwrap();
        let limits = OutboxLimits {
            bytes: limit,
            ..OutboxLimits::default()
        };
        let outbox = Outbox::open(folder.path().join("outbox"), limits).unwrap();
        outbox.put(call(1)).await.unwrap();
        let second = outbox.put(call(2)).await;
        match second {
            Ok(_) => assert!(fits),
            Err(OutboxError::Full { deliveries: 1, .. }) => assert!(!fits),
            Err(error) => panic!("{error}"),
        }
        assert!(outbox.status().unwrap().waiting_bytes <= limit);
    }
}

#[tokio::test]
async fn a_delivery_that_the_service_can_never_accept_is_refused_at_once() {
    let (_folder, outbox) = outbox();
    let mut infinite = call(1);
    infinite.payload = Json::parse(br#"{"price":NaN}"#).unwrap();
    let error = outbox.put(infinite).await.unwrap_err();
    assert!(matches!(error, OutboxError::Unwritable(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "the delivery was not kept: it contains something that JSON cannot express, such as a \
         number that is not finite"
    );
    let mut huge = call(1);
    let text = "x".repeat(25 * 1024 * 1024);
    huge.payload = Json::Object([("text", text)].into_iter().collect());
    let error = outbox.put(huge).await.unwrap_err();
    assert!(matches!(error, OutboxError::TooLarge), "{error}");
    assert_eq!(outbox.status().unwrap().waiting, 0);
}

#[tokio::test]
async fn deliveries_are_numbered_in_the_order_they_are_put() {
    let (_folder, outbox) = outbox();
    let mut ids = Vec::new();
    for number in 0..200 {
        ids.push(outbox.put(call(number)).await.unwrap());
    }
    let names = files_ending(outbox.folder(), ".delivery");
    let expected: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(place, id)| (format!("{place:020}"), format!("{id}.delivery")))
        .collect();
    let found: Vec<_> = names
        .iter()
        .map(|name| {
            let mut parts = name.splitn(3, '-');
            let place = parts.next().unwrap().to_owned();
            (place, parts.nth(1).unwrap().to_owned())
        })
        .collect();
    assert_eq!(found, expected);
}
