//! From the commit of a squashed pull request to its Sessions: over HTTP, in the shell, in the
//! console, and for an agent.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Receipt, Webhook};
use harness::git::Repository;
use harness::git_server::Daemon;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};
use svc_model::json::Json;

use crate::cli::{done, svc};
use crate::console::{open, signed_in};
use crate::mcp::agent::{Agent, TRANSPORTS};

on_both_backends! {
    a_squash_leads_to_the_sessions_of_its_pull_request_everywhere,
}

/// How long the service may take to read the notes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A pull request of two commits that was squashed.
struct Squashed {
    commits: [String; 2],
    squash: String,
    // It serves the repository.
    _daemon: Daemon,
}

fn squashed(server: &Server) -> Squashed {
    let repository = Repository::create();
    let work = repository.folder().join("work");
    let write = |name: &str, message: &str| {
        fs::write(work.join(name), format!("{name}\n")).expect("a file");
        repository.run(&["add", "-A"]);
        repository.commit(message)
    };
    let base = repository.commit("base");
    repository.run(&["checkout", "-q", "-b", "work"]);
    let commits = [write("a", "one"), write("b", "two")];
    for (commit, session) in commits.iter().zip(["s", "t"]) {
        repository.stamp(commit, &[session]);
    }
    repository.run(&["update-ref", "refs/pull/16/head", &commits[1]]);
    repository.run(&["checkout", "-q", "main"]);
    repository.run(&["merge", "-q", "--squash", "work"]);
    let squash = repository.commit("Work (#16)");
    repository.push();
    let daemon = Daemon::start(repository.folder());
    let described = json!({
        "id": 7, "full_name": "own/repo", "clone_url": daemon.url("forge.git"),
    });
    let send = |event: &str, path: &str, body: &Value| {
        let reply = server.send(&Webhook::new(event, body).to(path));
        assert!(Receipt::of(&reply).stored, "{}", reply.text());
    };
    for (name, after) in [("work", &commits[1]), ("main", &squash)] {
        let push = json!({
            "ref": format!("refs/heads/{name}"), "before": base, "after": after,
            "deleted": false, "forced": false, "repository": described,
        });
        send("push", "/ingest/forge/push", &push);
    }
    let merge = json!({
        "action": "closed",
        "pull_request": {
            "number": 16, "merged": true, "merged_at": "2026-02-03T04:05:06Z",
            "merge_commit_sha": squash,
            "head": {"ref": "work", "sha": commits[1], "repo": described},
            "base": {"ref": "main", "sha": base},
        },
        "repository": described,
    });
    send("pull_request", "/ingest/forge/pull-request", &merge);
    let begin = Instant::now();
    loop {
        let facts = server.read_json("/v1/facts");
        let read = dig(&facts, "tables.session_commit_observations.visible");
        if read == Some(&Json::from(2_i64)) {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{facts:?}");
        thread::sleep(Duration::from_millis(50));
    }
    Squashed {
        commits,
        squash,
        _daemon: daemon,
    }
}

fn a_squash_leads_to_the_sessions_of_its_pull_request_everywhere(backend: Backend) {
    let mut configuration = Configuration::default();
    for name in ["SVC_ENABLE_CONSOLE", "SVC_ENABLE_MCP"] {
        configuration.variables.insert(name.into(), "true".into());
    }
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let Squashed {
        commits: [one, two],
        squash,
        ..
    } = &squashed(&server);

    let shown = done(&svc(&server, &["commit", squash]));
    let expected = format!(
        "\n  through pull request 16 (squash, merged 2026-02-03)\n    session s at {one}  (1 observed)\n    \
         session t at {two}  (1 observed)\n"
    );
    assert!(shown.contains(&expected), "{shown}");
    assert!(
        shown.ends_with("\nnext:\n  svc session s\n  svc session t\n"),
        "{shown}"
    );

    let cookies = signed_in(&server);
    let page = open(&server, &cookies, &format!("/console/commit?sha={squash}")).text();
    for expected in [
        "No Session was observed at it.",
        "through pull request 16 (squash, merged 2026-02-03)",
        "/console/session?session_id=s",
        "/console/session?session_id=t",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }

    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, OPERATOR_TOKEN);
        let dossier = agent.structured("commit_dossier", json!({"sha": squash}));
        assert_eq!(dossier["attributed"], false);
        let of = &dossier["repos"][0];
        assert_eq!(of["observed_sessions"], json!([]));
        assert!(of.get("named_commits").is_none(), "{of}");
        let link = &of["through_pull_requests"][0];
        assert_eq!(link["pr_number"], 16);
        assert_eq!(link["merge_method"], "squash");
        assert_eq!(link["merged_at"], "2026-02-03T04:05:06Z");
        for (place, session) in ["s", "t"].into_iter().enumerate() {
            let commit = &link["commits"][place];
            assert_eq!(commit["observed_sessions"][0]["session_id"], session);
        }
        // A commit that is not of a pull request has no such members.
        let plain = agent.structured("commit_dossier", json!({"sha": one}));
        assert!(
            plain["repos"][0].get("through_pull_requests").is_none(),
            "{plain}"
        );
    }
}
