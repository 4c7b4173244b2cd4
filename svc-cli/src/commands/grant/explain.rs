use clap::Args;
use svc_engine::read;
use svc_model::grant::{GrantExplanation, GrantExplanationRequest};
use svc_model::id::SessionId;

use super::{GrantPlace, scope, token, unanswered};
use crate::commands::place::StoreOrService;
use crate::error::CommandError;
use crate::output::{Output, Table, escape, quote};

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The name of the token.
    token: String,

    /// The Session.
    session: String,

    #[command(flatten)]
    at: GrantPlace,
}

impl Explain {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = GrantExplanationRequest {
            token: token(&self.token, &self.at, output)?,
            session_id: SessionId::new(&self.session)
                .map_err(|rule| CommandError::argument("the Session", rule))?,
        };
        let place = self.at.find(output)?;
        let explanation = match &place {
            StoreOrService::Store(opened) => {
                let mut snapshot = opened.ledger.snapshot()?;
                read::explain_grant(&mut snapshot, request).map_err(unanswered)?
            }
            StoreOrService::Service(client) => {
                self.at.ask(client, client.explain_grant(&request))?
            }
        };
        output.value(&explanation, render)?;
        self.at.next(&next(&explanation), output);
        Ok(())
    }
}

fn render(explanation: &GrantExplanation) -> String {
    let token = &explanation.token;
    let session = escape(explanation.session_id.as_str());
    let mut text = match (&explanation.revocation, explanation.granted) {
        (Some(revoked), _) => format!(
            "{token} may not read {session}: {} revoked the token at {}: {}\n",
            escape(&revoked.client_id),
            revoked.recorded_at,
            escape(&revoked.reason)
        ),
        (None, true) => format!("{token} may read {session}\n"),
        (None, false) if explanation.entries.is_empty() => {
            format!("{token} may not read {session}: nothing is granted to it\n")
        }
        (None, false) => format!("{token} may not read {session}: no grant reaches it\n"),
    };
    if !explanation.found {
        text.push_str("no fact names the Session\n");
    }
    if explanation.configured == Some(false) {
        text.push_str("the server has no token with this name\n");
    }
    if explanation.entries.is_empty() {
        return text;
    }
    let mut table = Table::new(["grant", "what", "reaches it"]);
    for verdict in &explanation.entries {
        let why: Vec<String> = verdict.obstacles.iter().map(scope::obstacle).collect();
        let reaches = if verdict.grants {
            "yes".to_owned()
        } else {
            format!("no: {}", why.join("; "))
        };
        let what = verdict.entry.scope.as_ref();
        table.row([
            escape(&verdict.entry.grant_id),
            what.map(scope::text).unwrap_or_default(),
            reaches,
        ]);
    }
    text + "\n" + &table.render()
}

fn next(explanation: &GrantExplanation) -> Vec<String> {
    let token = &explanation.token;
    let mut next = Vec::new();
    if explanation.revocation.is_some() {
        next.push(format!("svc grant restore {token} --reason REASON"));
    } else if !explanation.granted {
        let session = quote(explanation.session_id.as_str());
        next.push(format!("svc grant add {token} {session} --reason REASON"));
    }
    next.push(format!("svc grant list --token {token} --history"));
    next
}
