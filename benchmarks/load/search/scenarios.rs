//! The scenarios of our own set, written by hand: what was said and done in a Session, and what
//! somebody asks about it weeks later.
//!
//! A line begins with what it is: `=` a family (name, project, language, topic), `files:` and
//! `words:` of the family, `#` a Session of it, then `u:` the user, `a:` the assistant, `t:` a tool
//! call (`TOOL | arguments`), `r:` its result, and `?` a question (`kind | query => part`). `\n` is
//! a line feed.

use crate::Failure;

/// The files with scenarios.
const FILES: [&str; 6] = [
    include_str!("scenarios/services.txt"),
    include_str!("scenarios/platform.txt"),
    include_str!("scenarios/clients.txt"),
    include_str!("scenarios/data.txt"),
    include_str!("scenarios/systems.txt"),
    include_str!("scenarios/languages.txt"),
];

/// Sessions about one component.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) project: &'static str,
    pub(crate) language: &'static str,
    pub(crate) topic: &'static str,
    pub(crate) files: Vec<&'static str>,
    pub(crate) words: Vec<&'static str>,
    pub(crate) sessions: Vec<Scene>,
}

/// What happened in one Session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) turns: Vec<Turn>,
    pub(crate) questions: Vec<Asked>,
}

/// Something that was said or done.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    User(String),
    Assistant(String),
    Tool {
        name: &'static str,
        arguments: String,
    },
    Result(String),
}

/// What is asked later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: &'static str,
    pub(crate) query: &'static str,
    pub(crate) part: &'static str,
}

/// Reads all families.
pub(crate) fn families() -> Result<Vec<Family>, Failure> {
    let mut families: Vec<Family> = Vec::new();
    for line in FILES.iter().flat_map(|file| file.lines()) {
        read(line, &mut families).ok_or_else(|| format!("not a line of a scenario: {line}"))?;
    }
    Ok(families)
}

fn read(line: &'static str, families: &mut Vec<Family>) -> Option<()> {
    let (mark, rest) = line.split_once(' ')?;
    if mark == "=" {
        let [name, project, language, topic] = fields(rest)?;
        families.push(Family {
            name,
            project,
            language,
            topic,
            ..Family::default()
        });
        return Some(());
    }
    let family = families.last_mut()?;
    match mark {
        "files:" => family.files = rest.split(", ").collect(),
        "words:" => family.words = rest.split(", ").collect(),
        "#" => family.sessions.push(Scene {
            name: rest,
            ..Scene::default()
        }),
        _ => {
            let scene = family.sessions.last_mut()?;
            match mark {
                "u:" => scene.turns.push(Turn::User(lines(rest))),
                "a:" => scene.turns.push(Turn::Assistant(lines(rest))),
                "r:" => scene.turns.push(Turn::Result(lines(rest))),
                "t:" => {
                    let (name, arguments) = rest.split_once(" | ")?;
                    let arguments = lines(arguments);
                    scene.turns.push(Turn::Tool { name, arguments });
                }
                "?" => {
                    let (kind, rest) = rest.split_once(" | ")?;
                    let (query, part) = rest.split_once(" => ")?;
                    scene.questions.push(Asked { kind, query, part });
                }
                _ => return None,
            }
        }
    }
    Some(())
}

fn fields<const N: usize>(line: &'static str) -> Option<[&'static str; N]> {
    let fields: Vec<&str> = line.split(" | ").collect();
    fields.try_into().ok()
}

fn lines(text: &str) -> String {
    text.replace("\\n", "\n")
}
