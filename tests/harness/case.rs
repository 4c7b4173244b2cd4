//! Black-box cases as data: what is sent, and what is expected back.
//!
//! Every file in `cases/` is a list of cases for one area. Reading is strict: an unknown member is
//! an error, so that a case never states something that nobody checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use svc_model::json::{Json, Object, Text};

use crate::server::{Configuration, Grant};

/// For how many seconds a step is repeated until it holds, unless the case says otherwise.
const UNTIL_SECONDS: f64 = 20.0;

/// A case: steps that are played in order against one server.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the case's file, without the extension.
    pub area: String,
    /// What it shows.
    pub name: String,
    /// The server that it needs.
    pub configuration: Configuration,
    /// Whether it needs a server that no other case has used.
    pub isolated: bool,
    /// What is done.
    pub steps: Vec<Step>,
}

/// One step of a case.
#[derive(Clone, Debug)]
pub enum Step {
    /// A request to the server.
    Request(Box<RequestStep>),
    /// A command of the operator's shell.
    Command(Box<CommandStep>),
    /// A script in the folder of the case. The lines `NAME=VALUE` that it prints become variables.
    Script(Text),
    /// A pause.
    Sleep(Duration),
    /// A step that is repeated until it holds.
    Until(Box<Self>, Duration),
}

/// A request to the server, and what is expected of the answer.
#[derive(Clone, Debug)]
pub struct RequestStep {
    /// Whose credential the request carries.
    pub credential: Credential,
    /// The method.
    pub method: String,
    /// The path with the query.
    pub path: Text,
    /// Headers, which replace the usual ones.
    pub headers: Object,
    /// The body.
    pub body: Body,
    /// Whether the body is sent in chunks, without a length.
    pub chunked: bool,
    /// How often the request is sent, each time with the same expectation.
    pub times: u64,
    /// What is expected.
    pub expect: ReplyPattern,
    /// Variables to set from the answer.
    pub save: Vec<(String, String)>,
}

/// The credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// None.
    None,
    /// A bearer token that was not given to anybody.
    Unknown,
    /// The operator's token.
    Operator,
    /// An ingest token.
    Ingest,
    /// The retrieval token.
    Retrieval,
    /// The forge's signature of the body.
    Forge,
    /// A signature with a different secret.
    WrongSignature,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub enum Body {
    /// None.
    None,
    /// A value, written as ASCII JSON.
    Json(Json),
    /// A text, written as generalised UTF-8.
    Text(Text),
    /// These bytes.
    Bytes(Vec<u8>),
    /// This many letters x.
    Filler(usize),
}

/// What is expected of an answer.
#[derive(Clone, Debug, Default)]
pub struct ReplyPattern {
    /// The accepted statuses. Any, if empty.
    pub statuses: Vec<u16>,
    /// The pattern of the body.
    pub json: Option<Json>,
    /// Texts that the body contains.
    pub contains: Vec<Text>,
    /// Texts that the body does not contain.
    pub lacks: Vec<Text>,
    /// Headers: a value, `$any`, or null for an absent one.
    pub headers: Object,
}

/// A command of the operator's shell, and what is expected of it.
#[derive(Clone, Debug)]
pub struct CommandStep {
    /// Its arguments.
    pub arguments: Vec<Text>,
    /// Additional environment variables.
    pub environment: Object,
    /// What the command reads from standard input.
    pub input: String,
    /// The accepted exit codes. Any, if empty.
    pub exits: Vec<i32>,
    /// The pattern of what the command prints.
    pub json: Option<Json>,
    /// Texts that it prints.
    pub contains: Vec<Text>,
    /// Texts that it prints to neither standard output nor standard error.
    pub lacks: Vec<Text>,
    /// Variables to set from what it prints.
    pub save: Vec<(String, String)>,
}

/// Returns the folder of the cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Returns the names of all areas, sorted.
pub fn areas() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the folder of the cases");
    let mut areas: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry
                .expect("an entry of the folder")
                .file_name()
                .into_string();
            name.expect("a name in ASCII")
                .strip_suffix(".json")
                .map(str::to_owned)
        })
        .collect();
    areas.sort();
    areas
}

/// Returns the cases of an area.
pub fn read(area: &str) -> Vec<Case> {
    let path = folder().join(format!("{area}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let list = Json::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let list = list.into_array().expect("a list of cases");
    list.into_iter()
        .map(|case| {
            let name = case
                .as_object()
                .and_then(|case| case.get("name"))
                .map(crate::pattern::shown);
            read_case(area, case).unwrap_or_else(|error| panic!("{area}, {name:?}: {error}"))
        })
        .collect()
}

impl Case {
    /// Returns the name by which lists refer to the case.
    pub fn id(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }
}

type Read<T> = Result<T, String>;

/// The members of an object that have not been read yet.
struct Members(Object);

impl Members {
    fn of(value: Json, what: &str) -> Read<Self> {
        value
            .into_object()
            .map(Self)
            .ok_or_else(|| format!("{what} is no object"))
    }

    fn take(&mut self, name: &str) -> Option<Json> {
        self.0.remove(name)
    }

    fn required(&mut self, name: &str) -> Read<Json> {
        self.take(name).ok_or_else(|| format!("{name} is missing"))
    }

    fn string(&mut self, name: &str) -> Read<Option<String>> {
        self.take(name).map(|value| string(value, name)).transpose()
    }

    fn object(&mut self, name: &str) -> Read<Object> {
        self.take(name).map_or_else(
            || Ok(Object::new()),
            |value| {
                value
                    .into_object()
                    .ok_or_else(|| format!("{name} is no object"))
            },
        )
    }

    fn texts(&mut self, name: &str) -> Read<Vec<Text>> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        let items = value
            .into_array()
            .ok_or_else(|| format!("{name} is no list"))?;
        items.into_iter().map(|item| text(item, name)).collect()
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Read<Option<T>> {
        self.take(name)
            .map(|value| number(&value, name))
            .transpose()
    }

    /// Reads a number or a list of numbers.
    fn numbers<T: std::str::FromStr>(&mut self, name: &str) -> Read<Vec<T>> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => items.iter().map(|item| number(item, name)).collect(),
            Some(single) => Ok(vec![number(&single, name)?]),
        }
    }

    fn flag(&mut self, name: &str) -> Read<bool> {
        match self.take(name) {
            None => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| format!("{name} is no truth value")),
        }
    }

    fn save(&mut self) -> Read<Vec<(String, String)>> {
        let save = self.object("save")?;
        save.into_iter()
            .map(|(name, path)| Ok((string(name.into(), "save")?, string(path, "save")?)))
            .collect()
    }

    fn end(self, what: &str) -> Read<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(format!("{what} has unknown members {:?}", self.0))
        }
    }
}

fn text(value: Json, what: &str) -> Read<Text> {
    value
        .into_text()
        .ok_or_else(|| format!("{what} is no text"))
}

fn string(value: Json, what: &str) -> Read<String> {
    text(value, what)?
        .into_string()
        .map_err(|text| format!("{what} holds a surrogate: {text:?}"))
}

fn number<T: std::str::FromStr>(value: &Json, what: &str) -> Read<T> {
    let number = value
        .as_number()
        .ok_or_else(|| format!("{what} is no number"))?;
    number
        .as_str()
        .parse()
        .map_err(|_| format!("{what} is out of range"))
}

fn seconds(value: &Json, what: &str) -> Read<Duration> {
    let seconds = number::<f64>(value, what)?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{what}: {error}"))
}

fn read_case(area: &str, case: Json) -> Read<Case> {
    let mut case = Members::of(case, "the case")?;
    let name = string(case.required("name")?, "name")?;
    // The group of areas, which is the beginning of the file name.
    case.string("area")?;
    let (configuration, isolated) = match case.take("server") {
        Some(server) => read_configuration(server)?,
        None => (Configuration::default(), false),
    };
    let steps = case
        .required("steps")?
        .into_array()
        .ok_or("steps is no list")?;
    let steps = steps.into_iter().map(read_step).collect::<Read<_>>()?;
    case.end("the case")?;
    Ok(Case {
        area: area.to_owned(),
        name,
        configuration,
        isolated,
        steps,
    })
}

fn read_configuration(server: Json) -> Read<(Configuration, bool)> {
    let mut server = Members::of(server, "server")?;
    let single = server.string("retrieval_session_id")?;
    let plural = match server.take("retrieval_session_ids") {
        None => None,
        Some(list) => {
            let list = list
                .into_array()
                .ok_or("retrieval_session_ids is no list")?;
            let sessions: Read<Vec<String>> = list
                .into_iter()
                .map(|session| string(session, "a Session"))
                .collect();
            Some(sessions?)
        }
    };
    let grant = match (single, plural) {
        (None, None) => Grant::None,
        (Some(session), None) => Grant::Single(session),
        (None, Some(sessions)) => Grant::Plural(sessions),
        (Some(session), Some(sessions)) => Grant::Both(session, sessions),
    };
    let mut variables = BTreeMap::new();
    for (name, value) in server.object("env")? {
        let name = string(name.into(), "env")?;
        let name = format!("SVC_{}", name.strip_prefix("SVC_").unwrap_or(&name));
        variables.insert(name, string(value, "env")?);
    }
    let isolated = server.flag("isolated")?;
    server.end("server")?;
    let configuration = Configuration {
        grant,
        variables,
        ..Configuration::default()
    };
    Ok((configuration, isolated))
}

fn read_step(step: Json) -> Read<Step> {
    let mut step = Members::of(step, "the step")?;
    let read = if let Some(pause) = step.take("sleep") {
        Step::Sleep(seconds(&pause, "sleep")?)
    } else if let Some(repeated) = step.take("until") {
        let limit = step
            .take("timeout")
            .map(|limit| seconds(&limit, "timeout"))
            .transpose()?;
        let limit = limit.unwrap_or(Duration::from_secs_f64(UNTIL_SECONDS));
        Step::Until(Box::new(read_step(repeated)?), limit)
    } else if let Some(script) = step.take("git") {
        Step::Script(text(script, "git")?)
    } else if let Some(arguments) = step.take("cli") {
        Step::Command(Box::new(read_command(arguments, &mut step)?))
    } else {
        Step::Request(Box::new(read_request(&mut step)?))
    };
    step.end("the step")?;
    Ok(read)
}

fn read_command(arguments: Json, step: &mut Members) -> Read<CommandStep> {
    let arguments = arguments.into_array().ok_or("cli is no list")?;
    let mut expect = Members(step.object("expect")?);
    let command = CommandStep {
        arguments: arguments
            .into_iter()
            .map(|argument| text(argument, "cli"))
            .collect::<Read<_>>()?,
        environment: step.object("env")?,
        input: step.string("stdin")?.unwrap_or_default(),
        exits: expect.numbers("exit")?,
        json: expect.take("stdout_json"),
        contains: expect.texts("stdout_contains")?,
        lacks: expect.texts("not_contains")?,
        save: step.save()?,
    };
    expect.end("expect")?;
    Ok(command)
}

fn read_request(step: &mut Members) -> Read<RequestStep> {
    let mut expect = Members(step.object("expect")?);
    let request = RequestStep {
        credential: match step.string("as")?.as_deref() {
            None | Some("none") => Credential::None,
            Some("badtoken") => Credential::Unknown,
            Some("operator") => Credential::Operator,
            Some("ingest") => Credential::Ingest,
            Some("retrieval") => Credential::Retrieval,
            Some("forge") => Credential::Forge,
            Some("badsig") => Credential::WrongSignature,
            Some(other) => return Err(format!("nobody is called {other}")),
        },
        method: step.string("method")?.unwrap_or_else(|| "GET".into()),
        path: text(step.required("path")?, "path")?,
        headers: step.object("headers")?,
        body: read_body(step)?,
        chunked: step.flag("chunked")?,
        times: step.number("times")?.unwrap_or(1),
        expect: ReplyPattern {
            statuses: expect.numbers("status")?,
            json: expect.take("json"),
            contains: expect.texts("raw_contains")?,
            lacks: expect.texts("not_contains")?,
            headers: expect.object("headers")?,
        },
        save: step.save()?,
    };
    expect.end("expect")?;
    Ok(request)
}

fn read_body(step: &mut Members) -> Read<Body> {
    Ok(if let Some(json) = step.take("json") {
        Body::Json(json)
    } else if let Some(body) = step.take("body") {
        Body::Text(text(body, "body")?)
    } else if let Some(encoded) = step.string("body_b64")? {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
        Body::Bytes(bytes.map_err(|error| format!("body_b64: {error}"))?)
    } else if let Some(size) = step.number("body_size")? {
        Body::Filler(size)
    } else {
        Body::None
    })
}

/// Returns a value as ASCII JSON with a blank after each comma and colon. The cases were written
/// down like this, and their sizes matter.
pub fn ascii(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    write_ascii(value, &mut out);
    out
}

fn write_ascii(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                write_ascii(item, out);
            }
            out.push(b']');
        }
        Json::Object(object) => {
            out.push(b'{');
            for (index, (name, value)) in object.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                name.write_escaped(out);
                out.extend_from_slice(b": ");
                write_ascii(value, out);
            }
            out.push(b'}');
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            value.write_canonical(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn every_case_is_valid_and_has_its_own_name() {
        let mut seen = std::collections::BTreeSet::new();
        for area in areas() {
            for case in read(&area) {
                assert!(!case.steps.is_empty(), "{}", case.id());
                assert!(seen.insert(case.id()), "{} is listed twice", case.id());
            }
        }
        assert!(!seen.is_empty());
    }

    #[test]
    fn an_unknown_member_of_a_case_is_refused() {
        for step in [
            r#"{"path":"/x","expects":{}}"#,
            r#"{"path":"/x","expect":{"body":1}}"#,
            r#"{"cli":["facts"],"expect":{"status":200}}"#,
            r#"{"as":"somebody","path":"/x"}"#,
            r#"{"as":"operator"}"#,
        ] {
            assert!(read_step(json(step)).is_err(), "{step}");
        }
    }

    #[test]
    fn a_surrogate_in_a_body_keeps_its_three_bytes() {
        let Ok(Step::Request(step)) = read_step(json(r#"{"path":"/x","body":"\ud800"}"#)) else {
            panic!("it is a request");
        };
        let Body::Text(text) = step.body else {
            panic!("it is a text")
        };
        assert_eq!(text.as_bytes(), b"\xed\xa0\x80");
    }

    #[test]
    fn json_bodies_are_ascii_with_blanks() {
        let value = json(r#"{"a":[1.10,"\u00e9\ud800\u007f",null],"b":{}}"#);
        assert_eq!(
            ascii(&value),
            br#"{"a": [1.10, "\u00e9\ud800\u007f", null], "b": {}}"#
        );
    }
}
