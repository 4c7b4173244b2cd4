//! Passwords beside a user name, in a URL and in a line of `.pgpass`, and URLs that are secret.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_blank, is_word, preceded_by};
use super::looks::{contains, is_stand_in, is_worded};

/// The minimum length of a user name that is a token.
pub(super) const USER_TOKEN_BYTES_MIN: usize = 20;

/// Where webhooks are posted to, and the minimum length in bytes of the secret path that follows.
const WEBHOOKS: [(&[u8], usize); 13] = [
    (b"hooks.slack.com/services/", 24),
    (b"hooks.slack.com/workflows/", 24),
    (b"hooks.slack.com/triggers/", 24),
    (b"discord.com/api/webhooks/", 40),
    (b"discordapp.com/api/webhooks/", 40),
    (b"outlook.office.com/webhook/", 40),
    (b"chat.googleapis.com/v1/spaces/", 40),
    (b"hooks.zapier.com/hooks/catch/", 12),
    (b"canary.discord.com/api/webhooks/", 40),
    (b"ptb.discord.com/api/webhooks/", 40),
    (b"open.feishu.cn/open-apis/bot/v2/hook/", 30),
    (b"qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", 30),
    (b"hooks.slack-gov.com/services/", 24),
];

/// Returns the secret part of the URL whose `://` is the anchor.
pub(super) fn in_url(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const AUTHORITY_BYTES_MAX: usize = 512;
    // A `#` ends it too, but people write one into a password.
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
                    b'/' | b'?' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|'
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

/// Returns the password in a line of `.pgpass`, `host:port:database:user:password`. The anchor is the
/// beginning of the port.
pub(super) fn of_pgpass(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const HOST_BYTES_MAX: usize = 128;
    const FIELD_BYTES_MAX: usize = 128;
    const PASSWORD_BYTES_MAX: usize = 256;
    let before = &text[anchor.start.saturating_sub(HOST_BYTES_MAX)..anchor.start];
    let in_host = |byte: &&u8| is_word(**byte) || matches!(**byte, b'.' | b'-' | b'*' | b'/');
    if before.iter().rev().take_while(in_host).count() == 0 {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    let port = cursor.run(|byte| byte.is_ascii_digit());
    if port != 2 {
        return None;
    }
    let in_field =
        |byte: u8| !is_blank(byte) && !matches!(byte, b':' | b'"' | b'\'' | b'`' | b'<' | b'|');
    for _ in 0..2 {
        cursor.one(|byte| byte == b':')?;
        let field = &text[cursor.at..text.len().min(cursor.at + FIELD_BYTES_MAX)];
        let length = field.iter().take_while(|byte| in_field(**byte)).count();
        (length > 0).then_some(())?;
        cursor.at += length;
    }
    cursor.one(|byte| byte == b':')?;
    let start = cursor.at;
    let rest = &text[start..text.len().min(start + PASSWORD_BYTES_MAX + 1)];
    let in_password = |byte: &&u8| in_field(**byte) || **byte == b':';
    let length = rest.iter().take_while(in_password).count();
    cursor.at += length;
    let is_password =
        (3..=PASSWORD_BYTES_MAX).contains(&length) && !is_stand_in(&text[start..cursor.at]);
    is_password.then_some(start..cursor.at)
}

/// Returns the password in `IDENTIFIED BY 'password'` of SQL.
pub(super) fn in_sql(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, anchor.end);
    cursor.blanks();
    let open = cursor.quote()?;
    let start = cursor.at;
    let end = cursor.string(open)?;
    let password = &text[start..end];
    // In prose, an object is identified by its 'name'.
    let is_statement = text[anchor.start] == b'I' || !is_worded(password);
    (password.len() >= 3 && is_statement && !is_stand_in(password)).then_some(start..end)
}

/// Returns the password in a data source name of Go, `user:password@tcp(host)/database`. The anchor is
/// the protocol.
pub(super) fn before_address(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const LOGIN_BYTES_MAX: usize = 256;
    let before = text[..anchor.start].strip_suffix(b"@")?;
    let in_login = |byte: &&u8| {
        !is_blank(**byte) && !matches!(**byte, b'"' | b'\'' | b'`' | b'=' | b'(' | b'/')
    };
    let bounded = before.iter().rev().take(LOGIN_BYTES_MAX);
    let start = before.len() - bounded.take_while(in_login).count();
    let colon = before[start..].iter().position(|byte| *byte == b':')?;
    let password = start + colon + 1..before.len();
    (colon > 0 && password.len() >= 3 && !is_stand_in(&text[password.clone()])).then_some(password)
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
