//! How the shell finds this machine's service, whatever port it listens on.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use super::first_use::{PATIENCE, Service, svc};

/// Runs a command whose environment names no service, and returns what it printed.
fn run(service: &Service, arguments: &[&str]) -> (Option<i32>, String) {
    let output = svc(service.home())
        .args(arguments)
        .output()
        .expect("svc runs");
    let printed = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&printed).into_owned(),
    )
}

/// Returns how many services announce their addresses beside the database.
fn announcements(service: &Service) -> usize {
    let Ok(entries) = std::fs::read_dir(service.home().join(".local/share/svc")) else {
        return 0;
    };
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(".address"))
        .count()
}

/// Waits until the service can be found, because it answers a moment earlier.
fn wait_until_found(service: &Service) {
    let begin = Instant::now();
    while announcements(service) == 0 {
        assert!(begin.elapsed() < PATIENCE, "it is not found");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether the shell recognises this as the URL of this machine's service.
fn takes(service: &Service, url: &str) -> bool {
    let (status, printed) = run(service, &["install", "otel-collector", "--print"]);
    assert_eq!(status, Some(0), "{printed}");
    printed.contains(&format!("{url}/")) || printed.contains(&format!("{url}\n"))
}

#[tokio::test]
async fn the_last_started_service_is_found_until_it_dies() {
    let mut service = Service::start();
    service.wait_until_healthy().await;
    wait_until_found(&service);
    let url = service.url().to_owned();
    let port = url.rsplit_once(':').expect("a port").1.to_owned();
    assert!(takes(&service, &url));
    for arguments in [
        &["me"][..],
        &["me", "--url", &url],
        &["me", "--url", &format!("localhost:{port}")],
        &["me", "--url", &format!("http://localhost:{port}")],
    ] {
        let (status, printed) = run(&service, arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {printed}");
        assert!(printed.contains("operator"), "{printed}");
    }
    let (status, printed) = run(&service, &["login", &format!("localhost:{port}")]);
    assert_eq!(status, Some(0), "{printed}");
    assert!(
        printed.contains(&url),
        "it is kept by its address: {printed}"
    );
    let logout = ["logout", "--server", &format!("localhost:{port}")];
    let (status, printed) = run(&service, &logout);
    assert_eq!(status, Some(0), "{printed}");

    service.kill();
    assert_eq!(announcements(&service), 1, "nobody was there to remove it");
    assert!(!takes(&service, &url));
    assert!(takes(&service, "http://127.0.0.1:8000"));
}

#[tokio::test]
async fn a_service_that_is_stopped_leaves_no_address() {
    let mut service = Service::start();
    service.wait_until_healthy().await;
    wait_until_found(&service);
    assert!(takes(&service, service.url()));
    assert_eq!(service.stop(), Some(0));
    assert_eq!(announcements(&service), 0);
    assert!(takes(&service, "http://127.0.0.1:8000"));
}

#[tokio::test]
async fn a_service_of_a_postgresql_database_is_found_too() {
    let service = Service::start();
    service.wait_until_healthy().await;
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join(".local/share/svc");
    std::fs::create_dir_all(&data).expect("a folder");
    // As a server on PostgreSQL announces itself.
    let path = data.join(format!("postgres.{}.address", "0".repeat(32)));
    let mut announced = OpenOptions::new();
    let announced = announced
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path);
    let mut announced = announced.expect("a file");
    announced.lock().expect("a lock");
    announced
        .write_all(service.url().as_bytes())
        .expect("it is written");
    // Tokens that were generated for another store are not sent to it.
    let generated = service.home().join(".local/share/svc/svc.secrets.env");
    std::fs::copy(generated, data.join("svc.secrets.env")).expect("a copy");
    let output = svc(home.path()).arg("doctor").output().expect("svc runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    let line = format!("ok       {}", service.url());
    assert!(shown.contains(&line), "{shown}");
    assert!(
        shown.contains(&format!("fix: svc login {}", service.url())),
        "{shown}"
    );
}

#[tokio::test]
async fn a_grant_to_a_token_that_the_running_service_lacks_is_a_warning() {
    let service = Service::start();
    service.wait_until_healthy().await;
    wait_until_found(&service);
    let grant = ["grant", "add", "nobody", "s", "--reason", "x"];
    let (code, printed) = run(&service, &grant);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("token_not_configured"), "{printed}");
}
