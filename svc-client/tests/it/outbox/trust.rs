//! An outbox that others can write to is not believed.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use svc_client::outbox::{Reason, RefusedDelivery};
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Outbox, OutboxError, OutboxLimits, SecretString};

use super::{call, client, files_ending, numbers, open, outbox};

fn signed(folder: &Path, secrets: &[&str]) -> Outbox {
    open(folder).signed(secrets.iter().map(|secret| SecretString::from(*secret)))
}

fn codes(outbox: &Outbox) -> Vec<String> {
    let code = |refused: RefusedDelivery| refused.reason.unwrap().code;
    outbox.refused().unwrap().into_iter().map(code).collect()
}

#[tokio::test]
async fn a_delivery_of_somebody_else_is_set_aside_until_a_person_takes_it() {
    let (folder, theirs) = outbox();
    theirs.put_blocking(call(1)).unwrap();
    signed(theirs.folder(), &["their token"])
        .put_blocking(call(2))
        .unwrap();
    let own = signed(&folder.path().join("own"), &["token", "machine"]);
    own.put_blocking(call(3)).unwrap();
    for name in files_ending(theirs.folder(), ".delivery") {
        fs::rename(theirs.folder().join(&name), own.folder().join(&name)).unwrap();
    }

    let server = FakeServer::start([Answer::stored()]);
    let drained = own.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (1, 2));
    assert_eq!(numbers(&server), [3]);
    assert_eq!(codes(&own), [Reason::UNSIGNED; 2]);

    // What was set aside is not taken by the way.
    assert_eq!(own.restore_refused().unwrap(), 2);
    let drained = own.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (0, 2));

    assert_eq!(own.restore_unsigned().unwrap(), 2);
    assert_eq!(own.restore_unsigned().unwrap(), 0);
    server.answer([Answer::stored(), Answer::stored()]);
    let drained = own.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (2, 0));
    assert_eq!(numbers(&server), [3, 1, 2]);
    assert_eq!(own.refused().unwrap(), []);
}

#[tokio::test]
async fn a_delivery_outlasts_a_token_while_another_key_stays() {
    let (_folder, outbox) = outbox();
    let before = signed(outbox.folder(), &["old token", "machine"]);
    before.put_blocking(call(1)).unwrap();
    let after = signed(outbox.folder(), &["new token", "machine"]);
    let server = FakeServer::start([Answer::stored()]);
    let drained = after.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (1, 0));
}

#[tokio::test]
async fn links_in_an_outbox_are_not_followed() {
    let (folder, outbox) = outbox();
    let foreign = folder.path().join("foreign");
    let content = "a file of the user's own";
    fs::write(&foreign, content).unwrap();
    let delivery = "00000000000000000007-24-00000000-0000-0000-0000-000000000007.delivery";
    for name in ["writers", "sender", "stopped", delivery] {
        let path = outbox.folder().join(name);
        drop(fs::remove_file(&path));
        symlink(&foreign, &path).unwrap();
    }
    let put = outbox.put_blocking(call(1));
    assert!(matches!(put, Err(OutboxError::Disk { .. })), "{put:?}");
    let server = FakeServer::start([]);
    let drained = outbox.drain(&client(&server)).await;
    assert!(matches!(drained, Err(OutboxError::Disk { .. })));
    assert_eq!(outbox.status().unwrap().stopped, None);
    for name in ["writers", "sender"] {
        fs::remove_file(outbox.folder().join(name)).unwrap();
    }
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (0, 1));
    assert_eq!(codes(&outbox), ["damaged_file"]);
    assert_eq!(fs::read_to_string(&foreign).unwrap(), content);
    assert_eq!(server.received(), []);
}

#[test]
fn a_folder_of_another_user_and_a_link_to_one_are_refused() {
    let (folder, outbox) = outbox();
    let link = folder.path().join("link");
    symlink(outbox.folder(), &link).unwrap();
    let opened = Outbox::open(&link, OutboxLimits::default());
    assert!(matches!(opened, Err(OutboxError::Disk { .. })));
    // Only root can give a folder away.
    if chown(outbox.folder(), Some(12_345), None).is_ok() {
        let opened = Outbox::open(outbox.folder(), OutboxLimits::default());
        assert!(matches!(opened, Err(OutboxError::Foreign { .. })));
    }
}
