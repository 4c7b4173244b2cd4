//! A commit whose answer is lost is neither lost nor repeated.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicUsize};
use std::thread;

use svc_model::capture::CaptureSource;

use super::*;

/// What the network loses of the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loses {
    /// The commit itself: the server never sees it.
    Commit,
    /// The answer: the server commits.
    Answer,
}

/// A network between the store and its server. It loses a commit when asked to.
#[derive(Clone, Default)]
struct Network(Arc<AtomicU8>);

const NOTHING: u8 = 0;
const COMMIT: u8 = 1;
const ANSWER: u8 = 2;
const NEXT_ANSWER: u8 = 3;

impl Network {
    /// Returns a port that leads to a server.
    fn to(&self, host: String, port: u16) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let network = self.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let server = TcpStream::connect((host.as_str(), port)).unwrap();
                network.connect(
                    client.try_clone().unwrap(),
                    server.try_clone().unwrap(),
                    true,
                );
                network.connect(server, client, false);
            }
        });
        own
    }

    /// Carries bytes in one direction until something is lost.
    fn connect(&self, mut from: TcpStream, mut to: TcpStream, is_question: bool) {
        let network = Arc::clone(&self.0);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let bytes = &buffer[..count];
                let is_commit = bytes.windows(7).any(|window| window == b"COMMIT\0");
                let lost = match network.load(Ordering::SeqCst) {
                    COMMIT if is_question && is_commit => true,
                    NEXT_ANSWER if !is_question => true,
                    ANSWER if is_question && is_commit => {
                        network.store(NEXT_ANSWER, Ordering::SeqCst);
                        false
                    }
                    _ => false,
                };
                if lost {
                    network.store(NOTHING, Ordering::SeqCst);
                }
                if lost || to.write_all(bytes).is_err() {
                    break;
                }
            }
            for end in [from, to] {
                // The other direction may have closed it already.
                drop(end.shutdown(Shutdown::Both));
            }
        });
    }

    fn lose(&self, loses: Loses) {
        let next = match loses {
            Loses::Commit => COMMIT,
            Loses::Answer => ANSWER,
        };
        self.0.store(next, Ordering::SeqCst);
    }
}

fn delivery(store: &Store, number: u128) -> Delivery {
    Delivery {
        facts: vec![Append::InferenceCall(Box::new(
            store.encode(call(number).build(), at(0)),
        ))],
        counted: Some(DeliveryCounts::new(CaptureSource::Gateway, at(7))),
        ..Delivery::default()
    }
}

#[rstest]
fn a_commit_with_a_lost_answer_is_carried_out_once(
    #[values(Loses::Commit, Loses::Answer)] loses: Loses,
) {
    let database = database!(Backend::Postgres);
    drop(database.open("acme"));
    let DatabaseUrl::Postgres(options) = database.url() else {
        panic!("the URL of a server");
    };
    let network = Network::default();
    let port = network.to(options.get_host().to_owned(), options.get_port());
    let options = options.as_ref().clone().host("127.0.0.1").port(port);
    let store = Store::open_with_given_moments(&StoreConfig {
        url: DatabaseUrl::Postgres(Box::new(options)),
        org_id: OrgId::new("acme").unwrap(),
        migrate: true,
        readers: 1,
    })
    .unwrap();
    let deliver = |number| store.append_now(delivery(&store, number)).unwrap();
    assert_eq!(deliver(1), [Outcome::Stored(id(1))]);

    network.lose(loses);
    assert_eq!(
        deliver(2),
        [Outcome::Stored(id(2))],
        "the sender gets its answer"
    );
    assert_eq!(network.0.load(Ordering::SeqCst), NOTHING);
    let worked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&worked);
    network.lose(loses);
    let work = store.writer.run_blocking(move |transaction| {
        counted.fetch_add(1, Ordering::SeqCst);
        transaction.add_captured(&CaptureTotals::delivery(CaptureSource::Ci, at(8)))?;
        transaction::count_alone(transaction)
    });
    work.unwrap();
    let tries = worked.load(Ordering::SeqCst);
    assert_eq!(tries, if loses == Loses::Commit { 2 } else { 1 });
    // Nobody knows whether uncounted work was committed, so it is not repeated.
    let counted = Arc::clone(&worked);
    network.lose(loses);
    let work = store.writer.run_blocking(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    assert!(work.is_err());
    assert_eq!(worked.load(Ordering::SeqCst), tries + 1);
    assert_eq!(deliver(3), [Outcome::Stored(id(3))]);

    assert_eq!(count(&store, FactTable::InferenceCalls).total, 3);
    let mut captured = store.snapshot_now().capture_totals().unwrap();
    let mut deliveries = |source| captured.of(source).deliveries;
    assert_eq!(deliveries(CaptureSource::Gateway), 3);
    assert_eq!(deliveries(CaptureSource::Ci), 1);
    let epochs = database.rows("SELECT CAST(COUNT(*) AS TEXT) FROM writers", 1);
    assert_eq!(epochs, [["1"]], "the writer continues where it was");
}
