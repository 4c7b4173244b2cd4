//! Of how many calls a commit could have been seen.

use serde_json::{Value, json};

use super::*;

impl Stage {
    /// Adds a call of a model, with its answer, that was observed at this second.
    fn called(&self, number: u128, model: &str, second: i64, answer: &str) {
        let session = format!("s{number}");
        let mut call: InferenceCall = call(number)
            .session(&session)
            .observed(second)
            .output(vec![text("assistant", answer)])
            .build();
        call.model = Some(model.to_owned());
        let stored = self.store.encode(call, at(second + 1));
        self.add([Append::InferenceCall(Box::new(stored))]);
    }

    /// Adds a push of everything in the forge to a repository.
    fn pushed_to(&self, forge: &Forge, number: u32, second: i64) {
        let [base, _, guessed, _] = &forge.commits;
        self.add([pushed(Push {
            repo: format!("own/{number}"),
            repository: Some(repository(number)),
            before_sha: base.clone(),
            after_sha: guessed.clone(),
            captured_at: at(second),
            ..push(u128::from(number))
        })]);
    }

    /// Returns for each model the attributed calls, the cases, and what is said of those that could
    /// be observed.
    fn observability(&self, sources: &Sources) -> Vec<(String, u64, u64, Value)> {
        let report = self.models(sources).unwrap().report;
        let rows = report.rows.iter().map(|row| {
            let unobservable = row.attribution_unobservable.total();
            assert_eq!(
                row.observable_cases() + unobservable,
                row.attribution_cases()
            );
            assert!(row.attributed_inference_calls <= row.observable_cases());
            let written = serde_json::to_value(row).unwrap();
            let said = [
                &written["attribution_observable"],
                &written["attribution_unobservable"],
            ];
            let (attributed, cases) = (row.attributed_inference_calls, row.attribution_cases());
            (row.model.clone(), attributed, cases, json!(said))
        });
        rows.collect()
    }
}

fn row(model: &str, attributed: u64, cases: u64, said: Value) -> (String, u64, u64, Value) {
    (model.to_owned(), attributed, cases, said)
}

#[rstest]
fn without_a_forge_no_call_is_observable(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    for (number, model) in [(1, "a"), (2, "a"), (3, "b")] {
        stage.called(number, model, 1_000, NOTED);
    }
    let expected = [
        row("a", 0, 2, json!([0, {"push_absent": 2}])),
        row("b", 0, 1, json!([0, {"push_absent": 1}])),
    ];
    assert_eq!(stage.observability(&Sources::new()), expected);
    let report = stage.models(&Sources::new()).unwrap().report;
    assert_eq!(report.unobservable(), Some(Unobservable::NoPush));
    // The numbers of the interface stay.
    let row = serde_json::to_value(&report.rows[0]).unwrap();
    assert_eq!(row["attribution_rate"], json!(0.0));
}

#[rstest]
fn a_call_is_observable_where_its_push_can_be_read(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    // The first push is too early for the last call; the second reaches all of them.
    stage.called(1, "a", 100, NOTED);
    stage.called(2, "a", 500, "something else");
    stage.called(3, "a", 2_500, "something else");
    stage.called(4, "b", 2_500, "something else");
    stage.pushed_to(&forge, 101, 300);
    let absent = [
        row(
            "a",
            0,
            3,
            json!([0, {"mirror_absent": 2, "push_absent": 1}]),
        ),
        row("b", 0, 1, json!([0, {"push_absent": 1}])),
    ];
    assert_eq!(stage.observability(&sources), absent);
    sources.mirror(&forge.repository, 101);
    let one = [
        row("a", 1, 3, json!([2, {"push_absent": 1}])),
        row("b", 0, 1, json!([0, {"push_absent": 1}])),
    ];
    assert_eq!(stage.observability(&sources), one);
    stage.pushed_to(&forge, 102, 2_600);
    let half = [
        row("a", 1, 3, json!([2, {"mirror_absent": 1}])),
        row("b", 0, 1, json!([0, {"mirror_absent": 1}])),
    ];
    assert_eq!(stage.observability(&sources), half);
    sources.mirror(&forge.repository, 102);
    let all = [
        row("a", 1, 3, json!([null, null])),
        row("b", 0, 1, json!([null, null])),
    ];
    assert_eq!(stage.observability(&sources), all);
    assert_eq!(stage.observability(&sources), all);
}

#[rstest]
fn a_call_whose_diffs_cannot_be_read_or_whose_repository_is_unknown_is_not_observable(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    stage.called(1, "a", 1_000, NOTED);
    // Nothing says which repository has this name now.
    let (mut legacy, _) = delivered(11, None);
    legacy.captured_at = at(1_100);
    let taken = Push {
        repository: Some(repository(7)),
        captured_at: at(8_000),
        ..push(21)
    };
    stage.add([pushed(legacy), pushed(taken)]);
    let unknown = [row("a", 0, 1, json!([0, {"repository_undetermined": 1}]))];
    assert_eq!(stage.observability(&sources), unknown);
    stage.pushed_to(&forge, 101, 1_200);
    sources.mirror(&forge.repository, 101);
    sources.damage(101);
    let said = &stage.observability(&sources)[0].3;
    assert_eq!(said[0], json!(0), "{said}");
    let reasons = said[1].as_object().unwrap();
    let reason = reasons.keys().next().map(String::as_str);
    let of_mirror = ["mirror_absent", "commit_diff_unavailable"];
    assert!(
        reason.is_some_and(|reason| of_mirror.contains(&reason)),
        "{said}"
    );
}
