//! What the agents did, and what it cost.

use harness::delivery::{Call, log_record, logs};
use harness::server::Server;
use serde_json::{Value, json};

use super::week::{DERIVED, OLD, Week, WeekCall};
use super::{DAY_MICROSECONDS, code, moment};

/// Loads a price table with the model of one call, and stores what the agents did.
pub(super) fn deliver(server: &Server, week: &Week) {
    let prices = json!({"m3": {
        "litellm_provider": "openai", "mode": "chat",
        "input_cost_per_token": 0.001, "output_cost_per_token": 0.001_883,
    }});
    let loaded = server.ask("/v1/prices?name=list.json", prices.to_string());
    assert_eq!(loaded.status, 200, "{}", loaded.text());
    for call in &week.calls {
        let reply = server.deliver("/ingest/gateway", delivery(week, call).to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let mut records = [
        (1, "accept", true),
        (2, "accept", false),
        (7, "accept", true),
        (OLD, "accept", true),
        (11, "reject", true),
    ]
    .map(|(number, decision, explicit)| {
        let attributes = json!({
            "agent": "claude-code", "session.id": week.call(number).session,
            "tool_use_id": format!("tool-{number}"), "decision": decision, "explicit": explicit,
            "file_path": format!("f{number}.py"),
        });
        log_record("svc.tool_decision", &attributes)
    })
    .to_vec();
    let gone = json!({
        "agent": "claude-code", "session.id": week.call(8).session, "tool_use_id": "tool-8",
        "file_path": "f8.py", "applied_text": code(8), "observed_file_text": "",
    });
    records.push(log_record("svc.edit_observation", &gone));
    let reply = server.deliver("/v1/logs", logs(&records).to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// Returns a call as a gateway sends it.
fn delivery(week: &Week, call: &WeekCall) -> Value {
    let number = call.number;
    let asked = json!({"role": "user", "content": format!("work on {}", call.session)});
    let mut answer = json!({"role": "assistant", "content": format!("said in {number}")});
    if week.counts("changes", call) || week.counts("rejected", call) {
        let arguments = json!({"file_path": format!("f{number}.py"), "content": code(number)});
        answer["tool_calls"] = json!([{
            "id": format!("tool-{number}"), "type": "function",
            "function": {"name": "Write", "arguments": arguments.to_string()},
        }]);
    }
    let mut made = Call::new(call.session, &format!("call-{number}"))
        .model(call.model)
        .messages(vec![asked])
        .answer(answer);
    if number == OLD {
        let observed_at = moment(-3 * DAY_MICROSECONDS);
        made = made.captured("00000000-0000-4000-8000-000000000010", &observed_at);
    }
    let mut envelope = made.envelope();
    envelope["user_id"] = json!(call.user);
    let payload = &mut envelope["payload"];
    if number == DERIVED {
        payload["usage"] = json!({"prompt_tokens": 20_000, "completion_tokens": 256});
    } else if let Some(cost) = call.cost {
        let dollars = cost.to_string().parse::<f64>().expect("a number") / 1e6;
        payload["response_cost"] = json!(dollars);
    }
    envelope
}
