use super::*;

fn written(text: fn(&Object) -> DossierText, reply: &str) -> String {
    text(Json::parse(reply.as_bytes()).unwrap().as_object().unwrap()).0
}

#[test]
fn a_dossier_is_one_line_of_json() {
    let dossier = r#"{"calls":[1,2],"gaps":{"a":"\u2028\u0085 b"},"session_id":"s"}"#;
    assert_eq!(written(session, dossier), dossier);
}

#[test]
fn a_long_dossier_shows_counts_the_start_of_lists_and_which_tool_to_call() {
    let event = |number| {
        let kind = if number % 4 == 0 {
            r#""event_type":"developer_decision","accepted":true"#
        } else {
            r#""event_type":"inference_call""#
        };
        format!(
            r#"{{{kind},"fact_id":"f{number}","padding":"{}"}}"#,
            "x".repeat(100)
        )
    };
    let timeline = (0..400).map(event).collect::<Vec<_>>().join(",");
    let body = format!(
        r#"{{"session_id":"s","timeline":[{timeline}],"gaps":["no_ci_outcomes_observed"],"coverage":{{"inference_calls":{{"total":301,"visible":300}}}},"odd name":1}}"#
    );
    let twin = written(session, &body);
    let lines: Vec<&str> = twin.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "This is too long to show whole: here are its numbers, and at most 10 entries of \
             each list. The structured content has all of it.",
            "- session_id: \"s\"",
            "- timeline: 400 entries; by event_type: 100 developer_decision, 300 \
             inference_call; by accepted: 100 true",
            "- gaps: [\"no_ci_outcomes_observed\"]",
            "- coverage: {\"inference_calls\":{\"total\":301,\"visible\":300}}",
            "- \"odd name\": 1",
        ]
    );
    assert!(lines[6].starts_with("- timeline[0]: {\"event_type\":\"developer_decision\","));
    assert_eq!(lines.len(), 17, "{twin}");
    assert_eq!(
        lines[16],
        "Next: open_evidence {\"session_id\":\"s\"} for its calls, commit_dossier \
         with the commit_sha of a commit, ci_run with the run_id of an outcome."
    );
}

#[test]
fn a_long_dossier_stays_within_its_bound() {
    let (wide, deep) = ("w".repeat(900), "d".repeat(2_000));
    let row = format!(r#"{{"a":"{wide}","b":"{wide}","c":["{deep}","{deep}"]}}"#);
    let rows = vec![row; 50].join(",");
    let body = format!(r#"{{"report":{{"x":[{rows}],"y":[{rows}],"z":[{rows}],"total":7}}}}"#);
    let twin = written(model_outcomes, &body);
    assert!(
        twin.contains("\n- report.total: 7\n- report.x[0].a: "),
        "{twin}"
    );
    assert!(twin.contains("\n- and more, which only the structured content has\nFor less,"));
    assert!(twin.chars().count() < WHOLE_CHARACTERS_MAX + 500);
}
