//! What surrounds the work in a Session: the prompt of the agent, reminders, files that were read,
//! logs of tests, errands on the same component, and small talk. The same seed gives the same text.

use crate::search::scenarios::Family;
use crate::search::set::fingerprint;
use crate::text::{Random, put};

/// The prompt of the agent, the same in every Session.
pub(crate) const PROMPT: &str = include_str!("scenarios/prompt.md");

/// What the agent's program adds to what the user says.
pub(crate) const REMINDER: &str = "<system-reminder>\nAs you answer the user's questions, you can use the following context. Follow the conventions of the repository. Do not create files unless they are needed for the task. Never commit unless the user asks for it. This context may or may not be relevant: do not mention it unless it is highly relevant to the task.\n</system-reminder>";

#[rustfmt::skip]
const VERBS: &[&str] = &[
    "load", "find", "build", "check", "read", "write", "update", "remove", "count", "merge",
    "parse", "open", "close", "retry", "apply", "create", "validate", "resolve", "format", "fetch",
];

#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "result", "error", "config", "value", "list", "state", "context", "request", "response", "item",
    "options", "total", "status", "record", "path", "name", "input", "output", "timeout", "client",
];

#[rustfmt::skip]
const COMMENTS: &[&str] = &[
    "The caller has checked this before", "Kept for older clients, see the changelog",
    "This is slow for large inputs, but they are rare", "An empty one is not an error here",
    "Why this order: the tests depend on it", "Decided in review: fail early",
    "Must not be called twice", "The default comes from the configuration",
    "Fixed after the incident, do not simplify", "Retried by the caller, so it has to be idempotent",
    "The timeout is that of the client", "Cached for the life of the request",
    "TODO: measure whether this matters", "The lock is held only for the lookup",
];

#[rustfmt::skip]
const ERRANDS: &[&str] = &[
    "add a test for {a} when {b} is empty", "rename {a} to something clearer in {f}",
    "why is {a} called twice in {f}?", "can we drop {b} from {f}, nobody uses it",
    "write doc comments for {a} and {b}", "the linter complains about {a}, fix it",
    "move {a} out of {f} into a module of its own", "add a metric for {t}: how often {a} fails",
    "what does {a} do with an invalid {b}?", "update the README section about {t}",
    "log the {b} whenever {a} is slow", "make {a} configurable, default as it is",
    "review my change to {t}, mostly {a}", "bump the dependencies of the {t} part",
    "there is a timeout in the {a} test on my machine", "replace the global {b} by a parameter",
    "what did we change about {t} last month?", "split the long function around {a} in {f}",
];

#[rustfmt::skip]
const REPORTS: &[&str] = &[
    "`{a}` takes the {b} from its caller now, and the tests in {f} pass.",
    "I looked at {f}: `{a}` is called from two places, once for each {b}. Nothing is wrong there.",
    "Added the test. It fails without the change and passes with it; {b} is covered too.",
    "The error came from {b}, not from `{a}`. I added a check and a message that names it.",
    "Renamed in {f} and at all of its callers. No behaviour changes.",
    "Done. {t} has a short section now, with an example of `{a}`.",
    "I would leave `{a}` as it is: the {b} is needed for older clients, and removing it saves nothing.",
    "The slow part is {b}, about a third of the time. `{a}` itself is cheap, so no cache is needed.",
    "Two findings for {t}: `{a}` ignores a failed {b}, and the retry has no limit. Both are fixed.",
    "The build is green again. The failure was a stale lock file, it had nothing to do with {t}.",
    "Moved. {f} re-exports `{a}`, so imports elsewhere stay the same.",
    "It is configurable now; the default of {b} is unchanged, and an invalid one is refused at start.",
];

#[rustfmt::skip]
const CHATTER: &[(&str, &str)] = &[
    ("commit this", "Committed, with a message that says why."),
    ("thanks, looks good", "You are welcome. Anything else?"),
    ("run the whole test suite once more", "All tests pass."),
    ("summarize what is left to do", "Nothing is left but the review."),
    ("please keep it shorter next time", "Understood, shorter answers from now on."),
    ("push it and open a pull request", "Pushed. The pull request describes the change and its tests."),
    ("ok go on", "Going on with the next step."),
    ("why did you change the formatting?", "That was the formatter. I reverted the unrelated lines."),
    ("does this need a changelog entry?", "Yes, I added a line under Fixed."),
    ("wait, stop", "Stopped. Nothing was written since the last step."),
];

/// Writes the surroundings of one family.
pub(crate) struct Surroundings<'f> {
    pub(crate) family: &'f Family,
    pub(crate) random: Random,
}

impl<'f> Surroundings<'f> {
    pub(crate) fn new(family: &'f Family, session: &str) -> Self {
        Self {
            family,
            random: Random::new(fingerprint(session)),
        }
    }

    /// Returns what a project says about itself to every agent.
    pub(crate) fn project(&self) -> String {
        let Family { project, .. } = self.family;
        format!(
            "# {project}\n\nContents of CLAUDE.md of {project}: run the tests of what you change, \
             not of everything. Errors are sentences. Decisions belong into docs/decisions with \
             the reason. A failing test comes before its fix. Timeouts, retries and limits are \
             settings with defaults. Ask before you add a dependency or change a migration."
        )
    }

    pub(crate) fn file(&mut self) -> &'f str {
        pick(&mut self.random, &self.family.files)
    }

    fn word(&mut self) -> &'f str {
        pick(&mut self.random, &self.family.words)
    }

    /// Returns what the user asks for, and what the assistant reports, about anything but the
    /// scenes of the family.
    pub(crate) fn errand(&mut self) -> (String, String) {
        let errand = pick(&mut self.random, ERRANDS);
        let report = pick(&mut self.random, REPORTS);
        let (a, b, file) = (self.word(), self.word(), self.file());
        let fill = |template: &str| {
            let text = template.replace("{a}", a).replace("{b}", b);
            text.replace("{f}", file).replace("{t}", self.family.topic)
        };
        (fill(errand), fill(report))
    }

    pub(crate) fn chatter(&mut self) -> (&'static str, &'static str) {
        pick(&mut self.random, CHATTER)
    }

    /// Returns a number of bytes: mostly few, sometimes many.
    fn size(&mut self, most: u64) -> usize {
        let draws = [(); 3].map(|()| self.random.below(most));
        let least = draws.into_iter().min().unwrap_or_default();
        1_000 + least as usize
    }

    /// Returns some lines of a file. Every Session that reads it sees the same ones.
    pub(crate) fn read(&mut self, file: &str) -> String {
        let whole = self.code(file);
        let lines: Vec<&str> = whole.lines().collect();
        let wanted = self.size(40_000) / 40;
        let begin = self.random.below(lines.len() as u64 / 2 + 1) as usize;
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate().skip(begin).take(wanted) {
            put(&mut text, format_args!("{:>6}\t{line}\n", number + 1));
        }
        text
    }

    fn code(&self, file: &str) -> String {
        let mut random = Random::new(fingerprint(&format!("{} {file}", self.family.name)));
        let mut text = String::new();
        let style = Style::of(self.family.language);
        let mut function = 0;
        while text.len() < 44_000 {
            function += 1;
            style.function(&mut random, &self.family.words, function, &mut text);
        }
        text
    }

    /// Returns what a run of tests prints.
    pub(crate) fn log(&mut self) -> String {
        let size = self.size(90_000);
        let mut text = format!("running the tests of {}\n", self.family.topic);
        let mut number = 0;
        while text.len() < size {
            number += 1;
            let (verb, noun) = (pick(&mut self.random, VERBS), pick(&mut self.random, NOUNS));
            let word = self.word();
            let (one, two) = (self.random.below(60), self.random.below(1_000));
            match self.random.below(12) {
                0 => put(
                    &mut text,
                    format_args!("WARN {word}: {verb} {noun} took {two} ms\n"),
                ),
                1 => put(
                    &mut text,
                    format_args!(
                        "2026-01-{:02}T10:{one:02}:{:02}.{two:03}Z DEBUG {word} {noun}={two}\n",
                        one % 28 + 1,
                        two % 60
                    ),
                ),
                _ => put(
                    &mut text,
                    format_args!("test {word}::{verb}_{noun}_{number} ... ok (0.{two:03}s)\n"),
                ),
            }
        }
        put(&mut text, format_args!("\n{number} passed; 0 failed\n"));
        text
    }

    /// Returns what a search for a word prints.
    pub(crate) fn matches(&mut self) -> (String, String) {
        let word = self.word();
        let mut text = String::new();
        for _ in 0..self.random.between(2, 40) {
            let (verb, noun) = (pick(&mut self.random, VERBS), pick(&mut self.random, NOUNS));
            let (file, line) = (self.file(), self.random.below(900));
            put(
                &mut text,
                format_args!("{file}:{line}:    {verb}_{noun}({word})\n"),
            );
        }
        (word.to_owned(), text)
    }
}

/// How code of a language looks.
struct Style {
    function: &'static str,
    comment: &'static str,
    end: &'static str,
}

impl Style {
    fn of(language: &str) -> Self {
        let (function, comment, end) = match language {
            "rust" => ("pub fn {} -> Result<(), Error> {", "//", "}"),
            "python" => ("def {}:", "#", ""),
            "go" => ("func {} error {", "//", "}"),
            "yaml" | "hcl" | "nix" | "bash" => ("{}: {", "#", "}"),
            "sql" => ("create function {} as $$", "--", "$$;"),
            "kotlin" | "scala" | "swift" => ("fun {} {", "//", "}"),
            "java" | "c" | "cpp" => ("static int {} {", "//", "}"),
            _ => ("export function {} {", "//", "}"),
        };
        Self {
            function,
            comment,
            end,
        }
    }

    fn function(&self, random: &mut Random, words: &[&str], number: usize, text: &mut String) {
        let (verb, word) = (pick(random, VERBS), pick(random, words));
        let name = format!("{verb}_{word}_{number}({})", pick(random, NOUNS));
        put(
            text,
            format_args!("{} {}.\n", self.comment, pick(random, COMMENTS)),
        );
        put(
            text,
            format_args!("{}\n", self.function.replace("{}", &name)),
        );
        for _ in 0..random.between(4, 14) {
            let (verb, noun) = (pick(random, VERBS), pick(random, NOUNS));
            let (word, limit) = (pick(random, words), random.below(4_096));
            match random.below(5) {
                0 => put(
                    text,
                    format_args!("    if {noun} > {limit} return {verb}_{noun}\n"),
                ),
                1 => put(
                    text,
                    format_args!(
                        "    {} {} for {word}\n",
                        self.comment,
                        pick(random, COMMENTS)
                    ),
                ),
                2 => put(text, format_args!("    log(\"{verb} {noun}\", {word})\n")),
                _ => put(text, format_args!("    {noun} = {word}.{verb}({noun})\n")),
            }
        }
        put(text, format_args!("{}\n", self.end));
    }
}

/// Returns any of some things.
pub(crate) fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}
