use clap::Args;
use svc_model::endpoint::{EvidenceInventory, GrantInventory};
use svc_model::evidence::{Inventory, InventoryRequest};

use super::ask;
use crate::commands::context::session_id;
use crate::commands::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape, positional};

#[derive(Debug, Args)]
pub(crate) struct ReadInventory {
    /// The Session.
    session: String,

    #[command(flatten)]
    service: ServiceOptions,
}

impl ReadInventory {
    pub(super) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = InventoryRequest {
            session_id: session_id(&self.session)?,
        };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            Ok(ask::<EvidenceInventory, GrantInventory>(&client, &request).await?)
        })?;
        output.reply(&reply, render_inventory)?;
        output.next(&self.service, &after_inventory(&reply.value));
        Ok(())
    }
}

fn render_inventory(inventory: &Inventory) -> String {
    let session = escape(inventory.session_id.as_str());
    if !inventory.found {
        return format!("Session {session} is not known\n");
    }
    let mut text = format!(
        "Session {session}: {} visible calls, {} quarantined\n",
        inventory.visible_inference_calls, inventory.quarantined_inference_calls,
    );
    let erased = inventory.calls.iter();
    let erased = erased
        .filter(|call| call.content_erased_at.is_some())
        .count();
    if erased > 0 {
        text.extend(["of ", &erased.to_string(), " the content was erased\n"]);
    }
    if inventory.calls.is_empty() {
        return text;
    }
    let name = |name: Option<&String>| name.map_or_else(|| "-".to_owned(), |name| escape(name));
    let mut table = Table::new(["observed at", "call", "provider", "model"]);
    for call in &inventory.calls {
        table.row([
            call.observed_at.to_string(),
            call.inference_call_id.to_string(),
            name(call.model_provider.as_ref()),
            match call.content_erased_at {
                Some(_) => format!("{} (content erased)", name(call.model.as_ref())),
                None => name(call.model.as_ref()),
            },
        ]);
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}

fn after_inventory(inventory: &Inventory) -> Vec<String> {
    let session = positional(inventory.session_id.as_str());
    let last = inventory.calls.last();
    last.map(|call| format!("svc evidence manifest {session} {}", call.inference_call_id))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    #[test]
    fn an_inventory_is_a_table() {
        let text = r#"{"session_id":"s\u001b","quarantine_revision":0,"found":true,"visible_inference_calls":1,"quarantined_inference_calls":2,"calls":[{"inference_call_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","observed_at":"2026-01-15T09:30:00Z","model_provider":null,"model":"m"}],"capture_completeness":"unknown","schema_version":1}"#;
        let inventory = json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(
            render_inventory(&inventory),
            "Session s\\u{1b}: 1 visible calls, 2 quarantined\n\n\
             observed at           call                                  provider  model\n\
             2026-01-15T09:30:00Z  f8d5f475-40a1-5ebb-9796-b05b24001822  -         m\n"
        );
        assert_eq!(
            after_inventory(&inventory),
            [r"svc evidence manifest $'s\x1b' f8d5f475-40a1-5ebb-9796-b05b24001822"]
        );
    }
}
