#![doc = include_str!("week.md")]

mod agent;
mod commit;
mod console;
mod history;
mod route;
mod shell;
mod spend;
mod week;
mod work;

use std::collections::BTreeMap;

use harness::forge::Forge;
use harness::server::{Backend, Configuration, Server};
use serde_json::Value;
use svc_engine::clock::Clock;
use svc_model::time::Instant;

use self::week::Week;

on_both_backends! {
    a_week_is_the_same_over_http_in_the_shell_in_the_console_and_for_an_agent,
}

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// What is said of a repository that no fact names, and of a filter that selects no call.
const UNKNOWN_REPOSITORY: &str =
    "No fact names this repository, so no call of the last 7 days is known to have reached it.";
const EMPTY_SELECTION: &str = "No call of this selection was captured in the last 7 days.";

/// What every surface says first of the last days.
const SENTENCES: [(u32, &str); 2] = [
    (
        7,
        "Last 7 days: 13 calls in 10 Sessions by 3 people, 9 changes, 4 accepted, 6 in pushed commits \
         (1 by similarity, a guess), 5 merged, 1 reverted, 4 green, 1 red now, 1 without a verdict of \
         CI, 1 thrown away, 1 with no commit found, 1 not observable (no push was received near the \
         calls), 1 proposal rejected, $79.3579 at list price (1 call not priced).",
    ),
    (
        1,
        "Last 24 hours: 12 calls in 9 Sessions by 3 people, 8 changes, 3 accepted, 6 in pushed commits \
         (1 by similarity, a guess), 5 merged, 1 reverted, 4 green, 1 red now, 1 without a verdict of \
         CI, 1 thrown away, 1 with no commit found, 1 proposal rejected, $74.2374 at list price \
         (1 call not priced).",
    ),
];

/// Returns what a call writes: more than the words around it, which a commit lacks.
fn code(call: u32) -> String {
    let words = (0..40).map(|word| format!("w{call}_{word}"));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the moment so many microseconds from now.
fn moment(microseconds: i64) -> String {
    let now = Clock::system().now().microseconds();
    let moment = Instant::from_microseconds(now + microseconds);
    moment.expect("a moment").to_string()
}

fn read(server: &Server, path: &str) -> Value {
    let reply = server.read(path);
    assert_eq!(reply.status, 200, "{path}\n{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

/// Returns the entries of a list.
fn entries(list: &Value) -> &[Value] {
    list.as_array().expect("a list")
}

/// Returns the texts of a member of each entry of a list.
fn each<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    let texts = entries(list).iter();
    texts
        .map(|entry| entry[member].as_str().unwrap_or("unknown"))
        .collect()
}

/// Returns the counts among these members by name, without those that are 0.
fn some_counts<'v>(
    members: impl IntoIterator<Item = (&'v str, &'v Value)>,
) -> BTreeMap<String, i64> {
    let members = members.into_iter();
    let counts = members.filter_map(|(name, value)| Some((name.to_owned(), value.as_i64()?)));
    counts.filter(|(_, count)| *count != 0).collect()
}

fn a_week_is_the_same_over_http_in_the_shell_in_the_console_and_for_an_agent(backend: Backend) {
    let mut configuration = Configuration::default();
    for name in ["SVC_ENABLE_CONSOLE", "SVC_ENABLE_MCP"] {
        configuration.variables.insert(name.into(), "true".into());
    }
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let week = Week::read();
    work::deliver(&server, &week);
    let forge = Forge::start(&server);
    let commits = history::play(&forge);
    route::check(&server, &week, &commits);
    spend::check(&server, &week, &commits);
    shell::check(&server, &week);
    console::check(&server, &week);
    agent::check(&server, &week, &commits);
    commit::check(&server, &commits);
}
