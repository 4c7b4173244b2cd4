use clap::Args;
use svc_model::endpoint;
use svc_model::identity::IdentityProbe;
use svc_model::request::NoParameters;

use super::{grant, service};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Fields, Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Me {
    #[command(flatten)]
    service: ServiceOptions,
}

impl Me {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<endpoint::Me>(&NoParameters).await?) })?;
        service::warn_of_skew(&reply.value.version, output);
        output.reply(&reply, |probe| render(client.url(), probe))
    }
}

fn render(url: &str, probe: &IdentityProbe) -> String {
    let mut fields = Fields::default();
    fields.add("service", escape(url));
    fields.add("version", escape(&probe.version));
    fields.add("organization", escape(probe.org_id.as_str()));
    fields.add("authority", probe.authority.as_str());
    fields.add("client", escape(&probe.client_id));
    let sessions = probe.source_session_ids.as_deref().unwrap_or_default();
    for session in probe.source_session_id.iter().chain(sessions) {
        fields.add("session", escape(session.as_str()));
    }
    for scope in probe.grants.iter().flatten() {
        fields.add("granted", grant::scope(scope));
    }
    fields.render()
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    #[test]
    fn a_retrieval_token_shows_its_sessions() {
        let probe = r#"{"org_id":"acme","version":"0.1.0","authority":"retrieval","client_id":"retrieval","source_session_ids":["a\u001b","b c"]}"#;
        let probe = json::from_slice(probe.as_bytes()).unwrap();
        assert_eq!(
            render("https://svc.example", &probe),
            "service       https://svc.example\nversion       0.1.0\norganization  acme\n\
             authority     retrieval\nclient        retrieval\nsession       a\\u{1b}\nsession       b c\n"
        );
    }
}
