//! The title of a Session: the beginning of what its user asked first.

use svc_model::evidence::{Message, Part};

/// The role of the messages that a user wrote.
const USER: &str = "user";
/// What begins the texts that a client writes in the user's place: tags, warnings about what
/// follows, notices of interruptions, and what Codex read in a project.
const WRITTEN_BY_CLIENT: [&str; 4] = ["<", "Caveat:", "[Request", "# AGENTS.md instructions"];
/// Maximum characters of a title, without the ellipsis.
const CHARACTERS_MAX: usize = 80;

/// Returns the title that an input message gives, if it is the user's and has a text of theirs.
pub fn of_message(message: &Message) -> Option<String> {
    if message.role != USER {
        return None;
    }
    let mut texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { content } => Some(content.to_string_lossy()),
        Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolCallResponse { .. } => None,
    });
    texts.find_map(|text| of_text(&text))
}

fn of_text(text: &str) -> Option<String> {
    let text = text.trim();
    let is_clients = WRITTEN_BY_CLIENT
        .iter()
        .any(|beginning| text.starts_with(beginning));
    (!text.is_empty() && !is_clients).then(|| beginning(text))
}

/// Returns as many whole words as fit, and part of the first word if that alone does not fit.
fn beginning(text: &str) -> String {
    let mut title = String::new();
    let mut room = CHARACTERS_MAX;
    for word in text.split_whitespace() {
        let blank = usize::from(!title.is_empty());
        // A long word is not counted to its end.
        let length = blank + word.chars().take(CHARACTERS_MAX + 1).count();
        if length > room {
            if title.is_empty() {
                title.extend(word.chars().take(CHARACTERS_MAX));
            }
            title.push('…');
            return title;
        }
        title.extend((blank > 0).then_some(' '));
        title.push_str(word);
        room -= length;
    }
    title
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::text;

    use super::*;

    fn title(content: &str) -> Option<String> {
        of_message(&text("user", content))
    }

    #[test]
    fn a_title_is_the_first_text_that_a_user_wrote() {
        assert_eq!(
            title("  Fix\n\tthe  test \n").as_deref(),
            Some("Fix the test")
        );
        assert_eq!(of_message(&text("system", "Be kind")), None);
        for clients in [
            "",
            " \n ",
            " <system-reminder>x</system-reminder>",
            "\nCaveat: what follows",
            "[Request interrupted by user]",
            "# AGENTS.md instructions for /work/app\n\n<INSTRUCTIONS>",
        ] {
            assert_eq!(title(clients), None, "{clients}");
            let mut message = text("user", clients);
            message.parts.extend(text("user", "Go on").parts);
            assert_eq!(of_message(&message).as_deref(), Some("Go on"));
        }
        for kept in ["Caveat: no", "[Requests] are slow"] {
            assert_eq!(title(kept), None, "{kept}");
        }
        assert_eq!(title("[request] it").as_deref(), Some("[request] it"));
    }

    #[test]
    fn a_long_title_is_cut_at_a_word() {
        let exact = format!("{} {}", "a".repeat(40), "b".repeat(39));
        assert_eq!(title(&exact), Some(exact.clone()));
        let longer = format!("{exact} c");
        assert_eq!(title(&longer), Some(format!("{exact}…")));
        let long_word = format!("{exact}b");
        assert_eq!(title(&long_word), Some(format!("{}…", "a".repeat(40))));
        let word = "ä".repeat(81);
        assert_eq!(title(&word), Some(format!("{}…", "ä".repeat(80))));
        assert_eq!(title(&word[2..]).as_deref(), Some(&word[2..]));
    }
}
