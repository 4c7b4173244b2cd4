//! The commits that Claude Code's results of tool calls name. They are claims: the mirrors decide
//! whether there is such a commit.

use svc_engine_fact::{CommitClaim, GitCommitId, NamedRepository};
use svc_model::facts::AgentHarness;
use svc_model::id::FactId;
use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Object, Text};
use svc_model::repository::{RepositoryHost, RepositoryName, RepositoryProvider};

use super::claude_code::{CALL, user};
use super::logged::ExportedRecord;
use crate::Receipt;
use crate::repository_url::host_and_path;
use svc_messages::embedded;

/// What git printed of the commit.
const COMMIT: &str = "git_commit_id";
/// The commit that newer versions name as well, usually whole.
const REVISION: &str = "vcs.ref.head.revision";

/// Returns the commit that a result names, if it names one.
pub(super) fn claim(
    result: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<Option<CommitClaim>, LogSkip> {
    let text = result.attributes.text("tool_parameters");
    let parameters = text
        .filter(|text| mentions(text))
        .and_then(embedded::object);
    let named = NamedAttributes {
        parameters: parameters.as_ref(),
        result,
    };
    let Some(git_commit_id) = named.commit()? else {
        return Ok(None);
    };
    Ok(Some(CommitClaim {
        claim_id: FactId::new(receipt.ids.fresh()),
        session_id: result.session()?,
        user_id: user(result)?,
        agent_harness: AgentHarness::ClaudeCode,
        tool_use_id: result.call(CALL)?,
        git_commit_id,
        repository: named.repository(),
        occurred_at: result.occurred_or_stamped_at()?,
        captured_at: receipt.received_at,
    }))
}

/// Returns whether the parameters of a call may name anything that is read. Those of most calls do
/// not, and may be long.
fn mentions(parameters: &Text) -> bool {
    let text = parameters.as_bytes();
    let has = |name: &[u8]| text.windows(name.len()).any(|part| part == name);
    has(COMMIT.as_bytes()) || has(b"vcs.")
}

/// Where a result names a commit and its repository.
struct NamedAttributes<'a> {
    parameters: Option<&'a Object>,
    result: &'a ExportedRecord<'a>,
}

impl<'a> NamedAttributes<'a> {
    /// Returns the commit: a whole revision, or else what git printed, or else the revision.
    ///
    /// The resource is not looked at: it is the same for all results of a process, and would name
    /// the commit that was checked out when the process began.
    fn commit(&self) -> Result<Option<GitCommitId>, LogSkip> {
        let revision = self.parameter(REVISION);
        let revision = revision.or_else(|| self.result.attributes.text(REVISION));
        let printed = self.parameter(COMMIT);
        if revision.is_none() && printed.is_none() {
            return match self
                .parameters
                .and_then(|parameters| parameters.get(COMMIT))
            {
                None | Some(Json::Null | Json::String(_)) => Ok(None),
                Some(_) => Err(LogSkip::InvalidGitCommitId),
            };
        }
        let id = |text: Option<&Text>| GitCommitId::new(text?.as_str()?);
        let (revision, printed) = (id(revision), id(printed));
        let whole = revision.clone().filter(GitCommitId::is_whole);
        let commit = whole.or(printed).or(revision);
        commit.map(Some).ok_or(LogSkip::InvalidGitCommitId)
    }

    /// Returns the repository, if it is named by `owner/name`.
    fn repository(&self) -> Option<NamedRepository> {
        let provider = self.text("vcs.provider.name").map(str::to_ascii_lowercase);
        let provider = provider.and_then(|name| RepositoryProvider::from_wire(&name));
        let url = self.text("vcs.repository.url.full");
        if let Some((host, path)) = url.and_then(host_and_path) {
            return Some(NamedRepository {
                provider,
                host: Some(RepositoryHost::new(host)?),
                name: RepositoryName::new(path)?,
            });
        }
        let owner = self.text("vcs.owner.name")?;
        let name = self.text("vcs.repository.name")?;
        Some(NamedRepository {
            provider,
            host: None,
            name: RepositoryName::new(&format!("{owner}/{name}"))?,
        })
    }

    /// Returns a text from the parameters, the record or the resource.
    fn text(&self, name: &str) -> Option<&'a str> {
        let text = self.parameter(name).or_else(|| self.result.either(name));
        text?.as_str()
    }

    fn parameter(&self, name: &str) -> Option<&'a Text> {
        let text = self.parameters?.get(name)?.as_text()?;
        Some(text).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        captured, captured_records, changed, event, export, skips, the_decision, written,
    };
    use super::*;

    const RESULT: &str = r#"{"session.id":"s-1","tool_use_id":"tu1","tool_name":"Bash"}"#;

    /// Returns a result with these parameters, and changes of its other attributes.
    fn result(parameters: &str, changes: &str) -> Json {
        let parameters = Object::from_iter([("tool_parameters", parameters)]).into();
        let with = changed(RESULT, &written(&parameters));
        event("claude_code.tool_result", &changed(&with, changes))
    }

    /// Returns the only claim of a record. Checks that it is not counted as a fact.
    fn the_claim(resource: &str, record: Json) -> CommitClaim {
        let mut captured = captured(export(resource, [record]));
        assert_eq!(skips(&captured), []);
        assert_eq!(captured.report.records.untranslated, 1);
        assert_eq!(captured.commit_claims.len(), 1);
        captured.commit_claims.remove(0)
    }

    fn commit_of(parameters: &str, changes: &str) -> String {
        the_claim("{}", result(parameters, changes))
            .git_commit_id
            .into()
    }

    #[test]
    fn a_result_that_names_a_commit_is_a_claim() {
        let parameters = r#"{"command":"git commit -m x","git_commit_id":"ABCDEF1"}"#;
        let claim = the_claim(r#"{"user.id":"dev"}"#, result(parameters, "{}"));
        assert_eq!(claim.session_id.as_str(), "s-1");
        assert_eq!(claim.user_id.unwrap().as_str(), "dev");
        assert_eq!(claim.agent_harness, AgentHarness::ClaudeCode);
        assert_eq!(claim.tool_use_id.as_deref(), Some("tu1"));
        assert_eq!(claim.git_commit_id.as_str(), "abcdef1");
        assert_eq!(claim.repository, None);
        assert_eq!(claim.occurred_at.to_string(), "2026-07-07T19:57:35.424000Z");
        assert_eq!(claim.captured_at.microseconds(), 1);
    }

    #[test]
    fn a_result_that_names_no_commit_is_no_claim() {
        for parameters in [
            "{}",
            r#"{"command":"git commit"}"#,
            r#"{"git_commit_id":""}"#,
            r#"{"git_commit_id":null}"#,
            r#"["git_commit_id"]"#,
            r#"{"git_commit_id":"abcdef1""#,
            "git_commit_id abcdef1",
        ] {
            let captured = captured_records([result(parameters, "{}")]);
            assert_eq!(
                (captured.commit_claims.as_slice(), skips(&captured)),
                (&[][..], vec![])
            );
        }
        let other = event(
            "codex.tool_result",
            &changed(
                RESULT,
                r#"{"tool_parameters":"{\"git_commit_id\":\"abcdef1\"}"}"#,
            ),
        );
        assert_eq!(captured_records([other]).commit_claims, []);
    }

    #[test]
    fn what_is_no_commit_id_is_counted() {
        for id in [
            r#""abcdef""#,
            r#""0000000""#,
            r#"" ""#,
            r#""HEAD""#,
            "1234567",
            r#"["abcdef1"]"#,
        ] {
            let record = result(&format!(r#"{{"git_commit_id":{id}}}"#), "{}");
            let captured = captured_records([record]);
            let expected = "claude_code.tool_result: invalid_git_commit_id".to_owned();
            assert_eq!(skips(&captured), [(expected, 1)], "{id}");
            assert_eq!(captured.commit_claims, []);
        }
    }

    #[test]
    fn a_claim_needs_a_session_and_a_time() {
        let parameters = r#"{"git_commit_id":"abcdef1"}"#;
        let timeless = |changes: &str| {
            let mut record = result(parameters, changes);
            record.as_object_mut().unwrap().remove("timeUnixNano");
            record
        };
        for (record, reason) in [
            (
                result(parameters, r#"{"session.id":null}"#),
                "missing_session",
            ),
            (timeless("{}"), "missing_event_time"),
        ] {
            let expected = format!("claude_code.tool_result: {reason}");
            assert_eq!(skips(&captured_records([record])), [(expected, 1)]);
        }
        let stamp = r#"{"event.timestamp":"2026-07-07T19:57:35Z"}"#;
        let claim = the_claim("{}", timeless(stamp));
        assert_eq!(claim.occurred_at.to_string(), "2026-07-07T19:57:35Z");
        let claim = the_claim(
            r#"{"session.id":"r"}"#,
            result(parameters, r#"{"session.id":null}"#),
        );
        assert_eq!(claim.session_id.as_str(), "r");
    }

    #[test]
    fn a_whole_revision_is_preferred() {
        let whole = "abcdef12".repeat(5);
        let printed = r#"{"git_commit_id":"abcdef1"}"#;
        let revision = |id: &str| format!(r#"{{"vcs.ref.head.revision":"{id}"}}"#);
        assert_eq!(commit_of(printed, &revision(&whole)), whole);
        assert_eq!(commit_of(printed, &revision("abcdef123")), "abcdef1");
        assert_eq!(commit_of(printed, &revision("HEAD")), "abcdef1");
        assert_eq!(commit_of("{}", &revision(&whole)), whole);
        assert_eq!(commit_of("{}", &revision("abcdef123")), "abcdef123");
        let both = format!(r#"{{"git_commit_id":"x","vcs.ref.head.revision":"{whole}"}}"#);
        assert_eq!(commit_of(&both, "{}"), whole);
        // What was checked out when the process began is no commit of this call.
        let captured = captured(export(&revision(&whole), [result("{}", "{}")]));
        assert_eq!(captured.commit_claims, []);
    }

    #[test]
    fn the_repository_is_named_by_its_url_or_its_owner() {
        let named = |resource: &str, changes: &str| {
            let parameters = r#"{"git_commit_id":"abcdef1"}"#;
            let repository = the_claim(resource, result(parameters, changes)).repository;
            repository.map(|named| {
                let host = named.host.map(String::from).unwrap_or_default();
                (named.provider, host, String::from(named.name))
            })
        };
        let own = |host: &str| Some((None, host.to_owned(), "own/repo".to_owned()));
        for url in [
            "https://GitHub.com/Own/Repo.git",
            "https://user:secret@github.com:8443/own/repo/",
            "ssh://git@github.com:22/own/repo.git",
            "git@github.com:own/repo.git",
        ] {
            let attribute = format!(r#"{{"vcs.repository.url.full":"{url}"}}"#);
            assert_eq!(named("{}", &attribute), own("github.com"), "{url}");
            assert_eq!(named(&attribute, "{}"), own("github.com"), "{url}");
        }
        for url in [
            "repo",
            "https://github.com/repo",
            "https://git hub.com/own/repo",
            "/own/repo",
        ] {
            let attribute = format!(r#"{{"vcs.repository.url.full":"{url}"}}"#);
            assert_eq!(named("{}", &attribute), None, "{url}");
        }
        let parts = r#"{"vcs.owner.name":"Own","vcs.repository.name":"Repo"}"#;
        assert_eq!(named("{}", parts), own(""));
        let github = changed(parts, r#"{"vcs.provider.name":"GitHub"}"#);
        let provider = named("{}", &github).unwrap().0;
        assert_eq!(provider, Some(RepositoryProvider::Github));
        assert_eq!(named("{}", r#"{"vcs.repository.name":"repo"}"#), None);
    }

    #[test]
    fn the_result_still_completes_its_decision() {
        let asked = r#"{"session.id":"s-1","decision":"accept","source":"config",
            "tool_name":"Edit","tool_use_id":"tu1"}"#;
        let input = r#"{"tool_input":"{\"file_path\":\"/w/a.py\"}"}"#;
        let records = [
            event("claude_code.tool_decision", asked),
            result(r#"{"git_commit_id":"abcdef1"}"#, input),
        ];
        assert_eq!(the_decision(records.clone()).file_path, "/w/a.py");
        assert_eq!(captured_records(records).commit_claims.len(), 1);
    }
}
