//! The snippets, one file per source. docs/integrate and docs/agents.md contain the same text.

/// The placeholder for the URL of the service.
pub(super) const EXAMPLE_URL: &str = "https://svc.example";
/// The placeholder for the options of a hook that reads transcripts.
const EXAMPLE_HOOK: &str = "--cwd /work/app";

/// The configuration for a source of evidence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snippet {
    /// The name of the source.
    pub(super) source: &'static str,
    /// Where the snippet goes.
    pub(super) place: &'static str,
    /// The language of the snippet, as Markdown names it.
    pub(super) language: &'static str,
    /// Notes for the person who adds the snippet.
    notes: &'static [&'static str],
    template: &'static str,
}

macro_rules! snippets {
    ($(#[$about:meta])* $all:ident; $($source:literal, $file:literal, $language:literal, $place:literal, [$($note:literal),* $(,)?];)+) => {
        $(#[$about])*
        pub(super) const $all: &[Snippet] = &[$(Snippet {
            source: $source,
            place: $place,
            language: $language,
            notes: &[$($note),*],
            template: include_str!(concat!("../../../snippets/", $file)),
        }),+];
    };
}

snippets! {
    /// Every source, in the order of the guide.
    ALL;
    "claude-code", "claude-code.json", "json", "~/.claude/settings.json, or managed-settings.json for a fleet", [
        "replace YOUR_INGEST_TOKEN with an ingest token; values in env are taken literally. To keep the token out of the file, remove OTEL_EXPORTER_OTLP_HEADERS and export it in the shell that starts claude",
        "Claude Code 2.1 or newer; older versions send no decisions",
        "without OTEL_LOG_TOOL_DETAILS, decisions do not name their files",
    ];
    "claude-code --calls", "claude-code-calls.json", "json", "~/.claude/settings.json, or managed-settings.json for a fleet", [
        "OTEL_LOG_RAW_API_BODIES sends every request and response of the model: prompts, files that were read, outputs of tools. The service redacts credentials; whether content leaves the machine is your decision",
        "replace YOUR_INGEST_TOKEN with an ingest token; values in env are taken literally. To keep the token out of the file, remove OTEL_EXPORTER_OTLP_HEADERS and export it in the shell that starts claude",
        "Claude Code 2.1.214 or newer; older versions cut every body to 60 KiB, and svc capture counts them as body_truncated",
    ];
    "codex", "codex.toml", "toml", "~/.codex/config.toml", [
        "replace YOUR_INGEST_TOKEN with an ingest token; headers are taken literally. To keep it out of the file, remove the headers and export OTEL_EXPORTER_OTLP_HEADERS=\"Authorization=Bearer TOKEN\" in the shell that starts codex",
        "export OTEL_BLRP_SCHEDULE_DELAY=30000 there too: otherwise a decision and its result are often in two exports, and the decision loses its files",
        "the endpoint is the full URL, including its path",
    ];
    "copilot", "copilot.sh", "sh", "the environment that starts VS Code", [
        "the command line program copilot sends traces and metrics only: no decision of it arrives",
        "SVC_TOKEN must hold an ingest token; the shell expands it when it runs these lines",
        "metrics go to the same URL, which does not accept them: their exporter logs an error, with no other effect",
    ];
    "cursor", "cursor.json", "json", "~/.cursor/hooks.json", [
        "svc must be on the PATH of Cursor, and logged in: svc login URL --capture",
    ];
    "gemini-cli", "gemini-cli.json", "json", "~/.gemini/settings.json", [
        "export OTEL_EXPORTER_OTLP_HEADERS=\"Authorization=Bearer TOKEN\" with an ingest token in the shell that starts gemini: its settings have no place for it",
        "logPrompts sends every request and response of the model. With false, only its usage arrives: tokens and durations",
    ];
    "otel", "otel.sh", "sh", "the environment that starts your program", [
        "SVC_TOKEN must hold an ingest token; the shell expands it when it runs these lines",
        "the last two lines ask OpenTelemetry's instrumentations to record what was said; without them, only the usage of models arrives. Other instrumentations have settings of their own",
        "your program must set session.id or gen_ai.conversation.id on its spans or its resource: calls without a Session are skipped (missing_session)",
    ];
    "litellm", "litellm.yaml", "yaml", "the proxy's config.yaml", [
        "LiteLLM 1.108 or newer; older versions lose calls",
        "replace YOUR_INGEST_TOKEN with an ingest token. To keep it out of the file, replace headers by headers: {} and set GENERIC_LOGGER_HEADERS=\"Authorization=Bearer TOKEN\", which applies to every generic logger",
        "five retries bridge an outage of about 30 seconds, max_retries: 8 about 4 minutes; without retry_delay there is no pause between them",
    ];
    "github", "github.sh", "sh", "a shell with gh, logged in as an administrator of the repository", [
        "SVC_FORGE_WEBHOOK_SECRET must equal the service's setting of the same name",
    ];
    "gitea", "gitea.sh", "sh", "a shell", [
        "GITEA_URL is Gitea's address, GITEA_TOKEN a token that may write repository hooks, SVC_FORGE_WEBHOOK_SECRET the service's setting of the same name",
        "set the service's SVC_FORGE_HOST to Gitea's host",
    ];
    "forgejo", "forgejo.sh", "sh", "a shell", [
        "FORGEJO_URL is Forgejo's address, FORGEJO_TOKEN a token that may write repository hooks, SVC_FORGE_WEBHOOK_SECRET the service's setting of the same name",
        "set the service's SVC_FORGE_HOST to Forgejo's host",
        "outcomes of Forgejo Actions come from svc ci report in the workflow",
    ];
    "gitlab-ci", "gitlab-ci.yml", "yaml", ".gitlab-ci.yml", [
        "SVC_TOKEN is a masked variable of the project or group that holds an ingest token; the job's image must contain svc",
        "a project in a subgroup needs --repo OWNER/NAME",
        "GitLab does not know the forge's number of a repository that it mirrors: set SVC_REPOSITORY_ID and SVC_REPOSITORY_HOST as variables of the project",
    ];
    "github-actions", "github-actions.yml", "yaml", ".github/workflows/svc.yml, on the default branch", [
        "only needed without GitHub's webhook; list the workflows to report",
        "SVC_TOKEN is a secret of the repository or organization that holds an ingest token; svc must be on the PATH of the runner",
    ];
    "jenkins", "jenkins.groovy", "groovy", "Jenkinsfile", [
        "svc-ingest-token is a credential of kind Secret text; svc must be on the PATH of the agent",
        "set SVC_REPOSITORY_ID to the forge's number of the repository: Jenkins does not know it",
    ];
    "circleci", "circleci.yml", "yaml", ".circleci/config.yml", [
        "the context svc has SVC_TOKEN with an ingest token; the job's image must contain svc",
        "pipeline.git.repo_id exists in pipelines of CircleCI's GitHub App; elsewhere, replace it with the repository's number",
    ];
    "buildkite", "buildkite.sh", "sh", ".buildkite/hooks/post-command, executable", [
        "set SVC_TOKEN to an ingest token in the agent's environment hook or with a secrets plugin; svc must be on the PATH of the agent",
        "set SVC_REPOSITORY_ID to the forge's number of the repository: Buildkite does not know it",
    ];
    "otel-collector", "otel-collector.yaml", "yaml", "the Collector's configuration", [
        "SVC_TOKEN in the Collector's environment must hold an ingest token",
    ];
}

snippets! {
    /// Every agent that can read evidence, in the order of its guide.
    AGENTS;
    "mcp-claude-code", "mcp-claude-code.sh", "sh", "a shell with claude", [
        "SVC_RETRIEVAL_TOKEN is the token that the operator gave you; claude stores its value in its own file",
        "the service needs SVC_ENABLE_MCP=true; without it: claude mcp add svc --env SVC_URL=https://svc.example --env SVC_TOKEN=\"$SVC_RETRIEVAL_TOKEN\" -- svc mcp",
    ];
    "mcp-codex", "mcp-codex.sh", "sh", "a shell with codex", [
        "codex reads SVC_RETRIEVAL_TOKEN, the token that the operator gave you, from its environment",
        "the service needs SVC_ENABLE_MCP=true; without it: codex mcp add svc --env SVC_URL=https://svc.example --env SVC_TOKEN=\"$SVC_RETRIEVAL_TOKEN\" -- svc mcp",
    ];
    "mcp-cursor", "mcp-cursor.json", "json", "~/.cursor/mcp.json, or .cursor/mcp.json of a project", [
        "Cursor reads SVC_RETRIEVAL_TOKEN, the token that the operator gave you, from its environment",
        "the service needs SVC_ENABLE_MCP=true; without it, replace url and headers with the command svc, the argument mcp, and env with SVC_URL and, as SVC_TOKEN, the retrieval token: without them svc mcp uses the token of whoever is logged in",
    ];
    "mcp-vscode", "mcp-vscode.sh", "sh", "a shell with code", [
        "VS Code reads SVC_RETRIEVAL_TOKEN, the token that the operator gave you, from its environment",
        "the service needs SVC_ENABLE_MCP=true; without it: code --add-mcp '{\"name\":\"svc\",\"command\":\"svc\",\"args\":[\"mcp\"],\"env\":{\"SVC_URL\":\"https://svc.example\",\"SVC_TOKEN\":\"${env:SVC_RETRIEVAL_TOKEN}\"}}'",
    ];
}

snippets! {
    /// Every agent whose hooks send its transcripts.
    TRANSCRIPTS;
    "claude-code-transcripts", "claude-code-transcripts.json", "json", "~/.claude/settings.json, beside the hooks that it has", [
        "svc must be on the PATH of Claude Code, and logged in: svc login URL --capture",
        "what was said in Sessions of this folder is sent: prompts, files that were read, outputs of tools. The service redacts credentials",
        "what was before: svc import claude-code --cwd DIR",
    ];
    "codex-transcripts", "codex-transcripts.json", "json", "~/.codex/hooks.json, beside the hooks that it has", [
        "svc must be on the PATH of Codex, and logged in: svc login URL --capture",
        "Codex asks once whether the hook may run; versions that have hooks behind a flag need codex_hooks = true under [features] of config.toml",
        "what was said in Sessions of this folder is sent: prompts, files that were read, outputs of tools. The service redacts credentials",
        "what was before: svc import codex --cwd DIR",
    ];
}

/// The sources that usually run on other machines.
const ELSEWHERE: [&str; 8] = [
    "github",
    "gitea",
    "forgejo",
    "gitlab-ci",
    "github-actions",
    "jenkins",
    "circleci",
    "buildkite",
];

/// The paragraph for AGENTS.md or CLAUDE.md that tells an agent when to use the tools.
pub(super) const PARAGRAPH: &str = include_str!("../../../snippets/mcp-paragraph.md");

impl Snippet {
    /// Returns whether the snippet sets up an agent that reads evidence.
    pub(super) fn asks(&self) -> bool {
        AGENTS.iter().any(|agent| agent.source == self.source)
    }

    /// Returns whether the snippet has hooks that read transcripts.
    pub(super) fn reads_transcripts(&self) -> bool {
        let mut all = TRANSCRIPTS.iter();
        all.any(|snippet| snippet.source == self.source)
    }

    /// Returns the text with these options of its hooks, which are words of a shell.
    pub(super) fn text_with(&self, options: &str) -> String {
        // The command is a text of JSON.
        let options = options.replace('\\', r"\\").replace('"', r#"\""#);
        self.template.replace(EXAMPLE_HOOK, &options)
    }

    /// Returns whether what is set up runs on other machines: a forge, or the runners of a CI system.
    pub(super) fn is_elsewhere(&self) -> bool {
        ELSEWHERE.contains(&self.source)
    }

    /// Returns the text, for the service at this URL.
    pub(super) fn text(&self, url: &str) -> String {
        self.template.replace(EXAMPLE_URL, url)
    }

    /// Returns the notes, for the service at this URL.
    pub(super) fn notes(&self, url: &str) -> Vec<String> {
        let notes = self.notes.iter();
        notes.map(|note| note.replace(EXAMPLE_URL, url)).collect()
    }
}

/// What an option adds to a source stands after its name.
const CALLS: &str = " --calls";

/// Returns the snippet of a source that also sends what was said, if it has one of its own.
pub(super) fn with_calls(source: &str) -> Option<Snippet> {
    of(&[source, CALLS].concat())
}

/// Returns the snippet of a source.
pub(super) fn of(source: &str) -> Option<Snippet> {
    let mut snippets = ALL.iter().chain(AGENTS).chain(TRANSCRIPTS);
    snippets.find(|snippet| snippet.source == source).copied()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use saphyr_parser::Parser;
    use svc_model::json::Json;

    use super::*;

    const GUIDE_OF_AGENTS: &str = include_str!("../../../../docs/agents.md");

    fn all() -> impl Iterator<Item = &'static Snippet> {
        ALL.iter().chain(AGENTS).chain(TRANSCRIPTS)
    }

    #[test]
    fn the_guide_has_every_snippet() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/integrate");
        let pages = fs::read_dir(folder).unwrap();
        let pages = pages.map(|page| fs::read_to_string(page.unwrap().path()).unwrap());
        let guide_of_sources: String = pages.collect();
        for snippet in all() {
            let command = format!("`svc install {}`", snippet.source);
            let guide = if snippet.asks() {
                GUIDE_OF_AGENTS
            } else {
                &guide_of_sources
            };
            let text = snippet.text(EXAMPLE_URL);
            let block = format!("```{}\n{text}```\n", snippet.language);
            assert!(
                guide.contains(&block),
                "put this into the guide, at {}:\n{block}",
                snippet.source
            );
            assert!(guide.contains(&command), "{command}");
        }
        let paragraph = format!("```markdown\n{PARAGRAPH}```\n");
        assert!(GUIDE_OF_AGENTS.contains(&paragraph), "{paragraph}");
    }

    #[test]
    fn an_agent_is_set_up_by_one_line() {
        for snippet in AGENTS {
            let text = snippet.text(EXAMPLE_URL);
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }

    #[test]
    fn every_snippet_names_the_service_and_contains_no_token() {
        for snippet in ALL.iter().chain(AGENTS) {
            let text = snippet.text("https://evidence.acme.dev:8443");
            assert!(
                text.contains("https://evidence.acme.dev:8443"),
                "{}",
                snippet.source
            );
            assert!(!text.contains("svc.example"), "{}", snippet.source);
            assert!(
                text.ends_with('\n') && !text.contains('\t'),
                "{}",
                snippet.source
            );
        }
        assert!(of("claude-code").is_some() && of("nobody").is_none());
        assert!(ELSEWHERE.iter().all(|source| of(source).is_some()));
    }

    #[test]
    fn the_hooks_that_read_transcripts_name_their_folder() {
        for snippet in TRANSCRIPTS {
            let text = snippet.text_with(r#"--cwd '/a "b"\c'"#);
            let hooks = text.matches("svc hook transcript ").count();
            let named = text.matches(r#" --cwd '/a \"b\"\\c'""#).count();
            assert!(hooks > 0 && named == hooks, "{text}");
            assert!(Json::parse(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn every_snippet_is_valid_in_its_language() {
        for snippet in all() {
            let text = snippet.text("http://127.0.0.1:8000");
            let parsed = match snippet.language {
                "json" => Json::parse(text.as_bytes())
                    .map(drop)
                    .map_err(|error| error.to_string()),
                "toml" => text
                    .parse::<toml::Table>()
                    .map(drop)
                    .map_err(|error| error.to_string()),
                "yaml" => Parser::new_from_str(&text)
                    .try_for_each(|event| event.map(drop))
                    .map_err(|error| error.to_string()),
                // The tests of the whole service run it, or at least let a shell parse it.
                "sh" => Ok(()),
                "groovy" if text.matches('{').count() == text.matches('}').count() => Ok(()),
                other => Err(format!("{other} is not looked at")),
            };
            assert_eq!(parsed, Ok(()), "{}:\n{text}", snippet.source);
        }
    }
}
