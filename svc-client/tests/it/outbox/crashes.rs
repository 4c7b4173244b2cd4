//! What a crash leaves behind, at every point where one can happen.

use std::fs::{self, File};
use std::path::Path;

use svc_client::Outbox;
use svc_client::testing::{Answer, FakeServer};

use super::{call, client, files, files_ending, number, numbers, open, outbox};

/// Returns a name in the form that the outbox uses.
fn name(sequence: u64, bytes: usize) -> String {
    format!("{sequence:020}-{bytes}-531f97ae-8872-41e7-8b99-d5840ab3cd2f")
}

#[tokio::test]
async fn an_abandoned_partial_file_is_removed_and_never_sent() {
    let (_folder, outbox) = outbox();
    outbox.put(call(1)).await.unwrap();
    let folder = outbox.folder().to_owned();
    drop(outbox);
    for (sequence, content) in [
        (7, ""),
        (8, r#"{"version":1,"route":"ingest_gateway","put_at":"#),
    ] {
        fs::write(folder.join(name(sequence, 300) + ".partial"), content).unwrap();
    }
    let outbox = open(&folder);
    assert_eq!(files_ending(&folder, ".partial"), [""; 0]);
    let server = FakeServer::start([Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(drained.acknowledged, 1);
    assert_eq!(numbers(&server), [1]);
}

#[test]
fn a_file_still_being_written_is_left_alone() {
    let (_folder, outbox) = outbox();
    let path = outbox.folder().join(name(7, 300) + ".partial");
    let writer = File::create(&path).unwrap();
    writer.try_lock().unwrap();
    let again = open(outbox.folder());
    assert!(path.exists());
    assert_eq!(again.status().unwrap().waiting, 0);
    drop(writer);
    drop(open(outbox.folder()));
    assert!(!path.exists());
}

#[tokio::test]
async fn an_acknowledged_delivery_that_was_not_removed_is_sent_again_unchanged() {
    let (_folder, outbox) = outbox();
    outbox.put(call(1)).await.unwrap();
    let file = &files_ending(outbox.folder(), ".delivery")[0];
    let file = outbox.folder().join(file);
    let content = fs::read(&file).unwrap();
    let server = FakeServer::start([Answer::stored(), Answer::stored()]);
    outbox.drain(&client(&server)).await.unwrap();
    assert!(!file.exists());
    fs::write(&file, content).unwrap();
    let again = open(outbox.folder());
    assert_eq!(again.drain(&client(&server)).await.unwrap().acknowledged, 1);
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, received[1].body);
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_without_blocking_the_queue() {
    let (_folder, outbox) = outbox();
    for number in 1..=3 {
        outbox.put(call(number)).await.unwrap();
    }
    let names = files_ending(outbox.folder(), ".delivery");
    let path = |index: usize| outbox.folder().join(&names[index]);
    let whole = fs::read(path(0)).unwrap();
    fs::write(path(0), &whole[..whole.len() - 1]).unwrap();
    let mut other = fs::read(path(1)).unwrap();
    other[0] = b'[';
    fs::write(path(1), &other).unwrap();
    let server = FakeServer::start([Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (1, 2));
    assert_eq!(numbers(&server), [3]);
    let refused = outbox.refused().unwrap();
    let reasons: Vec<_> = refused
        .iter()
        .map(|refused| &*refused.reason.as_ref().unwrap().code)
        .collect();
    assert_eq!(reasons, ["damaged_file", "damaged_file"]);
    assert_eq!(
        fs::read(&refused[0].path).unwrap(),
        &whole[..whole.len() - 1]
    );
}

#[tokio::test]
async fn an_unfinished_note_of_a_refusal_is_written_again() {
    let (_folder, outbox) = outbox();
    outbox.put(call(1)).await.unwrap();
    let stem = files_ending(outbox.folder(), ".delivery")[0].replace(".delivery", "");
    let refused = outbox.folder().join("refused");
    fs::write(refused.join(format!("{stem}.reason")), "{").unwrap();
    fs::write(refused.join(format!("{stem}.reason.new")), "{").unwrap();
    assert_eq!(outbox.refused().unwrap(), []);
    let server = FakeServer::start([Answer::text(422, "")]);
    outbox.drain(&client(&server)).await.unwrap();
    let refused = outbox.refused().unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason.as_ref().unwrap().code, "invalid");
}

#[tokio::test]
async fn the_order_survives_the_loss_of_the_sequence_file() {
    for lost in ["", "not a number", "00000000000000000000\n"] {
        let (_folder, outbox) = outbox();
        for number in 1..=3 {
            outbox.put(call(number)).await.unwrap();
        }
        fs::write(outbox.folder().join("writers"), lost).unwrap();
        let again = open(outbox.folder());
        again.put(call(4)).await.unwrap();
        outbox.put(call(5)).await.unwrap();
        assert_eq!(sent(&again).await, [1, 2, 3, 4, 5]);
    }
}

async fn sent(outbox: &Outbox) -> Vec<usize> {
    let server = FakeServer::start(vec![Answer::stored(); 9]);
    outbox.drain(&client(&server)).await.unwrap();
    server.received().iter().map(number).collect()
}

#[tokio::test]
async fn foreign_files_are_left_alone() {
    let (_folder, outbox) = outbox();
    let alien = [
        "README",
        "1-2-3.delivery",
        ".delivery",
        "x.partial",
        "a.delivery.partial",
    ];
    for name in alien {
        fs::write(outbox.folder().join(name), "mine").unwrap();
    }
    let again = open(outbox.folder());
    assert_eq!(again.status().unwrap().waiting, 0);
    assert_eq!(sent(&again).await, [0; 0]);
    let left = files(outbox.folder());
    assert!(alien.iter().all(|name| left.contains(&(*name).to_owned())));
}

#[tokio::test]
async fn a_disk_that_fails_is_an_error_that_names_the_file() {
    let (_folder, outbox) = outbox();
    fs::remove_dir_all(outbox.folder()).unwrap();
    let error = outbox.put(call(1)).await.unwrap_err();
    let path: &Path = &outbox.folder().join("writers");
    assert_eq!(
        error.to_string(),
        format!("cannot create {}", path.display())
    );
    assert!(outbox.status().is_err());
}
