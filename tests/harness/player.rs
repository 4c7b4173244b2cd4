//! Plays black-box cases against a running server.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use svc_model::json::{Json, Object};
use tempfile::TempDir;

use crate::case::{self, Body, Case, CommandStep, Credential, RequestStep, Step};
use crate::http::{Framing, Reply, Request};
use crate::pattern::{Mismatch, dig, matches, shown};
use crate::server::{
    FORGE_SECRET, INGEST_TOKEN, OPERATOR_TOKEN, ORGANIZATION, RETRIEVAL_TOKEN, Server,
    UNKNOWN_TOKEN,
};
use crate::variables::Variables;
use crate::{process, schemas};

/// How long a command or a script may take.
const PROCESS_MAX: Duration = Duration::from_mins(2);
/// How long to wait before trying a step again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Plays a case.
///
/// # Errors
///
/// The first step that does not hold, and why.
pub fn play(case: &Case, server: &Server) -> Result<(), Mismatch> {
    let scratch = tempfile::Builder::new()
        .prefix("svc-case-")
        .tempdir()
        .expect("a folder");
    let mut player = Player {
        server,
        variables: variables(case, server, scratch.path()),
        scratch,
    };
    for (index, step) in case.steps.iter().enumerate() {
        player
            .step(step)
            .map_err(|reason| Mismatch(format!("step {}: {reason}", index + 1)))?;
    }
    Ok(())
}

fn variables(case: &Case, server: &Server, scratch: &Path) -> Variables {
    let mut variables = Variables::default();
    // Unique to the case, and the same in every run.
    let digest = Sha256::digest(case.id());
    let run = hexadecimal(&digest[..6]);
    variables.set("run", run);
    variables.set("scratch", scratch.display().to_string());
    variables.set(
        "mirror",
        server.variable("SVC_MIRROR_PATH").unwrap_or_default(),
    );
    variables.set("org", ORGANIZATION);
    variables.set("base_url", server.base_url());
    variables.set("operator_token", OPERATOR_TOKEN);
    variables.set("ingest_token", INGEST_TOKEN);
    variables.set("retrieval_token", RETRIEVAL_TOKEN);
    variables
}

struct Player<'a> {
    server: &'a Server,
    variables: Variables,
    scratch: TempDir,
}

impl Player<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Mismatch> {
        match step {
            Step::Request(step) => (0..step.times).try_for_each(|_| self.request(step)),
            Step::Command(step) => self.command(step),
            Step::Script(script) => {
                let script = self.variables.fill_text(script)?;
                self.script(&script.to_string_lossy())
            }
            Step::Sleep(pause) => {
                thread::sleep(*pause);
                Ok(())
            }
            Step::Until(step, limit) => {
                let start = Instant::now();
                loop {
                    match self.step(step) {
                        Err(_) if start.elapsed() <= *limit => thread::sleep(AGAIN_AFTER),
                        outcome => return outcome,
                    }
                }
            }
        }
    }

    fn request(&mut self, step: &RequestStep) -> Result<(), Mismatch> {
        let request = self.build(step)?;
        let what = format!("{} {}", request.method, request.path);
        let failed = |reason: String| Mismatch(format!("{what}: {reason}"));
        let reply = self
            .server
            .try_send(&request)
            .map_err(|error| failed(error.to_string()))?;
        let text = reply.text();
        let statuses = &step.expect.statuses;
        if !statuses.is_empty() && !statuses.contains(&reply.status) {
            let start: String = text.chars().take(400).collect();
            return Err(failed(format!(
                "status {}, not {statuses:?}: {start}",
                reply.status
            )));
        }
        for part in &step.expect.contains {
            let part = self
                .variables
                .fill_text(part)?
                .to_string_lossy()
                .into_owned();
            if !text.contains(&part) {
                return Err(failed(format!("the body has no {part:?}")));
            }
        }
        for part in &step.expect.lacks {
            let part = self
                .variables
                .fill_text(part)?
                .to_string_lossy()
                .into_owned();
            if text.contains(&part) {
                return Err(failed(format!("the body has {part:?}")));
            }
        }
        self.headers(&step.expect.headers, &reply)
            .map_err(|reason| failed(reason.0))?;
        let pattern = step.expect.json.as_ref();
        self.value(&reply.body, pattern, &step.save)
            .map_err(|reason| failed(reason.0))?;
        schemas::check(&request, &reply).map_err(Mismatch)
    }

    fn build(&mut self, step: &RequestStep) -> Result<Request, Mismatch> {
        let path = self
            .variables
            .fill_text(&step.path)?
            .to_string_lossy()
            .into_owned();
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in &step.headers {
            let value = value
                .as_text()
                .ok_or_else(|| Mismatch("a header is no text".into()))?;
            let value = self
                .variables
                .fill_text(value)?
                .to_string_lossy()
                .into_owned();
            headers.push((name.to_string_lossy().to_lowercase(), value));
        }
        let body = match &step.body {
            Body::None => None,
            Body::Json(value) => Some(case::ascii(&self.variables.fill(value)?)),
            Body::Text(text) => Some(self.variables.fill_text(text)?.as_bytes().to_vec()),
            Body::Bytes(bytes) => Some(bytes.clone()),
            Body::Filler(size) => Some(vec![b'x'; *size]),
        };
        let is_typed = headers.iter().any(|(name, _)| name == "content-type");
        if !is_typed && !matches!(step.body, Body::None | Body::Bytes(_)) {
            headers.push(("content-type".into(), "application/json".into()));
        }
        if let Some((name, value)) = credential(step.credential, body.as_deref()) {
            headers.retain(|(known, _)| known != name);
            headers.push((name.into(), value));
        }
        let framing = if step.chunked {
            Framing::Chunked
        } else {
            Framing::Sized
        };
        Ok(Request {
            method: step.method.clone(),
            path,
            headers,
            body,
            framing,
        })
    }

    fn headers(&mut self, wanted: &Object, reply: &Reply) -> Result<(), Mismatch> {
        for (name, wanted) in wanted {
            let name = name.to_string_lossy().to_lowercase();
            let value = reply.header(&name);
            let holds = match self.variables.fill(wanted)? {
                Json::Null => value.is_none(),
                wanted if wanted.as_str() == Some("$any") => value.is_some(),
                wanted => wanted.as_str().is_some() && wanted.as_str() == value,
            };
            if !holds {
                return Err(Mismatch(format!(
                    "header {name}: {value:?}, not {}",
                    shown(wanted)
                )));
            }
        }
        Ok(())
    }

    /// Matches a printed value and sets variables from it.
    fn value(
        &mut self,
        printed: &[u8],
        pattern: Option<&Json>,
        save: &[(String, String)],
    ) -> Result<(), Mismatch> {
        if pattern.is_none() && save.is_empty() {
            return Ok(());
        }
        let value = Json::parse(printed.trim_ascii()).map_err(|error| {
            let start: String = String::from_utf8_lossy(printed).chars().take(300).collect();
            Mismatch(format!("not JSON ({error}): {start}"))
        })?;
        if let Some(pattern) = pattern {
            matches(&self.variables.fill(pattern)?, &value, "$")?;
        }
        for (name, path) in save {
            let found = dig(&value, path)
                .ok_or_else(|| Mismatch(format!("no {path} in {}", shown(&value))))?;
            self.variables.set(name.clone(), found.clone());
        }
        Ok(())
    }

    fn command(&mut self, step: &CommandStep) -> Result<(), Mismatch> {
        let mut arguments = Vec::new();
        for argument in &step.arguments {
            arguments.push(
                self.variables
                    .fill_text(argument)?
                    .to_string_lossy()
                    .into_owned(),
            );
        }
        let mut command = self.server.shell();
        command.args(&arguments);
        for (name, value) in &step.environment {
            let value = value
                .as_text()
                .ok_or_else(|| Mismatch("a setting is no text".into()))?;
            let value = self.variables.fill_text(value)?;
            command.env(&*name.to_string_lossy(), &*value.to_string_lossy());
        }
        let what = format!("svc {}", arguments.join(" "));
        let failed = |reason: String| Mismatch(format!("{what}: {reason}"));
        let output =
            process::run(&mut command, step.input.as_bytes(), PROCESS_MAX).map_err(failed)?;
        let (stdout, stderr) = (output.stdout_text(), output.stderr_text());
        let exit = output.status.code();
        if !step.exits.is_empty() && !exit.is_some_and(|exit| step.exits.contains(&exit)) {
            return Err(failed(format!(
                "exit {exit:?}, not {:?}: {stdout}{stderr}",
                step.exits
            )));
        }
        for part in &step.contains {
            let part = self
                .variables
                .fill_text(part)?
                .to_string_lossy()
                .into_owned();
            if !stdout.contains(&part) {
                return Err(failed(format!("no {part:?} in {stdout}")));
            }
        }
        for part in &step.lacks {
            let part = self
                .variables
                .fill_text(part)?
                .to_string_lossy()
                .into_owned();
            if stdout.contains(&part) || stderr.contains(&part) {
                return Err(failed(format!("{part:?} is printed")));
            }
        }
        let pattern = step.json.as_ref();
        self.value(&output.stdout, pattern, &step.save)
            .map_err(|reason| failed(reason.0))
    }

    fn script(&mut self, script: &str) -> Result<(), Mismatch> {
        let scratch = self.scratch.path();
        let mut command = Command::new("bash");
        command.args(["-eu", "-c", script]).current_dir(scratch);
        command.env("SCRATCH", scratch).env("HOME", scratch);
        command.env(
            "MIRROR",
            self.server.variable("SVC_MIRROR_PATH").unwrap_or_default(),
        );
        // Two cases that make the same change in the same second must not create the same commit.
        let email = self.variables.fill_str("{{run}}@example.com")?;
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "t");
            command.env(format!("GIT_{who}_EMAIL"), &email);
        }
        let output = process::run(&mut command, b"", PROCESS_MAX).map_err(Mismatch)?;
        if !output.status.success() {
            return Err(Mismatch(format!(
                "the script failed: {}",
                output.stderr_text()
            )));
        }
        for line in output.stdout_text().lines() {
            if let Some((name, value)) = line.split_once('=').filter(|(name, _)| is_name(name)) {
                self.variables.set(name, value);
            }
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the header that carries a credential.
pub fn credential(credential: Credential, body: Option<&[u8]>) -> Option<(&'static str, String)> {
    let bearer = |token: &str| Some(("authorization", format!("Bearer {token}")));
    let signature = |secret: &str| {
        Some((
            SIGNATURE_HEADER,
            signature(secret, body.unwrap_or_default()),
        ))
    };
    match credential {
        Credential::None => None,
        Credential::Unknown => bearer(UNKNOWN_TOKEN),
        Credential::Operator => bearer(OPERATOR_TOKEN),
        Credential::Ingest => bearer(INGEST_TOKEN),
        Credential::Retrieval => bearer(RETRIEVAL_TOKEN),
        Credential::Forge => signature(FORGE_SECRET),
        Credential::WrongSignature => signature(&format!("wrong{FORGE_SECRET}")),
    }
}

/// The header that carries the forge's signature of a body.
pub const SIGNATURE_HEADER: &str = "x-hub-signature-256";

/// Returns the forge's signature of a body.
pub fn signature(secret: &str, body: &[u8]) -> String {
    format!("sha256={}", sign(secret, body))
}

fn sign(secret: &str, body: &[u8]) -> String {
    let mut code = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    code.update(body);
    hexadecimal(&code.finalize().into_bytes())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_forge() {
        // The example in the forge's own documentation.
        let signed = sign("It's a Secret to Everybody", b"Hello, World!");
        assert_eq!(
            signed,
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }
}
