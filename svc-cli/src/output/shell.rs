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
}
