//! One repository from its first branch to its merged pull requests, as a forge would report it:
//! real commits over git's own protocol, signed webhooks, calls, decisions and runs. Every number
//! below was counted by hand, as the text beside it explains.
//!
//! The repository is `own/app`, number 7, and is renamed to `own/new` before the last push. Each
//! text is one line of words that no other text has, so two texts are similar only by the words
//! that they share.
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
//! The forge shows no ref that leads to `H`. Until `H` is fetched by its id, it is unknown whether
//! it contains any of the commits.
//!
//! | Call | Session | Model | Wrote | Decided |
//! |---|---|---|---|---|
//! | `one` | `s1` | `m1` | PAGER | accepted |
//! | `two` | `s2` | `m2` | PARSER | accepted |
//! | `three` | `s2` | `m2` | LEXER | - |
//! | `four` | `s3` | `m1` | NET | accepted |
//! | `five` | `s4` | `m3` | nothing of this | rejected |
//!
//! So nine files are attributed: by a note where the commit has one, or else by a guess.
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

mod commits;
mod history;
mod lifecycle;
mod merges;
mod models;
mod shell;
mod work;

use harness::forge::Forge;
use harness::http::Request;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::Value;
use svc_engine::clock::Clock;

on_both_backends! {
    every_number_of_a_real_repository_matches_the_count_by_hand,
}

const PAGER: &str = "pager window first last item page";

/// Nine words of four letters: 44 characters, 41 runs of four.
const PARSER: &str = "able bake cake dare earn fade gate hale idle";

/// Its first seven words: 34 characters, whose 31 runs of four are all in PARSER.
const SHORTER: &str = "able bake cake dare earn fade gate";

const LEXER: &str = "lexer token next peek char skip";

const NET: &str = "socket listen accept close read write";

/// How much of PARSER remained where SHORTER is.
const REMAINED: f64 = 31.0 / 41.0;

/// How similar the call that wrote PARSER is to a file with SHORTER.
const SIMILAR: f64 = 7.0 / 9.0;

fn read(server: &Server, path: &str) -> Value {
    let reply = server.try_send(&Request::get(path).bearer(OPERATOR_TOKEN));
    let reply = reply.expect("an answer");
    assert_eq!(reply.status, 200, "{path}\n{}", reply.text());
    serde_json::from_str(&reply.text()).expect("JSON")
}

fn every_number_of_a_real_repository_matches_the_count_by_hand(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let forge = Forge::start(&server);
    work::deliver(&server);
    let commits = history::play(&forge);
    work::check(&server, &commits);
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

    // Pull request 3 is merged last, when no further push would bring its head. So the service must
    // request it by its id. Until then, it is unknown for every commit whether it was merged.
    let fork_head = (8, commits.fork_head.as_str());
    forge.merged(3, fork_head, &commits.base, &commits.fork_squashed);
    forge.eventually("the head of the fork is fetched", || {
        let membership = &lifecycle()["merge_durability"]["membership"];
        membership.get("ancestry_check_failed").is_none()
    });

    commits::check(&server, &commits);
    models::check(&read(&server, &format!("/v1/reports/model-outcomes?{scope}"))["report"]);
    lifecycle::check(&lifecycle());
    merges::check_history(&server);
    shell::check(&server, &commits);

    // One line for each refresh, none of which failed. The head was requested by its id, and found.
    // It can be read before git has ended, which the line waits for.
    for line in ["mirror.heads_fetched", "attributions_derived"] {
        forge.eventually(line, || server.log().contains(line));
    }
    let log = server.log();
    assert!(!log.contains("attributions.not_derived"), "{log}");
}
