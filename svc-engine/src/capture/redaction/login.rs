//! Passwords beside a user name, in a URL and after `curl -u`, and URLs that are secret.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_blank, is_word, preceded_by};
use super::looks::{contains, is_stand_in, is_worded};

/// The minimum length of a user name that is a token.
const USER_TOKEN_BYTES_MIN: usize = 20;

/// Where webhooks are posted to, and the minimum length in bytes of the secret path that follows.
const WEBHOOKS: [(&[u8], usize); 8] = [
    (b"hooks.slack.com/services/", 24),
    (b"hooks.slack.com/workflows/", 24),
    (b"hooks.slack.com/triggers/", 24),
    (b"discord.com/api/webhooks/", 40),
    (b"discordapp.com/api/webhooks/", 40),
    (b"outlook.office.com/webhook/", 40),
    (b"chat.googleapis.com/v1/spaces/", 40),
    (b"hooks.zapier.com/hooks/catch/", 12),
];

/// Returns the secret part of the URL whose `://` is the anchor.
pub(super) fn in_url(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const AUTHORITY_BYTES_MAX: usize = 512;
    if !preceded_by(text, anchor.start, |byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let rest = &text[anchor.end..];
    let bounded = &rest[..rest.len().min(AUTHORITY_BYTES_MAX)];
    let end = bounded
        .iter()
        .position(|byte| {
            is_blank(*byte)
                || matches!(
                    byte,
                    b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|'
                )
        })
        .unwrap_or(bounded.len());
    let authority = &bounded[..end];
    let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
        return webhook(text, anchor.end);
    };
    let has_host = authority.get(at + 1).is_some_and(|byte| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'[' | b'{' | b'$' | b'%' | b'_')
            || *byte >= 0x80
    });
    let user = &authority[..at];
    let colon = user.iter().position(|byte| *byte == b':');
    let (secret, is_secret) = match colon {
        Some(colon) if colon + 1 < at => {
            let password = &user[colon + 1..];
            (colon + 1..at, !is_stand_in(password))
        }
        _ => {
            let user = &user[..colon.unwrap_or(at)];
            let token =
                user.len() >= USER_TOKEN_BYTES_MIN && !is_worded(user) && !is_stand_in(user);
            (0..user.len(), token)
        }
    };
    (has_host && is_secret).then_some(anchor.end + secret.start..anchor.end + secret.end)
}

/// Returns the path of a webhook. Whoever knows it may post.
fn webhook(text: &[u8], host: usize) -> Option<Range<usize>> {
    let rest = &text[host..];
    let mut cursor = Cursor::new(text, host);
    let (start, shortest) = if let Some((prefix, shortest)) =
        WEBHOOKS.iter().find(|(prefix, _)| rest.starts_with(prefix))
    {
        cursor.at += prefix.len();
        (cursor.at, *shortest)
    } else {
        cursor.run(|byte| is_word(byte) || matches!(byte, b'-' | b'.'));
        contains(&text[host..cursor.at], b".webhook.office.com").then_some(())?;
        cursor.word(b"/webhookb2/")?;
        (cursor.at, 40)
    };
    let length = cursor.run(|byte| {
        is_word(byte) || matches!(byte, b'-' | b'/' | b'+' | b'@' | b'?' | b'=' | b'&' | b'%')
    });
    let path = &text[start..cursor.at];
    (length >= shortest && !is_worded(path) && !is_stand_in(path)).then_some(start..cursor.at)
}

/// Returns the password that the option at the anchor passes to `curl`, or a token that is the user
/// name.
pub(super) fn of_command(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, anchor.end);
    if text[anchor.start] == b'-' {
        cursor.word(b"ser")?;
        cursor
            .one(|byte| byte == b'=')
            .or_else(|| cursor.one(is_blank))?;
    }
    cursor.blanks();
    let quote = cursor.quote();
    let start = cursor.at;
    let end = if let Some(open) = quote {
        cursor.string(open)?
    } else {
        cursor.run(|byte| !is_blank(byte) && !matches!(byte, b'"' | b'\'' | b'`' | b'|' | b';'));
        cursor.at
    };
    let pair = &text[start..end];
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let (user, password) = (&pair[..colon], &pair[colon + 1..]);
    let secret = if password.is_empty() {
        (user.len() >= USER_TOKEN_BYTES_MIN && !is_worded(user)).then_some(start..start + colon)?
    } else {
        start + colon + 1..end
    };
    let known = secret.len() >= 3 && !is_stand_in(&text[secret.clone()]);
    (known && is_argument_of_curl(&text[..anchor.start])).then_some(secret)
}

/// Returns whether the command line that `before` ends with is one of `curl`.
fn is_argument_of_curl(before: &[u8]) -> bool {
    const COMMAND_BYTES_MAX: usize = 300;
    let before = &before[before.len().saturating_sub(COMMAND_BYTES_MAX)..];
    let mut line = before;
    // A command continues after a line that ends with a backslash.
    let mut end = before.len();
    while let Some(line_break) = before[..end].iter().rposition(|byte| *byte == b'\n') {
        if !before[..line_break].ends_with(b"\\") {
            line = &before[line_break..];
            break;
        }
        end = line_break;
    }
    contains(line, b"curl")
}

/// Returns the signature of a URL that grants access. The anchor is its `sig=`.
pub(super) fn signature(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const SIGNATURE_BYTES_MIN: usize = 40;
    if preceded_by(text, anchor.start, |byte| is_word(byte) || byte == b'-') {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    let length = cursor.run(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'+' | b'/' | b'-' | b'_' | b'=')
    });
    let signature = anchor.end..cursor.at;
    (length >= SIGNATURE_BYTES_MIN && !is_worded(&text[signature.clone()])).then_some(signature)
}
