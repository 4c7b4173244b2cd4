//! One repository from its first branch to its merged pull requests, as a forge would tell of it: real
//! commits over git's own protocol, signed webhooks, calls, decisions and runs. Every number below was
//! counted by hand, and how is written beside it.
//!
//! The repository is `own/app`, number 7, and is renamed to `own/new` before the last push. Each text
//! is one line of words that no other text has, so two texts are similar by the words they share alone.
//!
//! | Commit | Parent | Adds | Brought by | Note |
//! |---|---|---|---|---|
//! | `base` | - | a README | - | - |
//! | `F` | `base` | `pager.py`: PAGER | push of branch `feat` | `s1` |
//! | `R1` | `base` | `parser.py`: PARSER | push of `rework` | `s2` |
//! | `R2` | `R1` | `lexer.py`: LEXER | the same push | - |
//! | `Q` | `base` | `parser.py`: SHORTER, `lexer.py`: LEXER | forced push of `rework` | `s2`, late |
//! | `S` | `base` | `src/pager.py`: PAGER | push of `main`: pull request 1, squashed, the file moved | - |
//! | `Q'` | `S` | as `Q` | push of `main`: pull request 2, rebased | - |
//! | `N` | `Q'` | `net.py`: NET | push of `main`: pull request 3, squashed | `s3`, late |
//! | `H` | `base` | `net.py`: NET | nothing: the head of pull request 3, of a fork | - |
//!
//! The forge shows no ref that leads to `H`. Until it is fetched by its id, nobody can tell whether `H`
//! holds any of the commits.
//!
//! | Call | Session | Model | Wrote | Decided |
//! |---|---|---|---|---|
//! | `one` | `s1` | `m1` | PAGER | accepted |
//! | `two` | `s2` | `m2` | PARSER | accepted |
//! | `three` | `s2` | `m2` | LEXER | - |
//! | `four` | `s3` | `m1` | NET | accepted |
//! | `five` | `s4` | `m3` | nothing of this | rejected |
//!
//! So these files are attributed, nine in all: a note where the commit has one, else a guess.
//!
//! | Commit | File | Call | How | Score |
//! |---|---|---|---|---|
//! | `F` | `pager.py` | one | note | 1 |
//! | `R1` | `parser.py` | two | note | 1 |
//! | `R2` | `lexer.py` | three | guess | 1 |
//! | `Q` | `parser.py` | two | note | 7/9 |
//! | `Q` | `lexer.py` | three | note | 1 |
//! | `S` | `src/pager.py` | one | guess | 1 |
//! | `Q'` | `parser.py` | two | guess | 7/9 |
//! | `Q'` | `lexer.py` | three | guess | 1 |
//! | `N` | `net.py` | four | note | 1 |

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Receipt, Webhook, ci_outcome, log_record, logs};
use harness::git::{Repository, git};
use harness::git_server::Daemon;
use harness::http::Request;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};
use svc_engine::clock::Clock;

use crate::cli::{done, svc};

on_both_backends! {
    every_number_of_a_real_repository_is_the_one_counted_by_hand,
}

/// How long the service may take to read what was pushed.
const PATIENCE: Duration = Duration::from_mins(1);

const PAGER: &str = "pager window first last item page";
/// Nine words of four letters: 44 characters, 41 runs of four.
const PARSER: &str = "able bake cake dare earn fade gate hale idle";
/// Its first seven words: 34 characters, whose 31 runs of four are all in PARSER.
const SHORTER: &str = "able bake cake dare earn fade gate";
const LEXER: &str = "lexer token next peek char skip";
const NET: &str = "socket listen accept close read write";

/// What remained of PARSER where SHORTER stands.
const REMAINED: f64 = 31.0 / 41.0;
/// How similar the call that wrote PARSER is to a file with SHORTER.
const SIMILAR: f64 = 7.0 / 9.0;

const IDENTITY: &str = "repository_provider=github&repository_host=github.com&repository_id=7";

struct Commits {
    base: String,
    feature: String,
    first: String,
    second: String,
    forced: String,
    squashed: String,
    rebased: String,
    fork_squashed: String,
    fork_head: String,
}

/// A forge with one repository, and the service that it tells of it.
struct Forge<'s> {
    server: &'s Server,
    repository: Repository,
    daemon: Daemon,
}

impl Forge<'_> {
    /// Writes files and commits them.
    fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let work = self.repository.folder().join("work");
        for (path, text) in files {
            let path = work.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, format!("{text}\n")).expect("a file");
        }
        self.repository.run(&["add", "-A"]);
        self.repository.commit(message)
    }

    fn checkout(&self, branch: &str, at: &str) {
        self.repository.run(&["checkout", "-q", "-B", branch, at]);
    }

    fn described(&self, name: &str) -> Value {
        json!({"id": 7, "full_name": name, "clone_url": self.daemon.url("forge.git")})
    }

    fn hook(&self, event: &str, route: &str, body: &Value) -> Receipt {
        let route = format!("/ingest/forge/{route}");
        Receipt::of(&self.server.send(&Webhook::new(event, body).to(&route)))
    }

    /// Pushes what there is, and tells of one branch of it.
    fn push(
        &self,
        name: &str,
        branch: &str,
        (before, after): (&str, &str),
        forced: bool,
    ) -> Receipt {
        self.repository.push();
        let body = json!({
            "ref": format!("refs/heads/{branch}"), "before": before, "after": after,
            "deleted": false, "forced": forced, "repository": self.described(name),
        });
        self.hook("push", "push", &body)
    }

    /// Tells of a pull request against `main` at `base`. Its head is of a repository with this number.
    fn pull_request(&self, action: &str, number: u32, head: (u32, &str), more: &Value) {
        let (head_number, head_sha) = head;
        let base = self.repository.run(&["rev-parse", "base"]);
        let mut body = json!({
            "action": action,
            "pull_request": {
                "number": number,
                "head": {"ref": "topic", "sha": head_sha,
                    "repo": {"id": head_number, "full_name": format!("any/r{head_number}")}},
                "base": {"ref": "main", "sha": base},
            },
            "repository": self.described("own/app"),
        });
        if head_number == 7 {
            body["pull_request"]["head"]["repo"] = self.described("own/app");
        }
        for (name, value) in more.as_object().expect("members") {
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        body["pull_request"][name] = value.clone();
                    }
                }
                value => body[name] = value.clone(),
            }
        }
        self.hook("pull_request", "pull-request", &body);
    }

    fn merged(&self, number: u32, head: (u32, &str), commit: &str) {
        let merge = json!({"pull_request": {
            "merged": true, "merged_at": "2026-02-03T04:05:06Z", "merge_commit_sha": commit,
        }});
        self.pull_request("closed", number, head, &merge);
    }

    fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "{what}\n{}", self.server.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until so many Sessions were observed at commits.
    fn observed(&self, count: u64) {
        self.eventually(&format!("{count} observations"), || {
            let facts = read(self.server, "/v1/facts");
            facts["tables"]["session_commit_observations"]["total"] == count
        });
    }

    /// Plays the history of the table above.
    fn play(&self) -> Commits {
        let repository = &self.repository;
        let base = self.commit("base", &[("README", "read me")]);
        repository.run(&["tag", "base"]);
        let zeros = "0".repeat(40);

        self.checkout("feat", &base);
        let feature = self.commit("a pager", &[("pager.py", PAGER)]);
        repository.stamp(&feature, &["s1"]);
        self.push("own/app", "feat", (&zeros, &feature), false);
        self.observed(1);

        self.checkout("rework", &base);
        let first = self.commit("a parser", &[("parser.py", PARSER)]);
        let second = self.commit("a lexer", &[("lexer.py", LEXER)]);
        repository.stamp(&first, &["s2"]);
        self.push("own/app", "rework", (&base, &second), false);
        self.observed(2);
        self.pull_request("opened", 2, (7, &second), &json!({}));

        // The branch begins anew, with a shorter parser.
        self.checkout("rework", &base);
        let forced = self.commit("both", &[("parser.py", SHORTER), ("lexer.py", LEXER)]);
        self.push("own/app", "rework", (&second, &forced), true);
        let moved = json!({"before": second, "after": forced});
        self.pull_request("synchronize", 2, (7, &forced), &moved);

        // Pull request 1 is squashed, and its file lies elsewhere by then.
        self.checkout("main", &base);
        let squashed = self.commit("a pager (#1)", &[("src/pager.py", PAGER)]);
        self.push("own/app", "main", (&base, &squashed), false);
        self.merged(1, (7, &feature), &squashed);

        // Pull request 2 is rebased.
        repository.run(&["cherry-pick", &forced]);
        let rebased = repository.run(&["rev-parse", "HEAD"]);
        self.push("own/app", "main", (&squashed, &rebased), false);
        self.merged(2, (7, &forced), &rebased);

        let renamed = json!({
            "action": "renamed", "changes": {"repository": {"name": {"from": "app"}}},
            "repository": self.described("own/new"),
        });
        self.hook("repository", "repository", &renamed);

        // The head of pull request 3 is there, and no ref leads to it.
        self.checkout("away", &base);
        let fork_head = self.commit("net", &[("net.py", NET)]);
        self.checkout("main", &rebased);
        let fork_squashed = self.commit("net (#3)", &[("net.py", NET)]);
        // The first note that comes late.
        repository.stamp(&forced, &["s2"]);
        repository.push();
        repository.run(&["branch", "-D", "away"]);
        git(
            &repository.bare(),
            &["update-ref", "-d", "refs/heads/away"],
            "",
        );
        let last = (rebased.as_str(), fork_squashed.as_str());
        self.push("own/new", "main", last, false);
        self.observed(3);
        // The second comes after its push, which is delivered again.
        repository.stamp(&fork_squashed, &["s3"]);
        assert!(!self.push("own/new", "main", last, false).stored);
        self.observed(4);
        Commits {
            base,
            feature,
            first,
            second,
            forced,
            squashed,
            rebased,
            fork_squashed,
            fork_head,
        }
    }
}

fn read(server: &Server, path: &str) -> Value {
    let reply = server.try_send(&Request::get(path).bearer(OPERATOR_TOKEN));
    let reply = reply.expect("an answer");
    assert_eq!(reply.status, 200, "{path}\n{}", reply.text());
    serde_json::from_str(&reply.text()).expect("JSON")
}

/// Stores what the agents did.
fn work(server: &Server) {
    for (name, session, model, wrote) in [
        ("one", "s1", "m1", PAGER),
        ("two", "s2", "m2", PARSER),
        ("three", "s2", "m2", LEXER),
        ("four", "s3", "m1", NET),
        ("five", "s4", "m3", "nothing of this was kept"),
    ] {
        // A tool call without a text, so that a decision can name it.
        let function = json!({"name": "Write", "arguments": "{}"});
        let tool = json!({"id": format!("tool-{name}"), "type": "function", "function": function});
        let answer = json!({"role": "assistant", "content": wrote, "tool_calls": [tool]});
        let call = Call::new(session, name).model(model).answer(answer);
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let decided = |session: &str, name: &str, decision: &str| {
        let attributes = json!({
            "agent": "claude-code", "session.id": session, "tool_use_id": format!("tool-{name}"),
            "decision": decision, "explicit": true, "file_path": "a.py",
        });
        log_record("svc.tool_decision", &attributes)
    };
    let kept = json!({
        "agent": "claude-code", "session.id": "s1", "tool_use_id": "tool-one",
        "file_path": "pager.py", "applied_text": PAGER, "observed_file_text": PAGER,
        "external_lines_added": 2, "external_lines_removed": 0,
    });
    let gone = json!({
        "agent": "claude-code", "session.id": "s2", "tool_use_id": "tool-two",
        "file_path": "parser.py", "applied_text": PARSER, "observed_file_text": "",
    });
    let retried = json!({
        "agent": "claude-code", "session.id": "s2", "file_path": "parser.py",
        "tool_name": "Write", "rejected_call_id": "tool-zero", "accepted_call_id": "tool-two",
    });
    let records = [
        decided("s1", "one", "accept"),
        decided("s2", "two", "accept"),
        decided("s3", "four", "accept"),
        decided("s4", "five", "reject"),
        log_record("svc.edit_observation", &kept),
        log_record("svc.edit_observation", &gone),
        log_record("svc.retry_linkage", &retried),
    ];
    let records = logs(&records).to_string().into_bytes();
    assert_eq!(server.deliver("/v1/logs", records).status, 200);
}

/// Reports the runs of CI: `F` passed, `Q` failed, and nobody checked the others.
fn check(server: &Server, commits: &Commits) {
    for (run, commit, result) in [
        ("run-1", &commits.feature, "passed"),
        ("run-2", &commits.forced, "failed"),
    ] {
        let mut outcome = ci_outcome(run);
        for (name, value) in [
            ("provider", "ci_a"),
            ("repo", "own/app"),
            ("repository_provider", "github"),
            ("repository_host", "github.com"),
            ("repository_id", "7"),
            ("commit_sha", commit),
            ("branch", "topic"),
            ("workflow_name", "Build"),
            ("result", result),
        ] {
            outcome[name] = json!(value);
        }
        let outcome = outcome.to_string().into_bytes();
        assert_eq!(server.deliver("/ingest/ci", outcome).status, 200);
    }
}

fn every_number_of_a_real_repository_is_the_one_counted_by_hand(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let repository = Repository::create();
    let forge = Forge {
        daemon: Daemon::start(repository.folder()),
        repository,
        server: &server,
    };
    work(&server);
    let commits = forge.play();
    check(&server, &commits);
    let day = 24 * 60 * 60 * 1_000_000;
    let moment = |days: i64| {
        let now = Clock::system().now().microseconds();
        let moment = svc_model::time::Instant::from_microseconds(now + days * day);
        moment.expect("a moment").to_string()
    };
    let (start, end) = (moment(-1), moment(1));
    let scope = format!("cohort_start={start}&cohort_end={end}&as_of={end}");
    let lifecycle = || {
        let path = format!("/v1/reports/accepted-work-lifecycle?{scope}");
        read(&server, &path)["report"].clone()
    };

    // Pull request 3 is merged last, when no push follows that would bring its head. So the service has
    // to ask for it, by its id: before that nobody can tell of any commit whether it was merged.
    forge.merged(3, (8, &commits.fork_head), &commits.fork_squashed);
    forge.eventually("the head of the fork is fetched", || {
        let membership = &lifecycle()["merge_durability"]["membership"];
        membership.get("ancestry_check_failed").is_none()
    });

    commits_are(&server, &commits);
    models_are(&read(&server, &format!("/v1/reports/model-outcomes?{scope}"))["report"]);
    lifecycle_is(&lifecycle());
    retention_is(&server);
    shell_shows(&server, &commits);

    // One line for each refresh, and none that failed. That the head is there says that it was asked for
    // by its id: no ref leads to it. A git that is ended once the head has arrived leaves no line of it.
    let line = "attributions_derived";
    forge.eventually(line, || server.log().contains(line));
    let log = server.log();
    assert!(!log.contains("attributions_not_derived"), "{log}");
}

/// Checks what the commit query says of each commit.
fn commits_are(server: &Server, commits: &Commits) {
    let evidence = |commit: &str| {
        read(
            server,
            &format!("/query/commit/{commit}?explain=true&{IDENTITY}"),
        )
    };
    let calls = |repository: &Value| -> Vec<(String, String, f64, u64)> {
        let calls = repository["inference_calls"].as_array().expect("calls");
        let mut calls: Vec<_> = calls
            .iter()
            .map(|call| {
                assert_eq!(call["relationship"], "inferred_call_to_file");
                let text = |name: &str| call[name].as_str().expect("a text").to_owned();
                (
                    text("session_id") + " " + call["model"].as_str().expect("a model"),
                    text("attribution_source"),
                    call["similarity_score"].as_f64().expect("a score"),
                    call["attributed_files"].as_u64().expect("a count"),
                )
            })
            .collect();
        // Calls stand by their ids, which say nothing here.
        calls.sort_by(|left, right| left.0.cmp(&right.0).then(left.2.total_cmp(&right.2)));
        calls
    };
    let call = |who: &str, how: &str, score: f64| (who.to_owned(), how.to_owned(), score, 1);
    let (one, four) = ("s1 m1", "s3 m1");
    let of_s2 = "s2 m2";
    let (note, guess) = ("git_notes", "jaccard");
    // Each with its calls, the decisions about them, its observed Sessions, and the Sessions of calls
    // that were not observed at it. Only calls one, two and four were decided about and are found.
    for (commit, found, decisions, observed, unobserved) in [
        (
            &commits.feature,
            vec![call(one, note, 1.0)],
            1,
            vec!["s1"],
            0,
        ),
        (
            &commits.first,
            vec![call(of_s2, note, 1.0)],
            1,
            vec!["s2"],
            0,
        ),
        // Call three, about which nobody decided.
        (&commits.second, vec![call(of_s2, guess, 1.0)], 0, vec![], 1),
        (
            &commits.forced,
            vec![call(of_s2, note, SIMILAR), call(of_s2, note, 1.0)],
            1,
            vec!["s2"],
            0,
        ),
        (&commits.squashed, vec![call(one, guess, 1.0)], 1, vec![], 1),
        (
            &commits.rebased,
            vec![call(of_s2, guess, SIMILAR), call(of_s2, guess, 1.0)],
            1,
            vec![],
            // Both calls are of one Session.
            1,
        ),
        (
            &commits.fork_squashed,
            vec![call(four, note, 1.0)],
            1,
            vec!["s3"],
            0,
        ),
    ] {
        let evidence = evidence(commit);
        let repository = &evidence["repos"][0];
        assert_eq!(calls(repository), found, "{evidence:#}");
        assert_eq!(repository["decisions"], decisions, "{evidence:#}");
        let sessions = repository["observed_sessions"].as_array().expect("a list");
        let sessions: Vec<_> = sessions.iter().map(|it| &it["session_id"]).collect();
        assert_eq!(sessions, observed, "{evidence:#}");
        assert_eq!(
            repository["session_commit_unobserved"], unobserved,
            "{evidence:#}"
        );
        assert_eq!(evidence["attributed"], !observed.is_empty(), "{evidence:#}");
        assert_eq!(repository["repo"], "own/app");
        assert_eq!(
            repository["observed_repo_slugs"],
            json!(["own/app", "own/new"])
        );
        // Every section of every diff was read.
        assert_eq!(evidence.get("inference_skipped"), None, "{evidence:#}");
    }
    // No push brought these two: the first was there before, the second is of the fork.
    for commit in [&commits.base, &commits.fork_head] {
        let none = json!({"commit_sha": commit, "attributed": false});
        assert_eq!(evidence(commit), none);
    }
    // Without a selector, the repository is the one that pushed a branch to it.
    let anywhere = read(
        server,
        &format!("/query/commit/{}?explain=true", commits.rebased),
    );
    assert_eq!(anywhere, evidence(&commits.rebased));
}

/// Checks the report of models.
fn models_are(report: &Value) {
    let row = |model: usize, name: &str| report["rows"][model][name].clone();
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(3));
    let counts = |model: usize| {
        let names = [
            "completions",
            "attributed_inference_calls",
            "ci_linked",
            "ci_passed",
            "explicit_accepts",
            "explicit_rejects",
            "session_commit_unobserved",
        ];
        names.map(|name| row(model, name).as_u64().expect("a count"))
    };
    // m1: calls one and four, both attributed. Of its observed commits F and N only F was checked, and
    // passed. Both calls were accepted. The guess at S is observed by nobody.
    assert_eq!(counts(0), [2, 2, 1, 1, 2, 0, 1]);
    // m2: calls two and three. Of R1 and Q only Q was checked, and failed. The guesses at R2 and at Q'
    // are of one Session each.
    assert_eq!(counts(1), [2, 2, 1, 0, 1, 0, 2]);
    // m3: call five, which nothing came of, and which was rejected.
    assert_eq!(counts(2), [1, 0, 0, 0, 0, 1, 0]);
    // Three files of m1, all alike. Six of m2: four alike, two at 7/9.
    let similarity = |model| row(model, "mean_similarity").as_f64().expect("a number");
    assert!((similarity(0) - 1.0).abs() < 1e-9);
    assert!((similarity(1) - (4.0 + 2.0 * SIMILAR) / 6.0).abs() < 1e-9);
    assert!(similarity(2).abs() < 1e-9);
    // What became of the two observed edits, each of an accepted call.
    assert_eq!(row(0, "fates"), json!({"unmodified": 1}));
    assert_eq!(row(0, "explicit_accept_fates"), json!({"unmodified": 1}));
    assert_eq!(
        row(0, "fates_with_external_changes"),
        json!({"unmodified": 1})
    );
    assert_eq!(row(1, "fates"), json!({"deleted": 1}));
    assert_eq!(row(1, "explicit_accept_fates"), json!({"deleted": 1}));
    assert_eq!(row(1, "fates_with_external_changes"), json!({}));
    assert_eq!(row(1, "ci_failures_by_workflow"), json!({"Build": 1}));
    assert_eq!(
        row(2, "explicit_rejects_by_agent_harness"),
        json!({"claude-code": 1})
    );
    for (model, observations) in [2, 2, 0].into_iter().enumerate() {
        let ids = row(model, "session_commit_observation_ids");
        assert_eq!(ids.as_array().map(Vec::len), Some(observations));
    }
    // Of attributed calls, those with a checked observed commit: one of m1 (call one, of F); both of m2,
    // as Q holds a file of each. Those with an explicit decision: one and four; two. Eligible are those
    // with either.
    let funnel = |model: usize| {
        let names = [
            "completions_total",
            "attributed",
            "ci_linked",
            "has_decision",
        ];
        let funnel = &report["signal_funnel"][model];
        let counts = names.map(|name| funnel[name].as_u64().expect("a count"));
        (
            counts,
            funnel["training_row_eligible"].as_u64().expect("a count"),
        )
    };
    assert_eq!(funnel(0), ([2, 2, 1, 2], 2));
    assert_eq!(funnel(1), ([2, 2, 2, 1], 2));
    assert_eq!(funnel(2), ([1, 0, 0, 0], 0));
    // One repository alone says nothing of others. Its cells: 1 of 1 for m1, 0 of 1 for m2.
    let stratification = &report["stratification"];
    assert_eq!(stratification[0]["status"], "not_enough_repos");
    assert_eq!(stratification[0]["checked_repos"], 1);
    assert_eq!(stratification[0]["session_commit_unobserved"], 3);
    assert_eq!(stratification[1]["status"], "not_checkable");
    // s1, s2 and s3 accepted something and reached a commit; s4 accepted nothing.
    let reached = json!({"no_accepted_decision": 1, "reached_a_commit": 3});
    assert_eq!(report["abandonment"]["derivation_skipped"], reached);
    // Seven commits were pushed near some call: F, R1, Q and N have a note that fits, R2, S and Q' a
    // guess.
    let shares = report["attribution_share"].as_array().expect("rows");
    assert_eq!(shares.len(), 1);
    let share = |name: &str| shares[0][name].as_u64().expect("a count");
    assert_eq!(share("agent_plausible_commits"), 7);
    assert_eq!(share("git_notes_attributed"), 4);
    assert_eq!(share("jaccard_attributed"), 3);
    assert_eq!(share("unattributed"), 0);
    let part = shares[0]["git_notes_share"].as_f64().expect("a number");
    assert!((part - 4.0 / 7.0).abs() < 1e-9);
    assert_eq!(shares[0]["repo"], "own/app");
    assert_eq!(report["attribution_alerts"], json!([]));
    // Everything is of one repository, and no run contradicts another.
    for skipped in ["fate_skipped", "ci_skipped", "repository_skipped"] {
        assert_eq!(report[skipped], json!({}), "{skipped}");
    }
}

/// Checks the report of accepted work.
fn lifecycle_is(report: &Value) {
    let counts = |panel: &str, names: &[&str]| -> Vec<u64> {
        let count = |name: &&str| report[panel][*name].as_u64().expect("a count");
        names.iter().map(count).collect()
    };
    // Calls one, two and four were accepted and each is of an observed commit. One is in pull request 1,
    // two in pull request 2; four's commit N is the squashed one, and no head holds it.
    let accepted = &report["accepted_work"];
    assert_eq!(accepted["accepted_calls"], 3);
    for (stage, count, denominator) in [
        ("attributed", 3, 3),
        ("pull_request_membership", 2, 3),
        // F passed. Of two's observed commits, R1 was not checked and Q failed.
        ("ci_linked", 2, 2),
        ("ci_verdict", 2, 2),
    ] {
        assert_eq!(accepted[stage]["count"], count, "{stage}");
        assert_eq!(accepted[stage]["denominator"], denominator, "{stage}");
    }
    assert_eq!(
        (&accepted["ci_passed"], &accepted["ci_failed"]),
        (&json!(1), &json!(1))
    );
    // Edges of accepted calls that nobody observed: S with s1, Q' with s2.
    assert_eq!(
        accepted["skips"],
        json!({"pull_request_membership_unavailable": 1, "session_commit_unobserved": 2})
    );
    let edits = [
        "observations",
        "eligible",
        "derived_fates",
        "unmodified",
        "partially_modified",
    ];
    assert_eq!(counts("edit_retention", &edits), [2, 2, 2, 1, 0]);
    let external = [
        "deleted",
        "known_external_line_counts",
        "external_lines_added",
        "external_lines_removed",
    ];
    assert_eq!(counts("edit_retention", &external), [1, 1, 2, 0]);
    merges_are(&report["merge_durability"]);
    let sessions = ["eligible_sessions", "committed", "abandoned", "in_flight"];
    assert_eq!(counts("session_attrition", &sessions), [3, 3, 0, 0]);
    assert_eq!(report["session_attrition"]["attribution_unavailable"], 0);
    assert_eq!(
        report["session_attrition"]["skips"],
        json!({"no_accepted_decision": 1, "reached_a_commit": 3})
    );
    let rework: Vec<(&str, u64, u64)> = report["rework"]
        .as_array()
        .expect("components")
        .iter()
        .map(|it| {
            let count = |name: &str| it[name].as_u64().expect("a count");
            let name = it["name"].as_str().expect("a name");
            (name, count("count"), count("denominator"))
        })
        .collect();
    assert_eq!(
        rework,
        [
            ("explicit_rejects", 1, 4),
            ("retry_linkages", 1, 1),
            ("modified_or_deleted_edits", 1, 2),
            ("external_line_changes", 1, 1),
            ("abandoned_sessions", 0, 3),
            // Of the attributed commits F and Q were checked.
            ("failed_ci_resolutions", 1, 2),
        ]
    );
    let strata: Vec<(&str, &str, u64)> = report["strata"]
        .as_array()
        .expect("strata")
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().expect("a text");
            let count = it["accepted_calls"].as_u64().expect("a count");
            (text("dimension"), text("value"), count)
        })
        .collect();
    assert_eq!(
        strata,
        [
            ("agent_harness", "claude-code", 3),
            ("model", "m1", 2),
            ("model", "m2", 1),
            ("repository", "own/app", 3),
            ("workflow", "ci_a|||Build", 2),
        ]
    );
    // Call four's only observed commit was not checked.
    assert_eq!(report["stratum_skips"], json!({"missing_workflow": 1}));
    assert_eq!(report["repository_skipped"], json!({}));
}

/// Checks what remained of attributed files. Of the nine, five are at observed commits: those of F, R1,
/// Q and N. The others are three edges: R2, S and Q'.
///
/// | File | In | At the head | At the merge |
/// |---|---|---|---|
/// | `F` `pager.py` | 1: it is the head | 1 | 1: the file was moved as it is |
/// | `R1` `parser.py` | 2: `R2`, its first head, holds it | 31/41 | 31/41 |
/// | `Q` `parser.py`, `lexer.py` | 2: it is the head | 1, 1 | 1, 1 |
/// | `N` `net.py` | none: no head holds a squashed commit | | |
fn merges_are(merges: &Value) {
    for (name, count) in [
        ("attributed_file_candidates", 5),
        ("unique_pull_request_membership", 4),
        ("scored_rows", 4),
    ] {
        assert_eq!(merges[name], count, "{name}");
    }
    assert_eq!(
        merges["membership"],
        json!({"attribution_without_merge": 1})
    );
    assert_eq!(
        merges["scoring_skips"],
        json!({"session_commit_unobserved": 3})
    );
    scores_are(merges);
}

/// Checks the scores 31/41, 1, 1, 1, at the head and at the merge.
fn scores_are(scores: &Value) {
    for side in ["head", "merge"] {
        let distribution = &scores[side]["distribution"];
        assert_eq!(distribution["count"], 4);
        for (name, expected) in [
            ("mean", (REMAINED + 3.0) / 4.0),
            ("median", 1.0),
            // Three tenths of the way from the first to the second.
            ("p10", REMAINED + 0.3 * (1.0 - REMAINED)),
            ("p90", 1.0),
        ] {
            let value = distribution[name].as_f64().expect("a number");
            assert!((value - expected).abs() < 1e-9, "{side} {name}: {value}");
        }
        for (place, threshold) in [0.8, 0.9, 1.0].into_iter().enumerate() {
            let counted = &scores[side]["thresholds"][place];
            let expected = json!({"threshold": threshold, "below": 1, "total": 4, "rate": 0.25});
            assert_eq!(*counted, expected, "{side}");
        }
    }
}

/// Checks the operator's report of all history, which has the same merges.
fn retention_is(server: &Server) {
    let text = done(&svc(
        server,
        &["report", "merge-retention", "--explain", "--json"],
    ));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    for (name, count) in [
        ("attributed_file_candidates", 5),
        ("candidates_joined_to_merge", 4),
        ("scored_rows", 4),
        ("joined_pull_requests", 2),
        ("scored_pull_requests", 2),
        // One's file of F; two's of R1 and of Q. Call three's was decided about by nobody.
        ("explicit_accept_rows", 3),
    ] {
        assert_eq!(report[name], count, "{name}");
    }
    assert_eq!(
        report["membership"],
        json!({"attribution_without_merge": 1})
    );
    assert_eq!(
        report["scoring_skips"],
        json!({"session_commit_unobserved": 3})
    );
    assert_eq!(report["unchecked_pull_requests"], json!([]));
    // Every pushed commit adds to code, and each file has a call.
    assert_eq!(report["attribution_skips"], json!({}));
    scores_are(&report);
}

/// Checks that the shell shows guesses apart, and passes on the bytes of the service.
fn shell_shows(server: &Server, commits: &Commits) {
    let shown = done(&svc(server, &["commit", &commits.rebased]));
    let evidence = read(
        server,
        &format!("/query/commit/{}?explain=true", commits.rebased),
    );
    let id = |score: f64| {
        let calls = evidence["repos"][0]["inference_calls"]
            .as_array()
            .expect("calls");
        let call = calls.iter().find(|it| it["similarity_score"] == score);
        call.expect("a call")["inference_call_id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    let line = |score: f64| {
        format!(
            "    call {}  litellm/openai/m2  session=s2  attribution=jaccard score={score:.2} \
             files=1 (inferred call/file)\n",
            id(score)
        )
    };
    let (mut first, mut second) = (line(SIMILAR), line(1.0));
    if id(1.0) < id(SIMILAR) {
        std::mem::swap(&mut first, &mut second);
    }
    assert_eq!(
        shown,
        format!(
            "{}: no Session observed\n\
             \nown/app (github/github.com/7)\n\
             \x20 also named own/new\n\
             \x20 inferred from what calls wrote; a guess, not an observation:\n\
             {first}{second}\
             \x20   session_commit_unobserved: 1\n\
             \x20   decisions: 1\n\
             \nnext:\n  svc session s2\n",
            commits.rebased
        )
    );
    for commit in [&commits.feature, &commits.rebased, &commits.base] {
        let path = format!("/query/commit/{commit}?explain=true");
        let answer = server.try_send(&Request::get(path).bearer(OPERATOR_TOKEN));
        let answer = answer.expect("an answer").text();
        let passed_on = done(&svc(server, &["commit", commit, "--json"]));
        assert_eq!(passed_on.trim_end(), answer.trim_end());
    }
    let investigated = done(&svc(server, &["investigate", "run-2"]));
    let mut lines = investigated.lines();
    let observed = lines.any(|line| line.split_whitespace().eq(["Sessions", "1", "observed"]));
    assert!(observed, "{investigated}");
    assert!(
        investigated
            .contains("  inferred from what calls wrote; a guess, not an observation:\n    call "),
        "{investigated}"
    );
    assert_eq!(
        investigated.matches("attribution=git_notes score=").count(),
        2
    );
}
