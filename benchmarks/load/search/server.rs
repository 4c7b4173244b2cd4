//! A server that is filled with Sessions and asked.

use std::thread;
use std::time::{Duration, Instant as Clock};

use serde_json::{Value, json};
use svc_model::time::Instant;

use crate::http::{Client, Reply};
use crate::process::Server;
use crate::scenario::{Bench, INGEST_TOKEN, OPERATOR_TOKEN, Stage};
use crate::search::local::Answer;
use crate::search::set::{CallRow, SessionRow, text_of};
use crate::{Backend, Failure};

/// The token of the context routes, and its name.
const READER: &str = "6666666666666666666666666666666ccccccccccccccccccccccccccccccccc";
const READER_NAME: &str = "reader";
/// The bytes of calls in one request.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// The calls in one request.
const REQUEST_CALLS: usize = 200;
/// How long the index may take.
const PATIENCE: Duration = Duration::from_mins(30);
const SEARCH: &str = "/query/search";
const DISCOVER: &str = "/query/context/discover";

/// A running server, which stops when it is dropped, on a store of its own.
pub(crate) struct Filled<'bench> {
    client: Client,
    // Stopped before its store is removed, because fields are dropped in order.
    _server: Server,
    _stage: Stage<'bench>,
    /// Whether the server searches.
    pub(crate) searches: bool,
    /// The Sessions of an answer.
    limit: u64,
}

impl<'bench> Filled<'bench> {
    /// Starts a server on an empty store.
    pub(crate) fn start(bench: &'bench Bench, backend: Backend) -> Result<Self, Failure> {
        let mut stage = bench.stage("search", backend, None)?;
        let tokens = json!({ READER_NAME: READER }).to_string();
        let settings = &mut stage.launch.settings;
        settings.push(("SVC_RETRIEVAL_TOKENS", tokens));
        let server = stage.start()?;
        let mut client = Client::connect(server.address)?;
        let grant = json!({
            "token": READER_NAME, "since": "2000-01-01T00:00:00Z", "reason": "measured",
        });
        client
            .post("/v1/grants/add", OPERATOR_TOKEN, &grant)?
            .json()?;
        let searches = is_on(&mut client)?;
        Ok(Self {
            client,
            _server: server,
            _stage: stage,
            searches,
            limit: bench.arguments.search.limit(),
        })
    }

    /// Sends Sessions, and waits until everything is indexed. Returns how long both took.
    pub(crate) fn fill(&mut self, sessions: &[SessionRow]) -> Result<[Duration; 2], Failure> {
        let begin = Clock::now();
        for session in sessions {
            for request in requests(session)? {
                store(&mut self.client, &request)?;
            }
        }
        let sent = begin.elapsed();
        if self.searches {
            let end = mark(&mut self.client, "the-end")?;
            wait(&mut self.client, end)?;
        }
        Ok([sent, begin.elapsed()])
    }

    /// Asks the search.
    pub(crate) fn search(&mut self, query: &str) -> Result<(Answer, Duration), Failure> {
        let body = json!({"schema_version": 1, "query": query, "limit": self.limit});
        let reply = self.client.post(SEARCH, OPERATOR_TOKEN, &body)?;
        answer(&reply, |item, texts| {
            for part in item["parts"].as_array().into_iter().flatten() {
                let excerpt = part["excerpt"]["text"].as_str().map(str::to_owned);
                texts.extend(match excerpt {
                    Some(excerpt) => Some(excerpt),
                    None => Some(text_of(part["part"].to_string().as_bytes())?),
                });
            }
            Ok(())
        })
    }

    /// Asks which Sessions match, by the first policy.
    pub(crate) fn discover(&mut self, query: &str) -> Result<(Answer, Duration), Failure> {
        let body = json!({"schema_version": 1, "query": query});
        let reply = self.client.post(DISCOVER, READER, &body)?;
        answer(&reply, |item, texts| {
            if !item["preview"].is_null() {
                texts.push(text_of(item["preview"]["part"].to_string().as_bytes())?);
            }
            Ok(())
        })
    }

    /// Returns how many of the Sessions the first policy searches, and how many there are.
    pub(crate) fn discovered(&mut self) -> Result<[u64; 2], Failure> {
        let body = json!({"schema_version": 1, "query": "test"});
        let reply = self.client.post(DISCOVER, READER, &body)?.json()?;
        let coverage = &reply["coverage"];
        let found = coverage["found_sessions"].as_u64().unwrap_or_default();
        let searched = coverage["searched_sessions"].as_u64().unwrap_or(found);
        Ok([searched, found])
    }
}

/// Returns what a reply has, in order. A refused query has nothing.
fn answer(
    reply: &Reply,
    read: impl Fn(&Value, &mut Vec<String>) -> Result<(), Failure>,
) -> Result<(Answer, Duration), Failure> {
    let mut answer = Answer::default();
    if reply.status == 422 {
        answer.refused = true;
        return Ok((answer, reply.elapsed));
    }
    let value = reply.json()?;
    for item in value["items"].as_array().into_iter().flatten() {
        let session = item["session_id"].as_str().unwrap_or_default();
        let mut texts = Vec::new();
        read(item, &mut texts)?;
        let texts = texts.into_iter().map(|text| (session.to_owned(), text));
        answer.texts.extend(texts);
        answer.sessions.push(session.to_owned());
    }
    Ok((answer, reply.elapsed))
}

/// Returns whether a server searches.
pub(crate) fn is_on(client: &mut Client) -> Result<bool, Failure> {
    let reply = ask(client, "anything")?;
    match reply.status {
        200 => Ok(true),
        404 => Ok(false),
        _ => Err(reply.describe().into()),
    }
}

/// Asks the search as an operator.
pub(crate) fn ask(client: &mut Client, query: &str) -> Result<Reply, Failure> {
    let body = json!({"schema_version": 1, "query": query});
    client.post(SEARCH, OPERATOR_TOKEN, &body)
}

/// Waits until everything is indexed that was captured by a moment. Returns how many parts there
/// are.
pub(crate) fn wait(client: &mut Client, last: Instant) -> Result<u64, Failure> {
    let begin = Clock::now();
    loop {
        let value = ask(client, "anything")?.json()?;
        let up_to = value["indexed_up_to"].as_str().map(Instant::parse);
        let is_behind = !matches!(up_to, Some(Ok(up_to)) if up_to >= last);
        if !is_behind && value["index_complete"] == true {
            let parts = value["coverage"]["indexed_parts"].as_u64();
            return Ok(parts.unwrap_or_default());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("not indexed after {PATIENCE:?}: {value}").into());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Sends a short Session, and returns when it was captured: after everything else.
pub(crate) fn mark(client: &mut Client, session: &str) -> Result<Instant, Failure> {
    let request = json!({
        "source": {"kind": "sdk", "agent": "search-bench"}, "session_id": session,
        "calls": [{
            "call_id": "call-0", "ended_at": "2026-01-05T09:00:00Z",
            "input": {"messages": []},
            "output": [{"role": "assistant", "parts": [{"type": "text", "content": "Bye."}]}],
        }],
    });
    store(client, &request)?;
    newest(client)
}

/// Returns when the Session was first captured that was captured last.
pub(crate) fn newest(client: &mut Client) -> Result<Instant, Failure> {
    let listed = client.get("/v1/sessions?limit=1", OPERATOR_TOKEN)?.json()?;
    let captured = listed["sessions"][0]["captured_at"].as_str();
    let captured = captured.ok_or("no Session was captured")?;
    Instant::parse(captured).map_err(|_| format!("not a time: {captured}").into())
}

/// Sends calls, all of which have to be new.
pub(crate) fn store(client: &mut Client, request: &Value) -> Result<(), Failure> {
    let reply = client.post("/ingest/calls", INGEST_TOKEN, request)?;
    let stored = reply.json()?["stored"].as_u64();
    let sent = request["calls"].as_array().map(|calls| calls.len() as u64);
    if stored == sent {
        return Ok(());
    }
    Err(format!("{}: {}", request["session_id"], reply.describe()).into())
}

/// Returns the requests that send a Session.
fn requests(session: &SessionRow) -> Result<Vec<Value>, Failure> {
    // Any moment will do if the Session has none.
    let begin = session.time.as_deref().unwrap_or("2026-01-05T09:00:00Z");
    let begin = Instant::parse(begin).map_err(|_| format!("not a time: {begin}"))?;
    let mut requests = Vec::new();
    let (mut calls, mut bytes) = (Vec::new(), 0);
    for (number, call) in session.calls.iter().enumerate() {
        let micros = begin.microseconds() + number as i64 * 60_000_000;
        let ended = Instant::from_microseconds(micros).ok_or("a time beyond all times")?;
        let call = sent(session, call, number, ended);
        bytes += call.to_string().len();
        calls.push(call);
        if bytes > REQUEST_BYTES || calls.len() == REQUEST_CALLS {
            requests.push(request(session, &calls));
            calls.clear();
            bytes = 0;
        }
    }
    if !calls.is_empty() {
        requests.push(request(session, &calls));
    }
    Ok(requests)
}

fn request(session: &SessionRow, calls: &[Value]) -> Value {
    let agent = session.agent.as_deref().unwrap_or("search-bench");
    let mut request = json!({
        "source": {"kind": "sdk", "agent": agent}, "session_id": session.session, "calls": calls,
    });
    if let Some(user) = &session.user {
        request["user_id"] = user.as_str().into();
    }
    request
}

fn sent(session: &SessionRow, call: &CallRow, number: usize, ended: Instant) -> Value {
    let messages = |messages: &[crate::search::set::MessageRow]| -> Value {
        let rows = messages.iter();
        let rows =
            rows.map(|row| json!({"role": row.role, "parts": row.all().collect::<Vec<_>>()}));
        rows.collect()
    };
    let mut input = json!({"messages": messages(&call.input)});
    if let Some(before) = number.checked_sub(1) {
        input["after"] = format!("call-{before}").into();
    }
    let mut sent = json!({
        "call_id": format!("call-{number}"), "ended_at": ended.to_string(),
        "input": input, "output": messages(&call.output),
    });
    if let Some(model) = &session.model {
        sent["model"] = model.as_str().into();
    }
    sent
}
