//! Conversations between a coding agent and a model, which grow from call to call.
//!
//! An agent sends its whole history with every call. So a [`Conversation`] is an opening (system
//! prompt and task) and turns. The call of a turn sends the opening and all earlier turns, and its
//! reply is the beginning of the turn. Each message can be written in two forms: as a gateway sends
//! it (the chat completions form), and in the canonical form, whose size is how the service
//! measures evidence.

use std::ops::Range;

use crate::text::{Author, put};

/// One part of a message.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    ToolCall {
        id: String,
        name: &'static str,
        arguments: Vec<(&'static str, String)>,
    },
    ToolResult {
        id: String,
        content: ToolOutput,
    },
}

/// What a tool returned: lines of text, or an object as JSON text.
#[derive(Clone, Debug)]
pub(crate) enum ToolOutput {
    Lines(String),
    Object(Vec<(&'static str, String)>),
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) role: &'static str,
    pub(crate) parts: Vec<Part>,
}

/// What the model answers in a turn, and what the agent adds before its next call.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) reply: Message,
    pub(crate) additions: Vec<Message>,
}

/// A whole session.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) opening: Vec<Message>,
    pub(crate) turns: Vec<Turn>,
}

/// What a conversation should look like.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Texts of two plans with different seeds share only their vocabulary.
    pub(crate) seed: u64,
    /// Where the numbering of the session's distinguishing words begins.
    pub(crate) first_word: u32,
    /// How many calls the session has.
    pub(crate) turns: usize,
    /// Multiplies the length of every text.
    pub(crate) scale: f64,
    /// The turns whose reply is a tool call without a sentence before it.
    pub(crate) silent: Vec<usize>,
    /// After how many turns the user says something, again and again; 0 for never.
    pub(crate) user_every: usize,
}

impl Conversation {
    /// Writes the conversation for a plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut author = Author::new(plan.seed, plan.first_word);
        let sized = |bytes: u64| (bytes as f64 * plan.scale) as usize;
        let opening = vec![
            Message {
                role: "system",
                parts: vec![Part::Text(author.prose(sized(2_400)))],
            },
            Message {
                role: "user",
                parts: vec![Part::Text(author.prose(sized(700)))],
            },
        ];
        let turns = (0..plan.turns)
            .map(|turn| {
                let mut parts = Vec::new();
                if !plan.silent.contains(&turn) {
                    let bytes = sized(author.random.between(60, 420));
                    parts.push(Part::Text(author.prose(bytes)));
                }
                let id = author.tool_call_id();
                let (call, content) = tool_use(&mut author, id.clone(), sized);
                parts.push(call);
                let mut additions = vec![Message {
                    role: "tool",
                    parts: vec![Part::ToolResult { id, content }],
                }];
                if plan.user_every > 0 && turn % plan.user_every == plan.user_every - 1 {
                    let bytes = sized(author.random.between(80, 400));
                    additions.push(Message {
                        role: "user",
                        parts: vec![Part::Text(author.prose(bytes))],
                    });
                }
                Turn {
                    reply: Message {
                        role: "assistant",
                        parts,
                    },
                    additions,
                }
            })
            .collect();
        Self { opening, turns }
    }

    /// Returns the messages that the call of a turn sends.
    pub(crate) fn input(&self, turn: usize) -> impl Iterator<Item = &Message> {
        let history = self.turns[..turn]
            .iter()
            .flat_map(|turn| std::iter::once(&turn.reply).chain(&turn.additions));
        self.opening.iter().chain(history)
    }

    /// Counts the part occurrences of the calls of these turns, including output.
    pub(crate) fn part_occurrences(&self, turns: Range<usize>) -> usize {
        turns
            .map(|turn| {
                self.input(turn)
                    .map(|message| message.parts.len())
                    .sum::<usize>()
                    + self.turns[turn].reply.parts.len()
            })
            .sum()
    }

    /// Returns the bytes of the canonical messages of these turns, over all their calls.
    pub(crate) fn canonical_bytes(&self, turns: &Range<usize>) -> usize {
        let weigh = |message: &Message| message.canonical(None).len() + 1;
        // Two brackets, and one comma fewer than messages.
        let mut input: usize = 1 + self.opening.iter().map(weigh).sum::<usize>();
        let mut total = 0;
        for (index, turn) in self.turns.iter().enumerate() {
            if turns.contains(&index) {
                total += input + turn.reply.canonical(Some(FINISH_REASON)).len() + 2;
            }
            input += weigh(&turn.reply) + turn.additions.iter().map(weigh).sum::<usize>();
        }
        total
    }
}

/// A session of Claude Code as a gateway records it: a long system prompt, the same two dozen tools
/// in every call, and long results.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) conversation: Conversation,
    /// The tools of every call, as a JSON array.
    pub(crate) tools: String,
}

impl Recorded {
    /// Writes a session whose texts have this many times their ordinary length.
    pub(crate) fn new(turns: usize, scale: f64) -> Self {
        let plan = Plan {
            seed: 17,
            first_word: 0,
            turns,
            scale,
            silent: vec![2, 5, 6, 11],
            user_every: 6,
        };
        let mut conversation = Conversation::new(&plan);
        // The prompt and the tools are long, but do not grow with the session.
        let mut author = Author::new(18, 50_000);
        conversation.opening[0].parts = vec![Part::Text(author.prose(14_000))];
        let tools: Vec<String> = (0..24).map(|index| tool(&mut author, index)).collect();
        Self {
            conversation,
            tools: format!("[{}]", tools.join(", ")),
        }
    }
}

/// Writes the definition of a tool: a long description and the schema of its arguments.
fn tool(author: &mut Author, index: usize) -> String {
    let mut out = format!(
        "{{\"type\": \"function\", \"function\": {{\"name\": \"Tool{index}\", \"description\": "
    );
    quote(&mut out, &author.prose(1_700));
    out.push_str(", \"parameters\": {\"type\": \"object\", \"properties\": {");
    for argument in 0..4 {
        if argument > 0 {
            out.push_str(", ");
        }
        put(
            &mut out,
            format_args!("\"argument_{argument}\": {{\"type\": \"string\", \"description\": "),
        );
        quote(&mut out, &author.prose(140));
        out.push('}');
    }
    out.push_str("}, \"required\": [\"argument_0\"], \"additionalProperties\": false}}}");
    out
}

/// The finish reason of every reply in these conversations.
pub(crate) const FINISH_REASON: &str = "tool_calls";

fn tool_use(author: &mut Author, id: String, sized: impl Fn(u64) -> usize) -> (Part, ToolOutput) {
    let result = sized(author.random.between(500, 2_600));
    let (name, arguments, content) = match author.random.below(4) {
        0 => (
            "read_file",
            vec![("path", author.path())],
            ToolOutput::Lines(author.code(result)),
        ),
        1 => {
            let command = author.prose(sized(90));
            (
                "run_command",
                vec![("command", command)],
                ToolOutput::Lines(author.output(result)),
            )
        }
        2 => {
            let (old, new) = (author.code(sized(280)), author.code(sized(420)));
            let arguments = vec![
                ("path", author.path()),
                ("old_text", old),
                ("new_text", new),
            ];
            (
                "edit_file",
                arguments,
                ToolOutput::Lines(author.code(result / 3)),
            )
        }
        _ => {
            let object = vec![("path", author.path()), ("matches", author.code(result))];
            (
                "search",
                vec![("pattern", author.prose(sized(40)))],
                ToolOutput::Object(object),
            )
        }
    };
    (
        Part::ToolCall {
            id,
            name,
            arguments,
        },
        content,
    )
}

impl Message {
    /// Returns the message as a gateway sends it, in the chat completions form, with the spacing of
    /// Python's JSON writer.
    pub(crate) fn wire(&self) -> String {
        let mut out = format!("{{\"role\": \"{}\", ", self.role);
        if let [Part::ToolResult { id, content }] = self.parts.as_slice() {
            put(&mut out, format_args!("\"tool_call_id\": \"{id}\", "));
            out.push_str("\"content\": ");
            match content {
                ToolOutput::Lines(text) => quote(&mut out, text),
                ToolOutput::Object(members) => quote(&mut out, &object(members)),
            }
            out.push('}');
            return out;
        }
        let mut texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::ToolCall { .. } | Part::ToolResult { .. } => None,
        });
        out.push_str("\"content\": ");
        match texts.next() {
            Some(text) => quote(&mut out, text),
            None => out.push_str("null"),
        }
        assert!(
            texts.next().is_none(),
            "a message of these conversations has one text"
        );
        let mut separator = ", \"tool_calls\": [";
        for part in &self.parts {
            if let Part::ToolCall {
                id,
                name,
                arguments,
            } = part
            {
                out.push_str(separator);
                put(
                    &mut out,
                    format_args!(
                        "{{\"id\": \"{id}\", \"type\": \"function\", \"function\": {{\"name\": \"{name}\", \"arguments\": "
                    ),
                );
                quote(&mut out, &object(arguments));
                out.push_str("}}");
                separator = ", ";
            }
        }
        out.push_str(if separator == ", " { "]}" } else { "}" });
        out
    }

    /// Returns the message in the canonical form of stored evidence: compact ASCII JSON.
    pub(crate) fn canonical(&self, finish_reason: Option<&str>) -> String {
        let mut out = format!("{{\"role\":\"{}\",\"parts\":[", self.role);
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match part {
                Part::Text(text) => {
                    out.push_str("{\"type\":\"text\",\"content\":");
                    quote(&mut out, text);
                }
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } => {
                    put(
                        &mut out,
                        format_args!(
                            "{{\"type\":\"tool_call\",\"id\":\"{id}\",\"name\":\"{name}\",\"arguments\":"
                        ),
                    );
                    out.push_str(&object(arguments));
                }
                Part::ToolResult { id, content } => {
                    put(
                        &mut out,
                        format_args!(
                            "{{\"type\":\"tool_call_response\",\"id\":\"{id}\",\"result\":"
                        ),
                    );
                    match content {
                        ToolOutput::Lines(text) => quote(&mut out, text),
                        ToolOutput::Object(members) => out.push_str(&object(members)),
                    }
                }
            }
            out.push('}');
        }
        out.push_str("],\"finish_reason\":");
        match finish_reason {
            Some(reason) => quote(&mut out, reason),
            None => out.push_str("null"),
        }
        out.push('}');
        out
    }
}

/// Writes an object of strings, compact and in ASCII.
fn object(members: &[(&'static str, String)]) -> String {
    let mut out = String::from("{");
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        quote(&mut out, name);
        out.push(':');
        quote(&mut out, value);
    }
    out.push('}');
    out
}

/// Writes a JSON string in ASCII, as Python's JSON writer does by default.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    put(out, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// Finds the scale at which something that grows almost proportionally to it has a wanted size.
pub(crate) fn scale_for(wanted: f64, measure: impl Fn(f64) -> f64) -> f64 {
    let mut scale = 1.0;
    for _ in 0..6 {
        scale *= wanted / measure(scale);
    }
    scale
}
