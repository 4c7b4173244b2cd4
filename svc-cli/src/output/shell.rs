//! Arguments of suggested commands.

use std::borrow::Cow;

use super::escape;

/// Returns an argument quoted for a shell.
pub(crate) fn quote(argument: &str) -> Cow<'_, str> {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@%+,=".contains(character);
    if !argument.is_empty() && argument.chars().all(plain) {
        return Cow::Borrowed(argument);
    }
    if escape(argument) == argument {
        return Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''")));
    }
    // Characters that must not reach the terminal are escaped for the shell.
    let mut quoted = String::from("$'");
    for character in argument.chars() {
        match character {
            '\'' | '\\' => quoted.extend(['\\', character]),
            other if escape(other.encode_utf8(&mut [0; 4])) == other.to_string() => {
                quoted.push(other);
            }
            other => {
                let mut encoded = [0; 4];
                let bytes = other.encode_utf8(&mut encoded).bytes();
                quoted.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
            }
        }
    }
    quoted.push('\'');
    Cow::Owned(quoted)
}

/// Returns a positional argument quoted for a shell, after `--` if it would be taken for an option.
/// So options must precede it.
pub(crate) fn positional(argument: &str) -> Cow<'_, str> {
    if argument.starts_with('-') {
        Cow::Owned(format!("{OPTIONS_END}{}", quote(argument)))
    } else {
        quote(argument)
    }
}

/// Returns an option and its value, after a space.
pub(crate) fn long_option(name: &str, value: &str) -> String {
    // A value that begins with a hyphen would be taken for another option.
    let separator = if value.starts_with('-') { '=' } else { ' ' };
    format!(" --{name}{separator}{}", quote(value))
}

/// Inserts options, each after a space, into a command: before the end of its options if it is
/// marked.
pub(crate) fn with_options(command: &str, options: &str) -> String {
    let marked = ["-", "'-", "$'-"];
    let end = marked
        .iter()
        .filter_map(|beginning| command.find(&format!(" {OPTIONS_END}{beginning}")))
        .min()
        .unwrap_or(command.len());
    let (before, after) = command.split_at(end);
    [before, options, after].concat()
}

/// Marks the end of a command's options.
const OPTIONS_END: &str = "-- ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_when_they_need_it() {
        for (argument, quoted) in [
            ("fix/pager-2", "fix/pager-2"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("caf\u{e9}", "'caf\u{e9}'"),
            ("a\u{1b}'b\u{202e}\\", r"$'a\x1b\'b\xe2\x80\xae\\'"),
        ] {
            assert_eq!(quote(argument), quoted, "{argument:?}");
        }
    }

    #[test]
    fn no_argument_is_taken_for_an_option() {
        assert_eq!(positional("a-b"), "a-b");
        assert_eq!(positional("--url=x y"), "-- '--url=x y'");
        assert_eq!(long_option("user", "ann"), " --user ann");
        assert_eq!(long_option("user", "-x y"), " --user='-x y'");
        let command = |session: &str| format!("svc session {}", positional(session));
        let url = " --url u";
        assert_eq!(with_options(&command("s"), url), "svc session s --url u");
        assert_eq!(
            with_options(&command("-s t"), url),
            "svc session --url u -- '-s t'"
        );
        assert_eq!(
            with_options("svc x --reason 'a -- b'", url),
            "svc x --reason 'a -- b' --url u"
        );
    }
}
