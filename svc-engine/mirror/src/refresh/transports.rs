//! Fetches from real servers, good and bad.

use std::net::{IpAddr, TcpListener};
use std::time::Instant as Moment;

use secrecy::SecretString;
use svc_engine_fact::testing::processes;
use svc_engine_store::testing::Backend;
use svc_model::repository::RepositoryHost;

use super::tests::{Service, refreshed};
use super::*;
use crate::remote::AllowedHosts;
use crate::testing::git_server::{Answer, CERTIFICATE, Daemon, Http};

const ZEROS: &str = "0000000000000000000000000000000000000000";
/// A host that only the tests' resolver knows.
const HOST: &str = "forge.test";

/// Returns remotes that may be fetched from this machine, by its address and by [`HOST`].
fn remotes() -> Remotes {
    let hosts = ["127.0.0.1", HOST].map(str::to_owned).into();
    let token = SecretString::from("token-token-token");
    let tokens = [(RepositoryHost::new(HOST).unwrap(), token)].into();
    Remotes::new(AllowedHosts::Listed(hosts), tokens).resolving_with(Arc::new(|name, _| {
        if name == HOST {
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        } else {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }))
}

fn service() -> Service {
    service_with(|_| {})
}

fn service_with(configure: impl FnOnce(&mut MirrorConfig)) -> Service {
    Service::start_with(Backend::Sqlite, |config| {
        config.remotes = remotes();
        configure(config);
    })
    .unwrap()
}

/// Pushes a stamped commit and returns its id.
fn prepare(service: &Service) -> String {
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.forge.push();
    head
}

fn refresh_from(service: &Service, url: &str, head: &str) -> Option<RefreshOutcome> {
    service.deliver(ZEROS, head, |push| push.clone_url = url.to_owned());
    let outcome = service.refresh();
    assert!(processes::folder_is_left(service.database.folder()));
    outcome
}

fn failure(outcome: Option<RefreshOutcome>) -> (MirrorFailure, String) {
    match outcome {
        Some(RefreshOutcome::Failed(reason, detail, Some(_))) => (reason, detail),
        other => panic!("{other:?}"),
    }
}

/// Returns a URL of this machine with [`HOST`] in place of the address.
fn by_name(url: &str) -> String {
    url.replace("127.0.0.1", HOST)
}

#[test]
fn a_git_daemon_is_reached_by_address_and_by_pinned_name() {
    let service = service();
    let head = prepare(&service);
    let daemon = Daemon::start(service.forge.folder());
    let url = daemon.url("forge.git");
    assert_eq!(refresh_from(&service, &url, &head), refreshed(1, 0));
    assert_eq!(
        refresh_from(&service, &by_name(&url), &head),
        refreshed(0, 1)
    );
    let (reason, detail) = failure(refresh_from(&service, &daemon.url("missing.git"), &head));
    assert_eq!(reason, MirrorFailure::FetchFailed);
    assert!(detail.starts_with("fatal: "), "{detail}");
}

#[test]
fn a_virtual_host_is_requested_by_its_name() {
    let service = service();
    let head = prepare(&service);
    let folder = service.forge.folder().to_owned();
    std::fs::create_dir(folder.join(HOST)).unwrap();
    std::fs::rename(
        folder.join("forge.git"),
        folder.join(HOST).join("forge.git"),
    )
    .unwrap();
    let interpolated = format!("--interpolated-path={}/%H%D", folder.display());
    let daemon = Daemon::start_with(&folder, &[&interpolated]);
    let url = by_name(&daemon.url("forge.git"));
    assert_eq!(refresh_from(&service, &url, &head), refreshed(1, 0));
}

#[test]
fn a_git_http_server_is_reached_by_address_and_by_pinned_name() {
    let service = service();
    let head = prepare(&service);
    let http = Http::start(Answer::Git(service.forge.folder().to_owned()));
    let url = http.url("forge.git");
    let with_user = url.replace("http://", "http://user:password@");
    assert_eq!(refresh_from(&service, &with_user, &head), refreshed(1, 0));
    assert_eq!(
        refresh_from(&service, &by_name(&url), &head),
        refreshed(0, 1)
    );
    let requests = http.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    for request in requests {
        // Over plain http, neither the user info from the URL nor the host's token is sent.
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn a_private_repository_is_read_over_tls_with_the_token_of_its_host() {
    let mut service = service();
    let head = prepare(&service);
    let folder = service.forge.folder().to_owned();
    // x-access-token:token-token-token
    let expected = "Basic eC1hY2Nlc3MtdG9rZW46dG9rZW4tdG9rZW4tdG9rZW4=";
    let https = Http::start_tls(Answer::Authorized(expected.to_owned(), folder));
    let url = by_name(&https.url("forge.git"));
    let (_, detail) = failure(refresh_from(&service, &url, &head));
    assert!(
        detail.contains("certificate"),
        "nobody vouches for it: {detail}"
    );
    assert_eq!(https.requests().len(), 0);
    let certificate = service.database.folder().join("forge.test.pem");
    std::fs::write(&certificate, CERTIFICATE).unwrap();
    let Refresher { git, .. } = &mut service.refresher;
    *git = git.clone().trusting(&certificate);
    assert_eq!(refresh_from(&service, &url, &head), refreshed(1, 0));
    let requests = https.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.header("authorization"), Some(expected));
    }
    // Another host, which has no token of its own, gets none.
    let (_, detail) = failure(refresh_from(&service, &https.url("forge.git"), &head));
    assert!(detail.contains("could not read Username"), "{detail}");
}

#[test]
fn git_never_prompts_for_a_password() {
    let service = service();
    let head = prepare(&service);
    let folder = service.forge.folder().to_owned();
    let http = Http::start(Answer::Authorized("Basic nothing".to_owned(), folder));
    let start = Moment::now();
    let (reason, detail) = failure(refresh_from(&service, &http.url("forge.git"), &head));
    assert_eq!(reason, MirrorFailure::FetchFailed);
    assert!(detail.contains("could not read Username"), "{detail}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_redirect_is_not_followed() {
    let service = service();
    let head = prepare(&service);
    let elsewhere = Http::start(Answer::Git(service.forge.folder().to_owned()));
    let target = format!("http://{}", elsewhere.address());
    let http = Http::start(Answer::Redirect(target));
    let (reason, _) = failure(refresh_from(&service, &http.url("forge.git"), &head));
    assert_eq!(reason, MirrorFailure::FetchFailed);
    assert_eq!(http.requests().len(), 1);
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn a_server_that_sends_invalid_answers_is_a_failure() {
    let service = service();
    let head = prepare(&service);
    let answer = |kind: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        Answer::Bytes([head.as_bytes(), body.as_bytes()].concat())
    };
    let refs = "application/x-git-upload-pack-advertisement";
    for lie in [
        answer("text/html", "<html>log in</html>"),
        answer(refs, ""),
        answer(refs, "001e# service=git-upload-pack\n0000zzzz"),
        answer(refs, "001e# service=git-upload-pack\n0000fff0short"),
        answer(
            refs,
            &format!("001e# service=git-upload-pack\n0000004a{head} refs/heads/../../evil\0\n0000"),
        ),
        Answer::Bytes(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_vec()),
        Answer::Bytes(b"no http at all".to_vec()),
        Answer::Bytes(Vec::new()),
    ] {
        let http = Http::start(lie.clone());
        let outcome = refresh_from(&service, &http.url("forge.git"), &head);
        assert_eq!(failure(outcome).0, MirrorFailure::FetchFailed, "{lie:?}");
    }
    assert_eq!(service.observations().len(), 0);
    // The mirror is undamaged.
    let url = service.forge.folder().to_owned();
    let http = Http::start(Answer::Git(url));
    let outcome = refresh_from(&service, &http.url("forge.git"), &head);
    assert_eq!(outcome, refreshed(1, 0));
}

#[test]
fn a_server_that_hangs_or_never_ends_is_abandoned_at_the_deadline() {
    let service = service_with(|config| config.deadline = Duration::from_millis(1_500));
    let head = prepare(&service);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\
                  \r\n001e# service=git-upload-pack\n0000"
        .to_vec();
    let trickle = Http::start(Answer::Endless(start, Duration::from_millis(20)));
    let quiet = Http::start(Answer::Nothing);
    for url in [
        format!("git://{}/forge.git", silent.local_addr().unwrap()),
        quiet.url("forge.git"),
        trickle.url("forge.git"),
    ] {
        let began = Moment::now();
        let (reason, detail) = failure(refresh_from(&service, &url, &head));
        // What the trickle sends is not a protocol, so git may end it first.
        assert!(
            reason == MirrorFailure::FetchTimeout || url == trickle.url("forge.git"),
            "{url}: {detail}"
        );
        assert!(began.elapsed() < Duration::from_secs(30), "{url}");
    }
}

#[test]
fn a_server_that_stalls_in_the_middle_of_a_pack_is_abandoned_at_the_deadline() {
    // The real daemon, except that its answer is cut off.
    let service = service_with(|config| config.deadline = Duration::from_secs(2));
    let commits = service.forge.add_stamped(300, "s");
    let daemon = Daemon::start(service.forge.folder());
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay.local_addr().unwrap();
    let (done, finished) = channel::<()>();
    let upstream = daemon.address();
    let relaying = std::thread::spawn(move || {
        let (mut client, _) = relay.accept().unwrap();
        let mut server = std::net::TcpStream::connect(upstream).unwrap();
        let (mut to, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let up = std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let mut rest = std::io::Read::take(&mut server, 20_000);
        let passed = std::io::copy(&mut rest, &mut client).unwrap();
        // Until the other side has given up.
        let _ended = finished.recv();
        drop((client, server));
        let _ended = up.join();
        passed
    });
    let url = format!("git://{address}/forge.git");
    let outcome = refresh_from(&service, &url, &commits[299]);
    assert_eq!(failure(outcome).0, MirrorFailure::FetchTimeout);
    drop(done);
    assert_eq!(relaying.join().unwrap(), 20_000);
}

#[test]
fn odd_names_in_a_repository_are_only_names() {
    let service = service();
    let head = prepare(&service);
    let tree = {
        let blob = service
            .forge
            .run_with(&["hash-object", "-w", "--stdin"], "x");
        let names = [
            "-rf",
            "$(touch pwned)",
            "a\tb",
            "caf\u{e9}",
            "\u{202e}",
            ".gitmodules",
        ];
        let entries: Vec<String> = names
            .iter()
            .map(|name| format!("100644 blob {blob}\t{name}\0"))
            .collect();
        service.forge.run_with(&["mktree", "-z"], &entries.concat())
    };
    let odd = service
        .forge
        .run(&["commit-tree", "-p", &head, "-m", "odd\u{1b}[2J", &tree]);
    service.forge.stamp(&odd, &["odd \\u001b[2J"]);
    for name in [
        "refs/heads/--upload-pack=touch",
        "refs/heads/$(id)",
        "refs/heads/a'b\"c",
        "refs/heads/caf\u{e9}",
        "refs/notes/svcx",
    ] {
        service.forge.run(&["update-ref", name, &odd]);
    }
    service
        .forge
        .run(&["symbolic-ref", "refs/heads/link", "refs/heads/main"]);
    service.forge.push();
    let daemon = Daemon::start(service.forge.folder());
    let outcome = refresh_from(&service, &daemon.url("forge.git"), &odd);
    assert_eq!(outcome, refreshed(2, 0));
    let sessions: Vec<String> = service
        .seen()
        .into_iter()
        .map(|(_, session)| session)
        .collect();
    assert!(sessions.contains(&"odd \u{1b}[2J".to_owned()));
}
