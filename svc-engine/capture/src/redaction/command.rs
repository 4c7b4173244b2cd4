//! Passwords and cookies that an option passes to a program: `curl -u`, `mysql -p`, `sshpass -p`.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_blank};
use super::header;
use super::login::USER_TOKEN_BYTES_MIN;
use super::looks::{is_stand_in, is_worded};

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A user and a password: `user:password`.
    Login,
    /// A user and a password: `user%password`.
    Share,
    /// A password.
    Password,
    /// A password, if the command is a `login`.
    PasswordOfLogin,
    /// A password, if it is the first option.
    PasswordFirst,
    /// A password that is joined to the option. After a blank, something else follows.
    Joined,
    /// A password after a file and a user.
    Third,
    /// Cookies.
    Cookies,
}

/// An option, the programs of which one is in its command, and what it takes.
type Argument = (&'static [u8], &'static [&'static [u8]], Takes);

const OPTIONS: &[Argument] = &[
    (b"-u", &[b"curl", b"newman"], Takes::Login),
    (b"--user", &[b"curl"], Takes::Login),
    (b"-U", &[b"curl"], Takes::Login),
    (
        b"-U",
        &[b"smbclient", b"smbget", b"rpcclient"],
        Takes::Share,
    ),
    (b"--proxy-user", &[b"curl"], Takes::Login),
    (b"-b", &[b"curl"], Takes::Cookies),
    (b"-b", &[b"htpasswd"], Takes::Third),
    (
        b"-a",
        &[b"http", b"https", b"httpie", b"xh", b"xhs"],
        Takes::Login,
    ),
    (
        b"--auth",
        &[b"http", b"https", b"httpie", b"xh", b"xhs"],
        Takes::Login,
    ),
    (
        b"-a",
        &[
            b"redis-cli",
            b"valkey-cli",
            b"keydb-cli",
            b"redis-benchmark",
        ],
        Takes::Password,
    ),
    (
        b"-p",
        &[
            b"mysql",
            b"mysqldump",
            b"mysqladmin",
            b"mysqlimport",
            b"mysqlcheck",
            b"mysqlsh",
            b"mariadb",
            b"mariadb-dump",
            b"mariadb-admin",
            b"mycli",
            b"7z",
            b"7za",
            b"7zz",
        ],
        Takes::Joined,
    ),
    (
        b"-p",
        &[
            b"mongo",
            b"mongosh",
            b"mongodump",
            b"mongorestore",
            b"mongoexport",
            b"mongoimport",
            b"twine",
            b"cypher-shell",
            b"rabbitmqadmin",
            b"clickhouse",
            b"influx",
            b"cqlsh",
            b"vncdo",
            b"htpasswd",
        ],
        Takes::Password,
    ),
    (b"-p", &[b"sshpass"], Takes::PasswordFirst),
    (
        b"-p",
        &[
            b"docker", b"podman", b"buildah", b"skopeo", b"nerdctl", b"crane", b"oras", b"helm",
            b"az", b"oc",
        ],
        Takes::PasswordOfLogin,
    ),
    (
        b"-P",
        &[
            b"sqlcmd",
            b"bcp",
            b"isql",
            b"mosquitto_pub",
            b"mosquitto_sub",
            b"zip",
            b"unzip",
            b"ipmitool",
            b"tsql",
        ],
        Takes::Password,
    ),
    (
        b"-w",
        &[
            b"ldapsearch",
            b"ldapadd",
            b"ldapmodify",
            b"ldapdelete",
            b"ldapwhoami",
            b"ldappasswd",
            b"security",
        ],
        Takes::Password,
    ),
];

/// Returns the password or the cookies that the option at the anchor passes to a program.
pub(super) fn argument(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let start = anchor.start + usize::from(text[anchor.start] == b' ');
    if text[start..].starts_with(b"-AsPlainText") {
        return before_option(text, anchor.start);
    }
    if text[start..].starts_with(b"-S") {
        return for_sudo(text, start);
    }
    OPTIONS.iter().find_map(|(option, programs, takes)| {
        let rest = text[start..].strip_prefix(*option)?;
        let joined = !rest
            .first()
            .is_some_and(|byte| is_blank(*byte) || *byte == b'=');
        // A long option ends where its name does.
        if joined && option.starts_with(b"--") {
            return None;
        }
        let value = value(text, text.len() - rest.len(), *takes, joined)?;
        let line = command_line(&text[..start], *takes);
        let mut words = line
            .split(|byte| is_blank(*byte) || matches!(byte, b'"' | b'\'' | b'`' | b'('))
            .filter_map(|word| word.rsplit(|byte| *byte == b'/').next())
            .filter(|word| !word.is_empty());
        let is_of = |word: &[u8]| programs.contains(&word);
        let found = match takes {
            Takes::PasswordFirst => words.next_back().is_some_and(is_of),
            Takes::PasswordOfLogin => words.any(is_of) && words.any(|word| word == b"login"),
            _ => words.any(is_of),
        };
        found.then_some(value)
    })
}

/// Returns the password that is written to `sudo -S`: `echo "password" | sudo -S`.
fn for_sudo(text: &[u8], option: usize) -> Option<Range<usize>> {
    let before = text[..option].trim_ascii_end().strip_suffix(b"sudo")?;
    let before = before.trim_ascii_end().strip_suffix(b"|")?.trim_ascii_end();
    let bounded = &before[before.len().saturating_sub(128)..];
    let echo = bounded.windows(5).rposition(|word| word == b"echo ")?;
    let start = before.len() - bounded.len() + echo + 5;
    let written = &before[start..];
    let quotes = usize::from(matches!(written.first(), Some(b'"' | b'\'')));
    let content = written.get(quotes..written.len().checked_sub(quotes)?)?;
    let is_word = content.len() >= 3 && !content.iter().any(|byte| is_blank(*byte));
    (is_word && !is_stand_in(content)).then_some(start + quotes..before.len() - quotes)
}

/// Returns the quoted argument before an option: `ConvertTo-SecureString "value" -AsPlainText`.
fn before_option(text: &[u8], option: usize) -> Option<Range<usize>> {
    const VALUE_BYTES_MAX: usize = 128;
    let (mark, before) = text[..option].trim_ascii_end().split_last()?;
    let quote = matches!(mark, b'"' | b'\'').then_some(mark)?;
    let escapes = before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count();
    let before = &before[..before.len() - escapes];
    let length = before
        .iter()
        .rev()
        .take(VALUE_BYTES_MAX)
        .take_while(|byte| *byte != quote)
        .count();
    let value = before.len() - length..before.len();
    ((3..VALUE_BYTES_MAX).contains(&length) && !is_stand_in(&text[value.clone()])).then_some(value)
}

/// Returns the secret in the argument at `at`.
fn value(text: &[u8], at: usize, takes: Takes, joined: bool) -> Option<Range<usize>> {
    if takes == Takes::Joined && !joined {
        return None;
    }
    let mut cursor = Cursor::new(text, at);
    cursor.one(|byte| byte == b'=');
    cursor.blanks();
    if !joined && text[cursor.at..].starts_with(b"\\\n") {
        cursor.at += 1;
        cursor.blanks();
    }
    if takes == Takes::Third {
        for _ in 0..2 {
            cursor.run(|byte| !is_blank(byte));
            cursor.blanks();
        }
    }
    let quote = cursor.quote();
    let start = cursor.at;
    let end = if let Some(open) = quote {
        cursor.string(open)?
    } else {
        cursor.run(|byte| !is_blank(byte) && !matches!(byte, b'"' | b'\'' | b'`' | b'|' | b';'));
        cursor.at
    };
    let argument = &text[start..end];
    let secret = match takes {
        Takes::Cookies => return header::pairs(text, start..end),
        Takes::Password
        | Takes::PasswordOfLogin
        | Takes::PasswordFirst
        | Takes::Joined
        | Takes::Third => start..end,
        Takes::Login | Takes::Share => {
            let sign = if takes == Takes::Login { b':' } else { b'%' };
            let colon = argument.iter().position(|byte| *byte == sign)?;
            let user = &argument[..colon];
            if colon + 1 < argument.len() {
                start + colon + 1..end
            } else {
                let is_token = user.len() >= USER_TOKEN_BYTES_MIN && !is_worded(user);
                is_token.then_some(start..start + colon)?
            }
        }
    };
    let content = &text[secret.clone()];
    let is_option = takes != Takes::Login && content.starts_with(b"-");
    (content.len() >= 3 && !is_stand_in(content) && !is_option).then_some(secret)
}

/// Returns the end of a command before one of its options.
fn command_line(before: &[u8], takes: Takes) -> &[u8] {
    const COMMAND_BYTES_MAX: usize = 300;
    let before = &before[before.len().saturating_sub(COMMAND_BYTES_MAX)..];
    // A command continues after a line that ends with a backslash. What `curl` sends may have signs
    // that otherwise end a command.
    let is_sent = matches!(takes, Takes::Login | Takes::Cookies);
    let ends = |place: &usize| match before[*place] {
        b'\n' => !before[..*place].ends_with(b"\\"),
        b'&' => before[..*place].ends_with(b"&"),
        b';' | b'|' => !is_sent,
        _ => false,
    };
    let end = (0..before.len()).rev().find(ends);
    end.map_or(before, |end| &before[end + 1..])
}
