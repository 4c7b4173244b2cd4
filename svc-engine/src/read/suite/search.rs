//! Search: what is found, where, and what is no longer.

use std::path::PathBuf;
use std::sync::Arc;

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::testing::builders::text;
use svc_engine_search::{ChangedFiles, SearchFile, SearchIndex, SearchPlace, StillFollower};
use svc_model::context::{ContextStatus, MaxBytes};
use svc_model::evidence::{Message, Part, Side};
use svc_model::id::UserId;
use svc_model::json;
use svc_model::search::{
    FilePath, SearchFilters, SearchKind, SearchLimit, SearchPart, SearchQuery, SearchRequest,
    SearchResult, SearchWord, search_text,
};

use super::*;

/// A stage with an index, which follows the store when it is told to.
struct SearchStage {
    stage: Stage,
    index: Arc<SearchIndex>,
    follower: StillFollower,
    resources: Resources,
    reach: Reach,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

/// Says that every commit changed one file.
struct OneFile;

impl ChangedFiles for OneFile {
    fn of(&mut self, _: &Lifetime, commits: &[CommitSha], _: &Deadline) -> Vec<(usize, String)> {
        let places = 0..commits.len();
        places
            .map(|place| (place, "lib/committed.rs".to_owned()))
            .collect()
    }
}

impl SearchStage {
    fn open(backend: Backend) -> Option<Self> {
        let stage = Stage::open(backend)?;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search.db");
        let file = Arc::new(SearchFile::lock(&path).unwrap());
        let store = Arc::new(stage.database.open("acme"));
        let (index, follower) = SearchIndex::still(
            SearchPlace::Locked(file),
            Arc::clone(&store),
            Box::new(OneFile),
        );
        let index = Arc::new(index);
        let resources = resources(store, &index);
        Some(Self {
            stage,
            index,
            follower,
            resources,
            reach: Reach::All,
            path,
            _folder: folder,
        })
    }

    fn say(&self, number: u128, session: &str, input: Vec<Message>, output: Vec<Message>) {
        let call = call(number).session(session).input(input).output(output);
        self.stage.call_of(call.build(), 100);
    }

    /// Stores a call with one text of a user, and follows.
    fn tell(&mut self, number: u128, session: &str, content: &str) {
        self.say(number, session, vec![text("user", content)], Vec::new());
        self.follow();
    }

    fn follow(&mut self) {
        self.follower.follow().unwrap();
    }

    fn try_ask(&self, request: SearchRequest) -> Result<SearchResult, Error> {
        let mut snapshot = self.stage.snapshot();
        let mut reading = ReadContext {
            snapshot: &mut snapshot,
            now: at(1_000),
            reach: &self.reach,
            repeats: Repeats::Once,
            resources: &self.resources,
        };
        <svc_model::endpoint::Search as Answer>::answer(&mut reading, request)
    }

    fn ask(&self, request: &SearchRequest) -> SearchResult {
        let result = self.try_ask(request.clone()).unwrap();
        let again = self.try_ask(request.clone()).unwrap();
        assert_eq!(result, again, "equal requests have equal answers");
        let written = json::to_vec(&result, usize::MAX).unwrap();
        assert!(written.len() as u64 <= request.max_bytes.get());
        result
    }

    fn found(&self, query: &str) -> SearchResult {
        self.ask(&ask(query))
    }

    fn sessions(&self, request: &SearchRequest) -> Vec<String> {
        let items = self.ask(request).items.into_iter();
        items.map(|item| item.session_id.to_string()).collect()
    }

    fn contains(&self, bytes: &[u8]) -> bool {
        let mut all = std::fs::read(&self.path).unwrap();
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        all.extend(std::fs::read(log).unwrap_or_default());
        all.windows(bytes.len()).any(|window| window == bytes)
    }
}

fn resources(store: Arc<Store>, index: &Arc<SearchIndex>) -> Resources {
    Resources::new(
        store,
        1 << 20,
        Arc::new(ReportResources::new(None, 1 << 20)),
        ScanBounds::default(),
        CursorKey::derive(b"a secret"),
        Some(Arc::clone(index)),
    )
}

fn ask(query: &str) -> SearchRequest {
    SearchRequest::new(SearchQuery::new(query).unwrap())
}

fn only(query: &str, filters: SearchFilters) -> SearchRequest {
    SearchRequest {
        filters,
        ..ask(query)
    }
}

fn word(text: &str) -> SearchWord {
    SearchWord::new(text).unwrap()
}

fn message(role: &str, part: &str) -> Message {
    let mut message = text(role, "");
    message.parts = vec![json::from_slice(part.as_bytes()).unwrap()];
    message
}

/// Returns the only part of an answer.
fn part(result: &SearchResult) -> &SearchPart {
    let [item] = result.items.as_slice() else {
        panic!("{:?}", result.items);
    };
    let [part] = item.parts.as_slice() else {
        panic!("{:?}", item.parts);
    };
    part
}

#[rstest]
fn the_session_with_the_rarest_words_comes_first(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    let empty = stage.found("queue");
    assert_eq!(empty.status, ContextStatus::NoMatch);
    assert!(!empty.index_complete && empty.indexed_up_to.is_none());
    stage.tell(1, "a", "The scheduler drops a job when the queue restarts.");
    stage.tell(2, "b", "Queue, queue, queue: list all queue names.");
    stage.tell(3, "c", "Unrelated text about colours.");
    for query in ["scheduler restart", "restarting schedulers", "shceduler"] {
        let result = stage.found(query);
        assert_eq!(result.status, ContextStatus::Matched);
        assert_eq!(result.items[0].session_id.as_str(), "a", "{query}");
        let part = part(&result);
        assert!(part.whole && part.excerpt.is_none() && part.score == 1_000);
        assert_eq!(part.reference.side, Side::Input);
        assert_eq!(
            (part.reference.message_index, part.reference.part_index),
            (0, 0)
        );
        assert_eq!(
            (result.items[0].score, result.items[0].matched_parts),
            (1_000, 1)
        );
        let title = result.items[0].title.as_deref().unwrap();
        assert!(title.starts_with("The scheduler"), "{title}");
        assert!(result.index_complete && result.indexed_up_to == Some(at(100)));
        assert_eq!(result.coverage.sessions, 3);
        assert_eq!(result.coverage.indexed_parts, 3);
        assert!(result.coverage.all_scored);
    }
    let queues = stage.found("queue");
    let ids: Vec<&str> = queues
        .items
        .iter()
        .map(|item| item.session_id.as_str())
        .collect();
    assert_eq!(ids, ["b", "a"]);
    assert!(queues.items[1].score < 1_000);
    assert_eq!(stage.sessions(&ask("colour")), ["c"]);
    assert_eq!(stage.found("paint").status, ContextStatus::NoMatch);
    let one = SearchRequest {
        limit: SearchLimit::new(1).unwrap(),
        ..ask("queue")
    };
    assert_eq!(stage.ask(&one).skipped.session_limit, 1);
}

#[rstest]
fn a_long_part_is_shown_by_its_best_passage(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    let mut content = "word ".repeat(900);
    content.replace_range(3_000..3_004, "pump");
    let answer = format!(r#"{{"type":"tool_call_response","id":"t","result":"{content}"}}"#);
    stage.say(1, "s", vec![message("tool", &answer)], Vec::new());
    stage.follow();
    let result = stage.found("pump");
    let excerpt = part(&result).excerpt.clone().unwrap();
    assert_eq!(
        (excerpt.start, excerpt.end, excerpt.total),
        (2_000, 4_000, 4_500)
    );
    assert_eq!(excerpt.text.as_str(), Some(&content[2_000..4_000]));
    assert!(!part(&result).whole);
    // Umlauts take six bytes in the answer, so the passage does not fit.
    let wide = "ä ".repeat(900).replacen('ä', "pümp", 450) + "pomp ";
    stage.tell(2, "w", &wide.repeat(3));
    let small = SearchRequest {
        max_bytes: MaxBytes::new(4_096).unwrap(),
        ..ask("pomp")
    };
    let result = stage.ask(&small);
    let excerpt = part(&result).excerpt.clone().unwrap();
    assert!(excerpt.text.to_string_lossy().chars().count() <= 600);
    let shown = wide.repeat(3);
    let range = usize::try_from(excerpt.start).unwrap()..usize::try_from(excerpt.end).unwrap();
    assert_eq!(excerpt.text.as_str(), shown.get(range));
    assert!(excerpt.text.to_string_lossy().contains("pomp"));
}

#[rstest]
fn a_repeated_part_is_named_by_its_earliest_visible_occurrence(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    let answer = || text("assistant", "use the backoff table");
    let ask_user = || text("user", "how often?");
    stage.say(1, "d", vec![ask_user()], vec![answer()]);
    stage.say(
        2,
        "d",
        vec![ask_user(), answer(), text("user", "more")],
        Vec::new(),
    );
    stage.say(
        3,
        "d",
        vec![ask_user(), answer(), text("user", "more")],
        Vec::new(),
    );
    stage.follow();
    let first = stage.found("backoff");
    assert_eq!(first.items[0].matched_parts, 1);
    assert_eq!(part(&first).reference.side, Side::Output);
    assert_eq!(
        part(&first).reference.inference_call_id.as_str(),
        id(1).to_string()
    );
    // At once, before the index has followed, and afterwards.
    stage.stage.quarantine(FactTable::InferenceCalls, id(1));
    for _ in 0..2 {
        let later = stage.found("backoff");
        let reference = &part(&later).reference;
        assert_eq!(reference.inference_call_id.as_str(), id(2).to_string());
        assert_eq!(
            (reference.side.clone(), reference.message_index),
            (Side::Input.into(), 1)
        );
        assert_eq!(later.skipped.withdrawn, 0);
        stage.follow();
    }
    for number in [2, 3] {
        stage
            .stage
            .quarantine(FactTable::InferenceCalls, id(number));
    }
    let gone = stage.found("backoff");
    assert_eq!(
        (gone.status, gone.skipped.withdrawn),
        (ContextStatus::NoMatch.into(), 1)
    );
    stage.follow();
    let gone = stage.found("backoff");
    assert_eq!(
        (gone.status, gone.skipped.withdrawn),
        (ContextStatus::NoMatch.into(), 0)
    );
    assert_eq!(gone.coverage.indexed_parts, 0);
    for number in [1, 2, 3] {
        stage.stage.release(FactTable::InferenceCalls, id(number));
    }
    stage.follow();
    let again = stage.found("backoff");
    assert_eq!(again.items, first.items);
}

/// The words of what was erased are in no byte of the index, and those of the rest are.
#[rstest]
fn what_is_erased_leaves_the_file(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    let path =
        r#"{"type":"tool_call","id":"t","name":"Edit","arguments":{"path":"d/zhiddenfile.rs"}}"#;
    stage.say(
        1,
        "s",
        vec![
            text("user", "xsecretword xsecretword"),
            message("assistant", path),
        ],
        Vec::new(),
    );
    stage.tell(2, "t", "qpublicword");
    assert!(stage.contains(b"secretword") && stage.contains(b"hiddenfile"));
    stage.stage.erase("s");
    let found = stage.found("xsecretword");
    assert_eq!(
        found.status,
        ContextStatus::NoMatch,
        "before the index follows"
    );
    stage.follow();
    assert_eq!(stage.found("xsecretword").skipped.withdrawn, 0);
    assert_eq!(stage.sessions(&ask("qpublicword")), ["t"]);
    assert!(!stage.contains(b"secretword") && !stage.contains(b"hiddenfile"));
    assert!(stage.contains(b"publicword"));
    assert_eq!(stage.index.status().indexed_parts, 1);
}

#[rstest]
fn every_filter_keeps_what_it_says(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    let edit = r#"{"type":"tool_call","id":"t","name":"Edit","arguments":{"file_path":"src/pager.rs","edits":[{"old":"a","new":"b"}],"count":2}}"#;
    stage.say(
        1,
        "edits",
        vec![text("user", "the pager")],
        vec![message("assistant", edit)],
    );
    let mut asked = call(2).session("asks").user("ann").observed(50);
    asked = asked.input(vec![text("user", "why is the pager slow")]);
    let mut asked = asked
        .output(vec![message(
            "assistant",
            r#"{"type":"reasoning","content":"the pager reads all"}"#,
        )])
        .build();
    asked.model = Some("big".to_owned());
    asked.agent = Some("codex".to_owned());
    stage.stage.call_of(asked, 100);
    let (push, observed) = delivered(9, Some(7));
    stage.stage.add([
        Append::Push(Box::new(push)),
        Append::SessionCommitObservation(Box::new(SessionCommitObservation {
            session_id: SessionId::new("asks").unwrap(),
            ..observed
        })),
    ]);
    stage.follow();
    let of = |filters: SearchFilters| stage.sessions(&only("pager", filters));
    assert_eq!(of(SearchFilters::default()).len(), 2);
    let none = SearchFilters::default;
    let session_id = Some(SessionId::new("asks").unwrap());
    let user = Some(UserId::new("ann").unwrap());
    let asks: [SearchFilters; 8] = [
        SearchFilters {
            session_id,
            ..none()
        },
        SearchFilters { user, ..none() },
        SearchFilters {
            model: Some(word("big")),
            ..none()
        },
        SearchFilters {
            agent: Some(word("codex")),
            ..none()
        },
        SearchFilters {
            since: Some(at(10)),
            ..none()
        },
        SearchFilters {
            commit: Some(commit('c')),
            ..none()
        },
        SearchFilters {
            repository: Some(svc_model::search::SearchRepository::Identified(repository(
                7,
            ))),
            ..none()
        },
        SearchFilters {
            kind: Some(SearchKind::Reasoning),
            ..none()
        },
    ];
    for (number, filters) in asks.iter().enumerate() {
        assert_eq!(of(filters.clone()), ["asks"], "{number}");
        let late = SearchFilters {
            until: Some(at(10)),
            ..filters.clone()
        };
        assert!(of(late).is_empty(), "{number}");
    }
    for path in ["src/pager.rs", "pager.rs"] {
        let file = Some(FilePath::new(path).unwrap());
        assert_eq!(of(SearchFilters { file, ..none() }), ["edits"], "{path}");
    }
    let committed = Some(FilePath::new("committed.rs").unwrap());
    let file = SearchFilters {
        file: committed,
        ..none()
    };
    assert_eq!(of(file), ["asks"]);
    let edits = [
        SearchFilters {
            until: Some(at(10)),
            ..none()
        },
        SearchFilters {
            kind: Some(SearchKind::ToolCall),
            ..none()
        },
        SearchFilters {
            role: Some(word("assistant")),
            ..none()
        },
    ];
    for filters in edits {
        assert_eq!(of(filters), ["edits"]);
    }
    for filters in [
        SearchFilters {
            kind: Some(SearchKind::ToolResult),
            ..none()
        },
        SearchFilters {
            role: Some(word("tool")),
            ..none()
        },
        SearchFilters {
            model: Some(word("small")),
            ..none()
        },
        SearchFilters {
            commit: Some(commit('d')),
            ..none()
        },
        SearchFilters {
            file: Some(FilePath::new("lib/pager.rs").unwrap()),
            ..none()
        },
        SearchFilters {
            repository: Some(svc_model::search::SearchRepository::Named(name("no/such"))),
            ..none()
        },
    ] {
        assert!(of(filters.clone()).is_empty(), "{filters:?}");
    }
    // The text of a tool call is its lines.
    let found = stage.ask(&only(
        "edits",
        SearchFilters {
            kind: Some(SearchKind::ToolCall),
            ..none()
        },
    ));
    let shown = part(&found);
    let Some(Part::ToolCall { .. }) = shown.part.as_ref().and_then(|part| part.known()) else {
        panic!("{shown:?}");
    };
    assert_eq!(shown.tool_name.as_ref().unwrap(), "Edit");
    assert_eq!(
        search_text(shown.part.as_ref().unwrap().known().unwrap()).as_str(),
        Some("Edit\nfile_path: src/pager.rs\nedits\nold: a\nnew: b\ncount: 2")
    );
}

#[rstest]
fn a_caller_finds_nothing_outside_its_grants(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    stage.tell(1, "mine", "the backoff table");
    stage.tell(2, "theirs", "backoff backoff backoff and jitter");
    stage.reach = Reach::Configured([SessionId::new("mine").unwrap()].into());
    assert_eq!(stage.sessions(&ask("backoff")), ["mine"]);
    assert!(stage.sessions(&ask("jitter")).is_empty());
    assert!(stage.sessions(&ask("jittre")).is_empty());
    let result = stage.found("backoff");
    assert_eq!(result.coverage.sessions, 1);
    assert_eq!(
        (result.skipped.withdrawn, result.skipped.session_limit),
        (0, 0)
    );
    assert_eq!(result.items[0].user_ids, None);
    let user = Some(UserId::new("ann").unwrap());
    let request = only(
        "backoff",
        SearchFilters {
            user,
            ..SearchFilters::default()
        },
    );
    assert!(matches!(stage.try_ask(request), Err(Error::Invalid(_))));
}

/// Whatever is said outside a grant, an answer within it is the same.
#[rstest]
fn nothing_outside_a_grant_changes_an_answer_within_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    stage.tell(1, "mine", "alpha first");
    stage.tell(2, "mine", "flarnax one two");
    stage.tell(3, "mine", "glorpix one two");
    stage.tell(4, "mine", "thermodyzel and more");
    stage.tell(5, "theirs", "projectkrakenx layoffs");
    stage.tell(6, "mine", "omega last");
    stage.reach = Reach::Configured([SessionId::new("mine").unwrap()].into());
    let ask_all = |stage: &SearchStage| {
        let queries = [
            "projectkrakenx",
            "layoffs",
            "flarnax glorpix",
            "thermodyzeq",
            "alpha omega one",
        ];
        queries.map(|query| {
            let result = stage.found(query);
            (result.coverage.candidates, result.skipped, result.items)
        })
    };
    let before = ask_all(&stage);
    assert_eq!((before[0].0, before[1].0), (0, 0));
    assert_eq!(before[3].2.len(), 1, "a typing error is found");
    for number in 10..30 {
        let letter = char::from(b'a' + u8::try_from(number - 10).unwrap());
        let said = format!("glorpix glorpix thermodyze{letter} projectkrakenx omega {number}");
        stage.tell(number, "theirs", &said);
        stage.tell(number + 50, "others", &said);
    }
    assert_eq!(ask_all(&stage), before);
}

#[rstest]
fn words_that_nothing_has_take_no_place_of_others(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    stage.tell(1, "s", "LedgerImbalanceError in the ledger");
    let unknown: Vec<String> = (0..200).map(|number| format!("Frame{number}x")).collect();
    let trace = format!("{} LedgerImbalanceError", unknown.join(" "));
    assert_eq!(stage.sessions(&ask(&trace)), ["s"]);
}

#[rstest]
fn hostile_queries_are_answered(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    stage.tell(
        1,
        "s",
        "NEAR the AND of 日本語 emoji 🎉 \u{0} größe e\u{301}",
    );
    for query in [
        "\"a OR x",
        "NEAR(",
        "a AND NOT b",
        "words : x",
        "^x*",
        "a\u{0}b",
        "🎉 x",
        "col:\"",
        &"x".repeat(2_048),
        &"ab ".repeat(682),
        "שלום עולם",
        "日本語",
        "日",
        "a-b_c.d/e\\f",
    ] {
        stage.found(query);
    }
    for query in ["near", "日本", "groesse größe", "é"] {
        assert_eq!(stage.sessions(&ask(query)), ["s"], "{query}");
    }
}

#[rstest]
fn a_file_of_another_kind_is_built_anew(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(mut stage) = SearchStage::open(backend) else {
        return;
    };
    stage.tell(1, "s", "the backoff table");
    let damages = ["", "no database at all, but some text that is long enough"];
    for (number, damage) in damages.into_iter().enumerate() {
        let stage = &mut stage;
        let (index, follower) = {
            // The lock belongs to the first index.
            let file =
                Arc::new(SearchFile::lock(&stage.path.with_extension(number.to_string())).unwrap());
            std::fs::write(file.path(), damage).unwrap();
            let store = Arc::new(stage.stage.database.open("acme"));
            SearchIndex::still(SearchPlace::Locked(file), store, Box::new(OneFile))
        };
        stage.index = Arc::new(index);
        stage.follower = follower;
        let store = Arc::new(stage.stage.database.open("acme"));
        stage.resources = resources(store, &stage.index);
        stage.follow();
        assert_eq!(stage.sessions(&ask("backoff")), ["s"]);
    }
}
