use std::collections::BTreeSet;

use clap::Args;
use svc_engine::clock::Clock;
use svc_model::endpoint;
use svc_model::id::SessionId;
use svc_model::query::{
    CommitCiOutcome, CommitEvidence, CommitRepository, CommitRequest, InferenceSkip, LinkSkip,
    LinkedCommit, NamedCommit, ObservedSession, ThroughPullRequest,
};
use svc_model::time::Instant;
use svc_view::{SHELL, link_reason, linked_sessions, model, none_at, reason, relation, through_on};

use super::moment::optional_boundary;
use super::repository::{self, RepositoryOptions};
use super::{revision, service, suggestion};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape, relative};
use crate::product::product;

#[derive(Debug, Args)]
pub(crate) struct Commit {
    /// The commit: its full id, or inside a clone any name that git knows, such as HEAD or a short
    /// id. If no fact names it, the repository of the clone's origin is searched.
    #[arg(value_name = "COMMIT")]
    sha: String,

    /// The moment up to which facts count, itself included: RFC 3339 with an offset, or like 7d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,

    #[command(flatten)]
    repository: RepositoryOptions,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Commit {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let mut request = CommitRequest {
            commit_sha: revision::commit("the commit", &self.sha)?,
            repository: self.repository.selector()?,
            as_of: optional_boundary("--as-of", self.as_of.as_deref(), now)?,
            explain: true,
        };
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            let reply = client.call_raw::<endpoint::CommitQuery>(&request).await?;
            if !request.repository.is_empty() || reply.value.repos.is_some() {
                return Ok(reply);
            }
            // Without a fact of the commit, only the mirror of its repository may know it.
            let Some(repo) = revision::repository_of(&request.commit_sha) else {
                return Ok(reply);
            };
            request.repository.repo = Some(repo);
            Ok(client.call_raw::<endpoint::CommitQuery>(&request).await?)
        })?;
        let is_selected = !request.repository.is_empty();
        output.reply(&reply, |evidence| render(evidence, is_selected, now))?;
        let is_here = self.service.repeated().is_empty();
        output.next(&self.service, &next(&reply.value, is_here));
        Ok(())
    }
}

fn render(evidence: &CommitEvidence, is_selected: bool, now: Instant) -> String {
    let commit = evidence.commit_sha.as_str();
    let Some(repositories) = &evidence.repos else {
        let none = format!("{commit}: no attributions\n");
        return if is_selected {
            none
        } else {
            format!(
                "{none}no stored fact links it to a repository; name the repository, and its mirror is \
             searched too: svc commit {commit} --repo OWNER/NAME\n"
            )
        };
    };
    let attributed = if evidence.attributed {
        "observed".to_owned()
    } else {
        "no Session observed".to_owned() + &elsewhere(evidence)
    };
    let mut lines = vec![format!("{commit}: {attributed}\n")];
    for (reason, count) in evidence.repository_skipped.iter().flatten() {
        lines.push(format!("skipped: {count} {reason}\n"));
    }
    lines.extend(not_looked_for(evidence));
    lines.extend(not_followed(evidence));
    for outcome in evidence.unresolved_ci_outcomes.iter().flatten() {
        lines.push(format!("unresolved {}", ci(outcome, now)));
    }
    for repository in repositories {
        lines.push("\n".to_owned());
        lines.extend(of_repository(repository, now));
    }
    lines.concat()
}

/// Says how many Sessions were observed at commits that this one contains the work of.
pub(super) fn elsewhere(evidence: &CommitEvidence) -> String {
    match contained(evidence).len() {
        0 => String::new(),
        1 => " at it; 1 at a commit whose work it has".to_owned(),
        sessions => format!(" at it; {sessions} at commits whose work it has"),
    }
}

/// Says how often a Session was observed, and from what if it was no note.
fn observed(session: &ObservedSession) -> String {
    let times = session.session_commit_observation_ids.len();
    match &session.source {
        Some(source) => format!("{times} observed from {source}"),
        None => format!("{times} observed"),
    }
}

fn of_repository(repository: &CommitRepository, now: Instant) -> Vec<String> {
    let named = repository::named(&repository.repo, repository.repository_identity.as_ref());
    let mut lines = vec![named + "\n"];
    let others = SHELL.other_names(repository);
    lines.extend(others.map(|others| format!("  also named {others}\n")));
    for session in &repository.observed_sessions {
        lines.push(format!(
            "  session {}  ({})\n",
            escape(session.session_id.as_str()),
            observed(session)
        ));
    }
    lines.extend(linked(repository));
    lines.extend(inferred(repository));
    lines.extend(
        repository
            .ci_outcomes
            .iter()
            .map(|outcome| format!("  {}", ci(outcome, now))),
    );
    lines
}

/// Returns the links to other commits, separate from what was observed at this one; empty if there
/// are none.
pub(super) fn linked(repository: &CommitRepository) -> Vec<String> {
    let mut lines = Vec::new();
    links(
        &repository.through_pull_requests,
        &repository.named_commits,
        "  ",
        &mut lines,
    );
    lines
}

fn links(
    through: &[ThroughPullRequest],
    named: &[NamedCommit],
    margin: &str,
    lines: &mut Vec<String>,
) {
    let inner = format!("{margin}  ");
    for link in through {
        lines.push(format!("{margin}{}\n", escape(&through_on(link))));
        let before = lines.len();
        for commit in &link.commits {
            at_commit(commit, &inner, lines);
            let (through, named) = (&commit.through_pull_requests, &commit.named_commits);
            if !(through.is_empty() && named.is_empty()) {
                lines.push(format!("{inner}commit {}\n", commit.commit_sha));
                links(through, named, &format!("{inner}  "), lines);
            }
        }
        if lines.len() == before {
            lines.push(format!("{inner}{}\n", none_at(link.commits.len())));
        }
    }
    for NamedCommit {
        relation: how,
        commit,
    } in named
    {
        let how = escape(relation(how));
        lines.push(format!("{margin}{how} {}\n", commit.commit_sha));
        at_commit(commit, &inner, lines);
        let (through, named) = (&commit.through_pull_requests, &commit.named_commits);
        links(through, named, &inner, lines);
    }
}

fn at_commit(commit: &LinkedCommit, margin: &str, lines: &mut Vec<String>) {
    let sessions = commit.observed_sessions.iter();
    lines.extend(sessions.map(|session| {
        format!(
            "{margin}session {} at {}  ({})\n",
            escape(session.session_id.as_str()),
            commit.commit_sha,
            observed(session)
        )
    }));
}

/// Returns why links to other commits were not followed, or not all of them.
pub(super) fn not_followed(evidence: &CommitEvidence) -> Vec<String> {
    let skipped = evidence.links_skipped.iter();
    let skipped = skipped.flat_map(|skipped| skipped.iter().collect::<Vec<_>>());
    skipped
        .map(|(skip, count)| {
            format!(
                "links not followed: {count} {skip} ({})\n",
                link_reason(skip)
            )
        })
        .collect()
}

/// Returns the inferred calls, separate from what was observed; empty if there are none.
pub(super) fn inferred(repository: &CommitRepository) -> Vec<String> {
    if repository.inference_calls.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec!["  inferred from what calls wrote; a guess, not an observation:\n".to_owned()];
    for call in &repository.inference_calls {
        let score = call
            .similarity_score
            .map(|score| format!(" score={score:.2}"));
        let files = call.attributed_files.map(|files| format!(" files={files}"));
        lines.push(format!(
            "    call {}  {}/{}  session={}  attribution={}{}{} (inferred call/file)\n",
            call.inference_call_id,
            product(&call.gateway_provider),
            escape(&model(
                call.model_provider.as_deref(),
                call.model.as_deref()
            )),
            escape(call.session_id.as_str()),
            call.attribution_source,
            score.unwrap_or_default(),
            files.unwrap_or_default(),
        ));
    }
    if repository.session_commit_unobserved > 0 {
        lines.push(format!(
            "    session_commit_unobserved: {}\n",
            repository.session_commit_unobserved
        ));
    }
    if repository.decisions > 0 {
        lines.push(format!("    decisions: {}\n", repository.decisions));
    }
    lines
}

/// Returns why calls were not searched for, or not in the whole commit.
pub(super) fn not_looked_for(evidence: &CommitEvidence) -> Vec<String> {
    let skipped = evidence.inference_skipped.iter();
    let skipped = skipped.flat_map(|skipped| skipped.iter().collect::<Vec<_>>());
    skipped
        .map(|(skip, count)| {
            format!(
                "calls not searched for: {count} {skip} ({})\n",
                reason(skip)
            )
        })
        .collect()
}

fn ci(outcome: &CommitCiOutcome, now: Instant) -> String {
    let attempt = outcome
        .run_attempt
        .map_or_else(String::new, |attempt| format!("/{attempt}"));
    let superseded = outcome
        .superseded
        .as_ref()
        .map_or_else(String::new, |superseded| {
            format!("  ({})", super::ci::superseded(superseded))
        });
    format!(
        "ci {}  {}  {} {}{attempt}  {}{superseded}\n",
        outcome.result.as_str(),
        escape(&outcome.workflow_name.to_string_lossy()),
        product(&outcome.provider),
        escape(&outcome.run_id),
        relative(outcome.captured_at, now),
    )
}

/// Returns the commands to suggest next: the observed Sessions, then those at linked commits, then
/// the inferred ones, and the status of the mirrors if a mirror is the problem and may be `here`.
fn next(evidence: &CommitEvidence, is_here: bool) -> Vec<String> {
    let observed = sessions(evidence);
    let at_links = sessions_at_links(evidence);
    let guessed = guessed_sessions(evidence);
    let known: BTreeSet<&SessionId> = observed.union(&at_links).copied().collect();
    let mut next: Vec<String> = observed
        .iter()
        .chain(at_links.difference(&observed))
        .chain(guessed.difference(&known))
        .map(|session| suggestion::session(session))
        .collect();
    if is_here && is_mirror_in_the_way(evidence) {
        next.push("svc mirror status".to_owned());
    }
    next
}

/// Returns whether calls or links were not searched for because of a mirror.
fn is_mirror_in_the_way(evidence: &CommitEvidence) -> bool {
    let of_mirrors = [
        InferenceSkip::CommitDiffUnavailable,
        InferenceSkip::MirrorAbsent,
        InferenceSkip::MirrorUnreadable,
    ];
    let links_of_mirrors = [
        LinkSkip::HeadUnavailable,
        LinkSkip::HistoryUnavailable,
        LinkSkip::MirrorAbsent,
        LinkSkip::MirrorUnreadable,
    ];
    let skipped = evidence.inference_skipped.as_ref();
    let links_skipped = evidence.links_skipped.as_ref();
    skipped.is_some_and(|skipped| of_mirrors.iter().any(|skip| skipped.get(*skip) > 0))
        || links_skipped
            .is_some_and(|skipped| links_of_mirrors.iter().any(|skip| skipped.get(*skip) > 0))
}

/// Returns the Sessions at the commits that a commit leads to, each once.
pub(super) fn sessions_at_links(evidence: &CommitEvidence) -> BTreeSet<&SessionId> {
    let repositories = evidence.repos.iter().flatten();
    let commits = repositories.flat_map(CommitRepository::linked_commits);
    let sessions = commits.flat_map(|commit| &commit.observed_sessions);
    sessions.map(|session| &session.session_id).collect()
}

/// Returns the Sessions whose work a commit has, although they were observed at others, each once.
fn contained(evidence: &CommitEvidence) -> BTreeSet<&SessionId> {
    let repositories = evidence.repos.iter().flatten();
    let linked = repositories.flat_map(linked_sessions);
    linked.map(|linked| linked.session_id).collect()
}

/// Returns the Sessions of inferred calls, each once.
pub(super) fn guessed_sessions(evidence: &CommitEvidence) -> BTreeSet<&SessionId> {
    let repositories = evidence.repos.iter().flatten();
    let calls = repositories.flat_map(|repository| &repository.inference_calls);
    calls.map(|call| &call.session_id).collect()
}

/// Returns the Sessions that were observed at a commit, each once.
pub(super) fn sessions(evidence: &CommitEvidence) -> BTreeSet<&SessionId> {
    let repositories = evidence.repos.iter().flatten();
    let sessions = repositories.flat_map(|repository| &repository.observed_sessions);
    sessions.map(|session| &session.session_id).collect()
}

#[cfg(test)]
mod tests {
    use svc_model::json;
    use svc_model::query::ObservationSource;
    use svc_model::repository::CommitSha;

    use super::*;

    #[test]
    fn a_commit_shows_its_sessions_and_runs() {
        let evidence = r#"{"commit_sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","attributed":true,
            "repository_skipped":{"repository_identity_unresolved":1},
            "repos":[{"repo":"own/app","repository_identity":{"provider":"github","host":"github.com","repository_id":"9"},
            "observed_repo_slugs":["own/app","own/old"],"inference_calls":[{"inference_call_id":"96c8a2f0-0000-4000-8000-000000000003",
            "session_id":"t","gateway_provider":"gateway_a","model_provider":null,"model":"m\u001b","attribution_source":"jaccard",
            "similarity_score":0.8333333333333334,"attributed_files":2,"relationship":"inferred_call_to_file"}],"decisions":1,
            "observed_sessions":[{"session_id":"s\u001b","session_commit_observation_ids":["96c8a2f0-0000-4000-8000-000000000001"]}],
            "session_commit_unobserved":1,"ci_outcomes":[{"schema_version":2,"repository_provider":"github","repository_host":"github.com",
            "repository_id":"9","outcome_id":"96c8a2f0-0000-4000-8000-000000000002","org_id":"acme","provider":"ci_a","run_id":"r1",
            "run_attempt":2,"repo":"own/app","commit_sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","branch":"main","result":"failed",
            "workflow_name":"Build","workflow_id":null,"workflow_path":null,"run_url":null,"provider_result":null,"error_type":null,
            "reason":null,"source_event_type":null,"source_spec_version":null,"source_event_id":null,"pr_number":null,
            "captured_at":"2026-01-02T03:04:05Z"}]}],"inference_skipped":{"unsupported_diff_section":1}}"#;
        let mut evidence: CommitEvidence = json::from_slice(evidence.as_bytes()).unwrap();
        let now = Instant::parse("2026-01-05T03:04:05Z").unwrap();
        assert_eq!(
            render(&evidence, false, now),
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: observed\n\
             skipped: 1 repository_identity_unresolved\n\
             calls not searched for: 1 unsupported_diff_section (part of the diff is not text, such as a binary file)\n\
             \nown/app (github/github.com/9)\n\
             \x20 also named own/old\n\
             \x20 session s\\u{1b}  (1 observed)\n\
             \x20 inferred from what calls wrote; a guess, not an observation:\n\
             \x20   call 96c8a2f0-0000-4000-8000-000000000003  litellm/-/m\\u{1b}  session=t  \
             attribution=jaccard score=0.83 files=2 (inferred call/file)\n\
             \x20   session_commit_unobserved: 1\n\
             \x20   decisions: 1\n\
             \x20 ci failed  Build  jenkins r1/2  3d ago\n"
        );
        assert_eq!(
            next(&evidence, true),
            [r"svc session $'s\x1b'", "svc session t"]
        );
        let repository = &mut evidence.repos.as_mut().unwrap()[0];
        repository.observed_sessions[0].source = Some(ObservationSource::Telemetry.into());
        let shown = render(&evidence, false, now);
        assert!(
            shown.contains("\n  session s\\u{1b}  (1 observed from telemetry)\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_commit_shows_the_sessions_of_its_pull_request_apart_from_its_own() {
        let sha = |digit: &str| digit.repeat(40);
        let session = |id: &str| {
            format!(
                r#"{{"session_id":"{id}","session_commit_observation_ids":["96c8a2f0-0000-4000-8000-000000000001"]}}"#
            )
        };
        let evidence = format!(
            r#"{{"commit_sha":"{a}","attributed":false,"repos":[{{"repo":"own/app","repository_identity":null,
            "observed_repo_slugs":["own/app"],"inference_calls":[],"decisions":0,"observed_sessions":[],
            "session_commit_unobserved":0,"ci_outcomes":[],"through_pull_requests":[
            {{"pr_number":16,"merge_method":"squash","merge_commit_sha":"{a}","merged_at":"2026-01-02T03:04:05Z","commits":[
            {{"commit_sha":"{b}","observed_sessions":[{s}]}},
            {{"commit_sha":"{c}","observed_sessions":[],"named_commits":[{{"relation":"reverts","commit":
            {{"commit_sha":"{d}","observed_sessions":[{t}]}}}}]}}]}},
            {{"pr_number":17,"merge_method":null,"merge_commit_sha":"{a}","commits":[{{"commit_sha":"{e}","observed_sessions":[]}}]}}]}}],
            "links_skipped":{{"head_unavailable":1}}}}"#,
            a = sha("a"),
            b = sha("b"),
            c = sha("c"),
            d = sha("d"),
            e = sha("e"),
            s = session("s"),
            t = session("t"),
        );
        let evidence: CommitEvidence = json::from_slice(evidence.as_bytes()).unwrap();
        let now = Instant::parse("2026-01-05T03:04:05Z").unwrap();
        let expected = format!(
            "{a}: no Session observed at it; 1 at a commit whose work it has\n\
             links not followed: 1 head_unavailable (no mirror has that head of the pull request)\n\
             \nown/app (known by name only)\n\
             \x20 through pull request 16 (squash, merged 2026-01-02)\n\
             \x20   session s at {b}  (1 observed)\n\
             \x20   commit {c}\n\
             \x20     reverts {d}\n\
             \x20       session t at {d}  (1 observed)\n\
             \x20 through pull request 17\n\
             \x20   no Session observed at its commit\n",
            a = sha("a"),
            b = sha("b"),
            c = sha("c"),
            d = sha("d"),
        );
        assert_eq!(render(&evidence, false, now), expected);
        let commands = ["svc session s", "svc session t", "svc mirror status"];
        assert_eq!(next(&evidence, true), commands);
        assert_eq!(next(&evidence, false), commands[..2]);
    }

    #[test]
    fn a_commit_without_evidence_suggests_the_missing_selector() {
        let sha = "b".repeat(40);
        let none = CommitEvidence::none(CommitSha::new(&sha).unwrap());
        let now = Instant::from_microseconds(0).unwrap();
        let selected = render(&none, true, now);
        assert_eq!(selected, format!("{sha}: no attributions\n"));
        let anywhere = render(&none, false, now);
        assert!(anywhere.starts_with(&selected) && anywhere.contains("--repo"));
        assert!(next(&none, true).is_empty());
    }
}
