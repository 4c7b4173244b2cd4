//! Every command that a page, an advice or a hint names can be run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::Cli;
use crate::help::command;

/// How the name of the program begins a command.
const PROGRAM: &str = "svc ";
/// How texts begin that name the program and no command.
const NAMES: [&str; 5] = [
    "svc must be ",
    "svc rows ",
    "svc ci outcome cursor ",
    "svc console",
    "svc demo: ",
];
/// What stands for a value that is only known when the program runs.
const VALUE: &str = "VALUE";

/// Returns whether a word stands for a value.
fn is_placeholder(word: &str) -> bool {
    let has = |test: fn(&char) -> bool| word.chars().any(|char| test(&char));
    has(char::is_ascii_uppercase) && !has(char::is_ascii_lowercase)
}

/// Splits a command at spaces outside quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for char in line.chars() {
        match (char, quote) {
            ('\'' | '"', None) => quote = Some(char),
            (char, Some(open)) if char == open => quote = None,
            (' ', None) => words.push(String::new()),
            (char, _) => words.last_mut().unwrap().push(char),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns what is wrong with a command. Prose may leave out what a command needs.
fn fault(line: &str, is_whole: bool) -> Option<String> {
    let words = words(line);
    if words.get(1).is_some_and(|word| is_placeholder(word)) {
        return None;
    }
    let matches = command().try_get_matches_from(words);
    let error = matches
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .err()?;
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    let name = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => name.as_str(),
        _ => "",
    };
    let is_right = match error.kind() {
        ErrorKind::InvalidSubcommand => is_placeholder(name),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            is_placeholder(value) || (value.is_empty() && !is_whole)
        }
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !is_whole,
        _ => false,
    };
    (!is_right).then(|| {
        error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

/// Returns the command in a line of a shell, without the settings before it and what follows it.
fn of_shell(line: &str) -> Option<String> {
    let line = replaced(line.trim().trim_start_matches("- "), "$(", ")");
    let mut line = line.trim();
    while let Some((first, rest)) = line.split_once(' ')
        && first.contains('=')
        && first.starts_with(|char: char| char.is_ascii_uppercase())
    {
        line = rest.trim_start();
    }
    let ends = [" #", " >", " |", " &&", ";"];
    let end = ends.iter().filter_map(|end| line.find(end)).min();
    let command = line[..end.unwrap_or(line.len())].trim();
    // Of alternatives, the first one.
    let first = |word: &'_ str| word.split('|').next().unwrap_or_default().to_owned();
    let words: Vec<String> = command.split(' ').map(first).collect();
    command.starts_with(PROGRAM).then(|| words.join(" "))
}

/// Returns the text with a value in place of what stands between these two.
fn replaced(text: &str, open: &str, close: &str) -> String {
    let mut parts = text.split(open);
    let mut line = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after = part.split_once(close).map_or("", |(_, after)| after);
        // What is added to a word is an option or its end.
        if line.is_empty() || line.ends_with([' ', '"', '\'', '=']) {
            line += VALUE;
        }
        line += after;
    }
    line
}

/// Returns the commands between backticks.
fn in_backticks(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(of_shell).collect()
}

/// Returns the commands of a page, and whether each is a line of its own.
fn of_page(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            let quoted = || line.split('"').find_map(of_shell);
            let command = of_shell(line).or_else(quoted);
            found.extend(command.map(|line| (line, true)));
        } else {
            found.extend(in_backticks(line).into_iter().map(|line| (line, false)));
        }
    }
    found
}

/// Returns the texts of a source file, tests left out.
fn texts(source: &str) -> Vec<String> {
    let source = source
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let source = source.replace("'\"'", "' '");
    let mut code = String::new();
    let mut texts = Vec::new();
    for line in source.lines() {
        match line.trim_start().strip_prefix("//") {
            Some(comment) => texts.extend(in_backticks(comment)),
            None => code.extend([line, "\n"]),
        }
    }
    let mut rest = &*code;
    while let Some((before, after)) = rest.split_once('"') {
        let hashes = before.len() - before.trim_end_matches('#').len();
        let is_raw = before.trim_end_matches('#').ends_with('r');
        let (text, end) = if is_raw {
            let end = after.find(&format!("\"{}", "#".repeat(hashes)));
            let end = end.unwrap_or(after.len());
            (after[..end].to_owned(), end)
        } else {
            literal(after)
        };
        texts.push(replaced(&text, "{", "}"));
        rest = after.get(end + 1..).unwrap_or_default();
    }
    texts
}

/// Returns the text of a literal and its length in the source.
fn literal(source: &str) -> (String, usize) {
    let mut text = String::new();
    let mut chars = source.char_indices().peekable();
    while let Some((place, char)) = chars.next() {
        match char {
            '"' => return (text, place),
            '\\' => match chars.next() {
                Some((_, '\n')) => {
                    while chars.next_if(|(_, char)| char.is_whitespace()).is_some() {}
                }
                Some((_, 'n')) => text.push('\n'),
                Some((_, char)) => text.push(char),
                None => {}
            },
            char => text.push(char),
        }
    }
    (text, source.len())
}

/// Returns the commands in a text for people: between backticks, or from the start of a sentence or
/// a colon to the end of the clause.
fn of_text(text: &str) -> Vec<String> {
    if text.contains('`') {
        return in_backticks(text);
    }
    let begins = ["", ": ", "? ", "; ", "run ", ", "];
    let mut found = Vec::new();
    for (place, _) in text.match_indices(PROGRAM) {
        let before = &text[..place];
        let begins = begins.iter().any(|begin| match *begin {
            "" => before.is_empty() || before.ends_with('\n'),
            begin => before.ends_with(begin),
        });
        let command = &text[place..];
        if NAMES.iter().any(|name| command.starts_with(name)) {
            continue;
        }
        let ends = [", ", ". ", "\n", ")", " =>", " ("];
        let end = ends.iter().filter_map(|end| command.find(end)).min();
        let command =
            command[..end.unwrap_or(command.len())].trim_end_matches(['.', ',', ':', '?']);
        let is_name = command[PROGRAM.len()..].starts_with(|char: char| char.is_ascii_lowercase());
        found.extend((begins && is_name).then(|| of_shell(command)).flatten());
    }
    found
}

/// Returns the files below a folder with this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => files(&path, ending),
            Some(extension) if extension == ending => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn every_command_that_a_page_or_a_text_names_can_be_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages = files(&root.join("docs"), "md");
    pages.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let crates = [
        "svc-cli",
        "svc-client",
        "svc-engine",
        "svc-mcp",
        "svc-model",
        "svc-model/view",
        "svc-server",
    ];
    let sources = crates
        .iter()
        .flat_map(|name| files(&root.join(name).join("src"), "rs"));
    let (mut count, mut wrong) = (0, BTreeSet::new());
    let mut check = |path: &Path, line: &str, is_whole| {
        count += 1;
        if let Some(fault) = fault(line, is_whole) {
            wrong.insert(format!("{}: {line}: {fault}", path.display()));
        }
    };
    for path in pages {
        for (line, is_whole) in of_page(&fs::read_to_string(&path).unwrap()) {
            check(&path, &line, is_whole);
        }
    }
    for path in sources.filter(|path| !path.ends_with("mentions.rs")) {
        for text in texts(&fs::read_to_string(&path).unwrap()) {
            for line in of_text(&text) {
                check(&path, &line, false);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 300, "only {count} commands were found");
}

#[test]
fn commands_are_found_and_wrong_ones_refused() {
    let page = "`svc me`, `svc quarantine log`\n```sh\nA=b svc serve   # a note\nexport B=c\n```\n";
    let found = of_page(page);
    let found: Vec<(&str, bool)> = found
        .iter()
        .map(|(line, whole)| (&**line, *whole))
        .collect();
    assert_eq!(
        found,
        [
            ("svc me", false),
            ("svc quarantine log", false),
            ("svc serve", true)
        ]
    );
    let source = "/// See `svc me`.\nf(\"run svc erase \\\n   log, twice\"); g(r#\"x: svc session {id}\"#);\n";
    let found: Vec<String> = texts(source)
        .iter()
        .flat_map(|text| of_text(text))
        .collect();
    assert_eq!(found, ["svc me", "svc erase log", "svc session VALUE"]);
    for (line, is_right) in [
        ("svc quarantine log", false),
        ("svc quarantine KIND ID --reason 'a reason'", true),
        ("svc session", true),
        ("svc me --nonsense", false),
        ("svc COMMAND --help", true),
    ] {
        assert_eq!(fault(line, false).is_none(), is_right, "{line}");
    }
    assert!(fault("svc session", true).is_some());
}
