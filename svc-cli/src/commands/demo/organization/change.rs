//! The changes that the organization's agents and people made.

use svc_model::facts::AgentHarness;

/// Who works with which agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author {
    pub(super) user: &'static str,
    pub(super) agent: AgentHarness,
    pub(super) model: &'static str,
    pub(super) provider: &'static str,
}

const fn author(
    user: &'static str,
    agent: AgentHarness,
    model: &'static str,
    provider: &'static str,
) -> Author {
    Author {
        user,
        agent,
        model,
        provider,
    }
}

const ADA: Author = author(
    "ada",
    AgentHarness::ClaudeCode,
    "claude-sonnet-4-5",
    "anthropic",
);
const BOB: Author = author("bob", AgentHarness::Codex, "gpt-5-codex", "openai");
const EVE: Author = author("eve", AgentHarness::Pi, "qwen3-coder", "vllm");

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeFate {
    /// Its pull request was merged with a merge commit.
    Merged,
    /// It became one commit.
    Squashed,
    /// It became one commit, and its file was moved.
    SquashedElsewhere,
    /// Its commits were rebased onto the main branch.
    Rebased,
    /// Its pull request is open.
    Open,
    /// It was thrown away before anybody committed it.
    Abandoned,
}

/// What is unusual about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    None,
    /// The first proposal was refused, and a second one accepted.
    Retried,
    /// A person changed a part of it before it was committed.
    Reworked,
    /// A test failed, then passed when it was run again.
    Flaky,
    /// A test failed.
    Broken,
    /// Nobody stamped its commits.
    Unstamped,
}

/// A change: a file of code, and its tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) code: &'static str,
    pub(super) tests: &'static str,
    pub(super) author: Author,
    pub(super) way: ChangeFate,
    pub(super) oddity: Oddity,
}

macro_rules! changes {
    ($($name:literal, $title:literal, $author:ident, $way:ident, $oddity:ident;)+) => {
        /// The changes, in the order in which they were made.
        pub(super) const CHANGES: &[Change] = &[$(Change {
            name: $name,
            title: $title,
            code: include_str!(concat!("files/", $name, ".py")),
            tests: include_str!(concat!("files/test_", $name, ".py")),
            author: $author,
            way: ChangeFate::$way,
            oddity: Oddity::$oddity,
        }),+];
    };
}

changes! {
    "paging", "Page the list of orders", ADA, Merged, None;
    "currency", "Keep amounts in minor units", BOB, Squashed, None;
    "retry_policy", "Retry with a bounded wait", ADA, Squashed, Flaky;
    "stock", "Reserve all lines or none", EVE, Merged, Retried;
    "invoice", "Render invoices as text", BOB, Rebased, Reworked;
    "webhooks", "Sign what is sent to others", ADA, SquashedElsewhere, None;
    "search", "Find orders by words", EVE, Abandoned, None;
    "discount", "Grant the better discount", BOB, Open, Broken;
    "audit_log", "Record who changed what", ADA, Rebased, None;
    "rate_limit", "Limit how often a customer asks", EVE, Open, Unstamped;
}

impl Change {
    pub(super) fn code_path(&self) -> String {
        format!("orders/{}.py", self.name)
    }

    pub(super) fn tests_path(&self) -> String {
        format!("tests/test_{}.py", self.name)
    }

    /// Returns the path of the code on the main branch.
    pub(super) fn merged_path(&self) -> String {
        match self.way {
            ChangeFate::SquashedElsewhere => format!("orders/outgoing/{}.py", self.name),
            _ => self.code_path(),
        }
    }

    pub(super) fn branch(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the code as it was committed.
    pub(super) fn committed(&self) -> String {
        match self.oddity {
            Oddity::Reworked => {
                let kept = self.code.lines().filter(|line| !line.contains("weekend"));
                let kept: Vec<&str> = kept.collect();
                (kept.join("\n") + "\n")
                    .replace("heading", "top")
                    .replace("footer", "bottom")
                    .replace("lines", "items")
            }
            _ => self.code.to_owned(),
        }
    }
}
