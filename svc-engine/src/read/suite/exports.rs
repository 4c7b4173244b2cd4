//! Every visible fact is exported once, in the same order on either backend.

use svc_model::json;

use svc_engine_store::testing::{append_all, filled};

use super::*;

fn lines(store: &Store, wanted: &Export) -> Vec<String> {
    let mut lines = Vec::new();
    let each = |_, _, fact| {
        let line = json::to_vec(&fact, usize::MAX).unwrap();
        lines.push(String::from_utf8(line).unwrap());
        Ok::<_, Error>(())
    };
    export(&mut store.snapshot_now(), wanted, each).unwrap();
    lines
}

fn all(with_content: bool) -> Export {
    Export {
        kinds: FactTable::ALL.to_vec(),
        captured: (None, None),
        with_content,
    }
}

#[test]
fn both_backends_export_the_same_lines() {
    let exported = [Backend::Sqlite, Backend::Postgres].map(|backend| {
        let database = TestStore::create(backend)?;
        let store = filled(&database);
        Some((lines(&store, &all(false)), lines(&store, &all(true))))
    });
    let [Some((facts, with_content)), postgres] = exported else {
        panic!("SQLite is never skipped")
    };
    if let Some(postgres) = postgres {
        assert_eq!((&facts, &with_content), (&postgres.0, &postgres.1));
    }
    // Four calls, and one fact of each other kind except the push, which is quarantined.
    assert_eq!(facts.len(), 4 + FactTable::ALL.len() - 2);
    assert_eq!(with_content.len(), facts.len());
    for lines in [&facts, &with_content] {
        let erased = lines
            .iter()
            .filter(|line| line.contains("content_erased_at"));
        let erased: Vec<&String> = erased.collect();
        assert_eq!(erased.len(), 1, "{erased:?}");
        assert!(!erased[0].contains("\"content\""), "{erased:?}");
    }
    let written = ["a long question", "as it came", "applied", "proposed"];
    for text in written {
        assert!(!facts.concat().contains(text), "{text}");
        assert!(with_content.concat().contains(text), "{text}");
    }
}

#[rstest]
fn an_export_reads_facts_in_batches_within_a_range(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Stage { store, .. } = &stage!(backend);
    let pushes = (1..=1_203).map(|number| svc_engine_fact::Push {
        after_sha: svc_model::repository::CommitSha::new(&format!("{number:040x}")).unwrap(),
        captured_at: at(i64::try_from(number).unwrap()),
        ..push(number)
    });
    append_all(store, Append::Push, pushes.collect());
    let ids = |lines: Vec<String>| {
        let ids = lines
            .iter()
            .map(|line| line.split('"').nth(7).unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    let found = ids(lines(store, &all(false)));
    let expected: Vec<String> = (1..=1_203).map(|number| id(number).to_string()).collect();
    assert_eq!(found, expected);
    assert_eq!(ids(lines(store, &all(true))), expected);
    let some = Export {
        captured: (Some(at(7)), Some(at(10))),
        ..all(false)
    };
    assert_eq!(ids(lines(store, &some)), expected[6..9]);
    let none = Export {
        kinds: vec![FactTable::CiOutcomes],
        ..all(false)
    };
    assert!(lines(store, &none).is_empty());
}
