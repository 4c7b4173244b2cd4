use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use svc_client::Client;
use svc_client::model::evidence::Part;
use tempfile::TempDir;

#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../../svc-client/examples/resume.rs"]
mod example;

/// How long a service may take to start, or to stop.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A service with its own home.
pub(super) struct Service {
    home: TempDir,
    url: String,
    child: Child,
}

impl Service {
    pub(super) fn start() -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"))
    }

    /// Starts a service on what is stored in a home already.
    pub(super) fn start_in(home: TempDir) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let child = svc(home.path())
            .args(["serve", "--listen", &address])
            .env("SVC_RETRIEVAL_SESSION_ID", "svc-demo")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("svc starts");
        let url = format!("http://{address}");
        Self { home, url, child }
    }

    /// Returns a client without a token, or with one of those that the service generated.
    pub(super) fn client(&self, token: Option<&str>) -> Client {
        let builder = Client::builder(&*self.url);
        let builder = match token {
            Some(name) => builder.token(self.secret(name)),
            None => builder,
        };
        builder.build().expect("a client")
    }

    fn secret(&self, name: &str) -> String {
        let file = self.home.path().join(".local/share/svc/svc.secrets.env");
        let secrets = std::fs::read_to_string(file).expect("the private file");
        let line = secrets
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        let quoted = line.expect("a generated secret");
        quoted.trim_matches('\'').to_owned()
    }

    pub(super) async fn wait_until_healthy(&self) {
        let start = Instant::now();
        while let Err(error) = self.client(None).health().await {
            assert!(
                error.is_unavailable() && start.elapsed() < PATIENCE,
                "{error}"
            );
        }
    }

    /// Returns the owner's home folder.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Kills the service, as a power failure would.
    pub(super) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Runs a command that asks this service as its operator.
    fn run(&self, arguments: &[&str]) -> Output {
        svc(self.home.path())
            .args(arguments)
            .env("SVC_URL", &self.url)
            .env("SVC_TOKEN", self.secret("SVC_OPERATOR_TOKEN"))
            .output()
            .expect("svc runs")
    }

    /// Asks the service to stop, and returns its exit code.
    pub(super) fn stop(&mut self) -> Option<i32> {
        let signalled = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(signalled.is_ok_and(|status| status.success()));
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already, as in most tests.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the program, with nothing configured but its home.
pub(super) fn svc(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

#[tokio::test]
async fn an_agent_resumes_a_session_of_the_demo() {
    let mut service = Service::start();
    service.wait_until_healthy().await;
    let planted = service.run(&["demo", "--small"]);
    assert!(
        planted.status.success(),
        "{}",
        String::from_utf8_lossy(&planted.stderr)
    );

    let agent = service.client(Some("SVC_RETRIEVAL_TOKEN"));
    let items = example::resume(&agent, "half-open window").await.unwrap();
    // The best part and its surroundings: the file that was read before, and the edit after.
    assert!(items.len() >= 4, "{items:#?}");
    assert!(
        items
            .iter()
            .any(|item| matches!(item.part.known(), Some(Part::ToolCall { .. })))
    );
    assert!(
        items
            .iter()
            .any(|item| matches!(item.part.known(), Some(Part::ToolCallResponse { .. })))
    );
    assert!(items.iter().any(|item| match item.part.known() {
        Some(Part::Text { content }) => content.to_string_lossy().contains("A half-open window"),
        _ => false,
    }));
    // An agent reads within its grant, and may not read counts.
    assert!(agent.facts().await.unwrap_err().is_denied());

    let facts = service
        .client(Some("SVC_OPERATOR_TOKEN"))
        .facts()
        .await
        .unwrap();
    assert_eq!(facts.tables.inference_calls.visible, 4);
    assert_eq!(service.stop(), Some(0));
}
