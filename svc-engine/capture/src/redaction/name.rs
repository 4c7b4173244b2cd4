//! Names that say what their values are.

use super::header::is_pair;
use super::looks::{
    contains, has_random_part, is_named, is_placeholder, is_several_words, is_stand_in, is_worded,
    without_stops,
};

/// Returns whether any string under this name is a credential.
///
/// Ignores case, and treats `-` as `_`.
pub(super) fn is_credential(name: &[u8]) -> bool {
    // Nearly all names in a payload are not. The last letter rules most of them out.
    let Some(b'n' | b'N' | b'y' | b'Y') = name.last() else {
        return false;
    };
    ["authorization", "proxy_authorization", "api_key", "apikey"]
        .iter()
        .any(|known| is(name, known.as_bytes()))
        || name
            .len()
            .checked_sub("_api_key".len())
            .is_some_and(|at| is(&name[at..], b"_api_key"))
}

/// Returns whether a value is itself the name of an API key, as in code that passes a key on:
/// `api_key=openai_api_key`, `apiKey: openaiApiKey`.
pub(super) fn is_api_key_variable(value: &[u8]) -> bool {
    let value = without_stops(value);
    is_worded(value)
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && [&b"api_key"[..], b"apikey"].iter().any(|word| {
            let start = value.len().checked_sub(word.len());
            start.is_some_and(|start| value[start..].eq_ignore_ascii_case(word))
        })
}

/// The subject of a name that is no sure sign of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Token,
    Key,
    Secret,
    Password,
    Cookie,
    /// A user and a password in Base64.
    Login,
}

/// A name whose value may be a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Secret {
    subject: Subject,
    /// Whether a string under this name can only be a credential.
    certain: bool,
}

/// What a password is, whatever its name.
pub(super) const PASSWORD: Secret = Secret {
    subject: Subject::Password,
    certain: false,
};

/// Suffixes that do not change the subject of a name.
const TAILS: [&[u8]; 12] = [
    b"value",
    b"text",
    b"string",
    b"base64",
    b"b64",
    b"old",
    b"new",
    b"previous",
    b"current",
    b"prod",
    b"staging",
    b"dev",
];

/// The last words of names, without separators, and their subjects. A word that ends with another
/// one comes before it.
const WORDS: [(&[u8], Subject); 50] = [
    (b"auth", Subject::Login),
    (b"cookie", Subject::Cookie),
    (b"cookies", Subject::Cookie),
    (b"password", Subject::Password),
    (b"passwd", Subject::Password),
    (b"passphrase", Subject::Password),
    (b"passcode", Subject::Password),
    (b"storepass", Subject::Password),
    (b"keypass", Subject::Password),
    (b"sshpass", Subject::Password),
    (b"requirepass", Subject::Password),
    (b"passwort", Subject::Password),
    (b"rediscliauth", Subject::Password),
    (b"psk", Subject::Password),
    (b"pwd", Subject::Password),
    (b"bindpw", Subject::Password),
    (b"dbpw", Subject::Password),
    (b"rootpw", Subject::Password),
    (b"userpw", Subject::Password),
    (b"adminpw", Subject::Password),
    (b"masterauth", Subject::Password),
    (b"token", Subject::Token),
    (b"apikey", Subject::Key),
    (b"accesskey", Subject::Key),
    (b"accountkey", Subject::Key),
    (b"authkey", Subject::Key),
    (b"privatekey", Subject::Key),
    (b"signingkey", Subject::Key),
    (b"encryptionkey", Subject::Key),
    (b"masterkey", Subject::Key),
    (b"subscriptionkey", Subject::Key),
    (b"storagekey", Subject::Key),
    (b"sessionkey", Subject::Key),
    (b"deploykey", Subject::Key),
    (b"licensekey", Subject::Key),
    (b"hmackey", Subject::Key),
    (b"jwtkey", Subject::Key),
    (b"appkey", Subject::Key),
    (b"functionkey", Subject::Key),
    (b"webhookkey", Subject::Key),
    (b"clientkeydata", Subject::Key),
    (b"presharedkey", Subject::Key),
    (b"applicationkey", Subject::Key),
    (b"sharedkey", Subject::Key),
    (b"secretid", Subject::Key),
    (b"adminkey", Subject::Key),
    (b"secret", Subject::Secret),
    (b"secretkey", Subject::Secret),
    (b"secretaccesskey", Subject::Secret),
    (b"secretkeybase", Subject::Secret),
];

/// Words before `token` in the names of tokens that are not secret.
const HARMLESS_TOKENS: [&[u8]; 16] = [
    b"page",
    b"next",
    b"previous",
    b"continuation",
    b"continue",
    b"pagination",
    b"sync",
    b"cursor",
    b"cancel",
    b"cancellation",
    b"csrf",
    b"eos",
    b"bos",
    b"pad",
    b"unk",
    b"public",
];

/// Words before `token` in the names of tokens that are always secret. Other tokens, such as those
/// of a text, are often words.
const SECRET_TOKENS: [&[u8]; 19] = [
    b"access",
    b"refresh",
    b"auth",
    b"bearer",
    b"session",
    b"api",
    b"secret",
    b"private",
    b"security",
    b"bot",
    b"jwt",
    b"deploy",
    b"registration",
    b"verification",
    b"reset",
    b"github",
    b"gitlab",
    b"slack",
    b"npm",
];

/// Returns what a name says about its value, if the value may be a credential.
pub(super) fn secret(name: &[u8]) -> Option<Secret> {
    const NAME_BYTES_MAX: usize = 48;
    let name = name.rsplit(|byte| *byte == b'.').next()?;
    // Nearly all names in a payload say nothing. The last byte rules most of them out.
    let last = name.last()? | 0x20;
    if !matches!(
        last,
        b'a' | b'd' | b't' | b'n' | b'y' | b'e' | b's' | b'g' | b'h' | b'k' | b'v' | b'w'
    ) && !last.is_ascii_digit()
    {
        return None;
    }
    let mut plain = [0; NAME_BYTES_MAX];
    let mut length = 0;
    for byte in &name[name.len().saturating_sub(NAME_BYTES_MAX)..] {
        if !matches!(byte, b'_' | b'-' | b' ') {
            plain[length] = byte.to_ascii_lowercase();
            length += 1;
        }
    }
    let plain = &plain[..length];
    let bare = if let Some(tail) = TAILS.iter().find(|tail| ends_with(plain, tail)) {
        &plain[..length - tail.len()]
    } else {
        let digits = plain.iter().rev().take_while(|byte| byte.is_ascii_digit());
        &plain[..length - digits.count()]
    };
    if let Some((word, subject)) = WORDS.iter().rev().find(|(word, _)| ends_with(bare, word)) {
        let before = &bare[..bare.len() - word.len()];
        // `kRSAPSK` is a cipher.
        let is_apart = name
            .len()
            .checked_sub(4)
            .is_none_or(|at| matches!(name[at], b'_' | b'-'));
        if *word == b"psk" && !is_apart {
            return None;
        }
        let harmless =
            *subject == Subject::Token && HARMLESS_TOKENS.iter().any(|word| before.ends_with(word));
        let certain = match subject {
            Subject::Token => {
                before == b"id" || SECRET_TOKENS.iter().any(|word| before.ends_with(word))
            }
            Subject::Key | Subject::Login => false,
            // `pwd` alone is more often a folder.
            Subject::Password => bare != b"pwd",
            Subject::Secret | Subject::Cookie => true,
        };
        return (!harmless).then_some(Secret {
            subject: *subject,
            certain,
        });
    }
    // `db_pass` and `dbPass`, but not `bypass`.
    let before = name.len().checked_sub(5)?;
    let pass = name[before + 1..].eq_ignore_ascii_case(b"pass");
    let apart = matches!(name[before], b'_' | b'-')
        || (name[before].is_ascii_lowercase() && name[before + 1] == b'P');
    (pass && apart).then_some(Secret {
        subject: Subject::Password,
        certain: true,
    })
}

/// Returns whether a name ends with a word. The last letter rules most words out.
fn ends_with(name: &[u8], word: &[u8]) -> bool {
    name.last() == word.last() && name.ends_with(word)
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueNotation {
    /// Between quotes, or as a value of its own.
    Quoted,
    /// Without quotes, right after its sign or alone on its line.
    Bare,
    /// Without quotes and after a blank, where an expression could stand too.
    Spaced,
    /// As a variable in a program's environment: `NAME=value`.
    Shell,
    /// In a list of pairs: `Server=db;Pwd=value`.
    Pair,
}

impl Secret {
    /// Returns whether a value that is assigned in a text is a credential.
    pub(super) fn looks_real(self, value: &[u8], written: ValueNotation) -> bool {
        self.subject.looks_real(value, written)
    }

    /// Returns whether a string that is a member of a JSON object is a credential.
    ///
    /// A program put it there to use it, so unlike in prose and code it need not look like a
    /// credential. A placeholder for one does not count.
    pub(super) fn is_kept_in(self, value: &[u8]) -> bool {
        let is_one = self.certain && !value.is_empty() && !is_placeholder(value);
        (is_one && !is_place(value)) || self.looks_real(value, ValueNotation::Quoted)
    }
}

impl Secret {
    /// Returns whether prose says this value of the name: `the password is hunter22`.
    pub(super) fn is_said(self, value: &[u8]) -> bool {
        const ALGORITHMS: [&[u8]; 4] = [b"argon2", b"pbkdf2", b"sha", b"base"];
        if self.subject != Subject::Password {
            return self.looks_real(value, ValueNotation::Spaced);
        }
        let digits = value.iter().any(u8::is_ascii_digit);
        let letters = value.iter().any(u8::is_ascii_alphabetic);
        let is_algorithm = ALGORITHMS.iter().any(|name| {
            value.len() >= name.len() && value[..name.len()].eq_ignore_ascii_case(name)
        });
        let mixed = value.len() >= 7 && digits && letters && !is_algorithm;
        let random = value.len() >= 8 && is_of_both_cases(value) && !is_named(value);
        (mixed || random)
            && !value.starts_with(b"/")
            && self.looks_real(value, ValueNotation::Quoted)
    }

    /// Returns whether a value has digits, small letters and capitals, as a password should.
    pub(super) fn is_mixed(self, value: &[u8]) -> bool {
        value.len() >= 8
            && value.iter().any(u8::is_ascii_digit)
            && is_of_both_cases(value)
            && self.looks_real(value, ValueNotation::Quoted)
    }

    /// Returns whether a value that merely follows the name in prose is a credential.
    pub(super) fn is_beside(self, value: &[u8]) -> bool {
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_strong = match self.subject {
            Subject::Password => {
                value.len() >= 10 && is_of_both_cases(value) && has_random_part(value)
            }
            _ => value.len() >= 20 && digits >= 2,
        };
        is_strong && !is_named(value) && self.looks_real(value, ValueNotation::Spaced)
    }

    /// Returns whether a string with blanks that is assigned to a variable of a program's environment
    /// is a credential.
    pub(super) fn is_phrase(self, value: &[u8]) -> bool {
        const WORDS_MIN: usize = 3;
        let words = value
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        self.subject == Subject::Password
            && words.count() >= WORDS_MIN
            && value
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b' ' | b'0'..=b'9'))
            && !is_stand_in(value)
    }
}

/// Returns whether a random value under this name is a credential. Unlike the other names, these say
/// it only of values that are long and random.
pub(super) fn holds_random(name: &[u8], is_equation: bool, in_query: bool) -> bool {
    /// The ends of names, and whether only an equation counts.
    const NAMES: [(&[u8], bool); 10] = [
        (b"connect.sid", false),
        (b"sessid", true),
        (b"jsessionid", true),
        (b"sessionid", true),
        (b".aspxauth", true),
        (b"asp.net_sessionid", true),
        (b"_session", true),
        (b"amz-signature", true),
        (b"goog-signature", true),
        (b"_credentials", true),
    ];
    /// What other keys in capitals are for.
    const PUBLIC_KEYS: [&[u8]; 10] = [
        b"PUBLIC",
        b"PUBLISHABLE",
        b"CACHE",
        b"PRIMARY",
        b"FOREIGN",
        b"SORT",
        b"PARTITION",
        b"SITE",
        b"HOST",
        b"IDEMPOTENCY",
    ];
    let ends_with = |end: &[u8]| {
        let start = name.len().checked_sub(end.len());
        start.is_some_and(|start| name[start..].eq_ignore_ascii_case(end))
    };
    let is_variable = !name.iter().any(u8::is_ascii_lowercase);
    let is_pat = ends_with(b"_pat") || ends_with(b"-pat") || name.eq_ignore_ascii_case(b"pat");
    let is_key = is_variable
        && name
            .strip_suffix(b"_KEY")
            .is_some_and(|before| !PUBLIC_KEYS.iter().any(|word| before.ends_with(word)));
    let in_url = in_query && [&b"key"[..], b"code", b"signature", b"apikey"].contains(&name);
    is_pat
        || in_url
        || (is_key && is_equation)
        || NAMES
            .iter()
            .any(|(end, equation)| ends_with(end) && (is_equation || !equation))
}

impl Subject {
    /// Returns whether a value looks like a credential rather than a word, an identifier, an
    /// expression or a placeholder.
    fn looks_real(self, value: &[u8], written: ValueNotation) -> bool {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() || *byte >= 0x80;
        if is_stand_in(value) || !value.iter().all(is_plain) || is_place(value) {
            return false;
        }
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        let letters = value.iter().any(u8::is_ascii_alphabetic);
        let random = !is_named(value) && !is_call(value);
        match self {
            Self::Token | Self::Key => {
                // A variable of a program's environment is hardly ever code.
                let is_long = value.len() >= 20 && is_of_both_cases(value);
                let digits_min = if written == ValueNotation::Shell || is_long {
                    0
                } else {
                    2
                };
                value.len() >= 16 && digits >= digits_min && letters && random
            }
            Self::Login => value.iter().all(|byte| is_base64(*byte)) && is_pair(value),
            Self::Secret => match written {
                ValueNotation::Shell => value.len() >= 6 && !is_variable(value),
                ValueNotation::Quoted | ValueNotation::Bare | ValueNotation::Pair => {
                    value.len() >= 6 && digits >= 1 && letters && random
                }
                ValueNotation::Spaced => value.len() >= 8 && digits >= 2 && letters && random,
            },
            // Recipes are about cookies too.
            Self::Cookie => false,
            Self::Password if is_variable(value) || is_call(value) => false,
            Self::Password => {
                let mixed = digits >= 1 && letters;
                let number = digits == value.len();
                let signed = letters && value.iter().any(|byte| is_sign(*byte));
                match written {
                    ValueNotation::Shell => value.len() >= 5,
                    ValueNotation::Pair => value.len() >= 4,
                    ValueNotation::Quoted | ValueNotation::Bare => {
                        let is_random = random && value.len() >= 8 && is_of_both_cases(value);
                        value.len() >= 6
                            && (mixed || number || signed || is_random)
                            && !is_several_words(value)
                    }
                    ValueNotation::Spaced => {
                        let is_random = random && value.len() >= 10 && is_of_both_cases(value);
                        value.len() >= 8
                            && (digits >= 2 && letters || is_random)
                            && !is_several_words(value)
                    }
                }
            }
        }
    }
}

/// Returns whether a value is a path or an address.
fn is_place(value: &[u8]) -> bool {
    let is_path = matches!(
        value,
        [b'/' | b'~', ..] | [b'.', b'/', ..] | [b'.', b'.', b'/', ..]
    ) || matches!(value, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    (is_path && is_worded(value)) || contains(value, b"://")
}

/// Returns whether a value is the name of a variable for a credential, which one of its words
/// shows. `monkey` is not.
fn is_variable(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [
        b"pass",
        b"password",
        b"passwd",
        b"passphrase",
        b"pwd",
        b"secret",
        b"token",
        b"key",
        b"apikey",
    ];
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let mut words = value
        .split(|byte| !byte.is_ascii_alphabetic())
        .flat_map(|piece| {
            piece.chunk_by(|byte, next| !(byte.is_ascii_lowercase() && next.is_ascii_uppercase()))
        });
    digits <= 1
        && value.iter().all(in_name)
        && words.any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Returns whether a value contains characters that only expressions contain. A long value that does
/// not end like an expression may have them too.
fn is_call(value: &[u8]) -> bool {
    const LONG_BYTES_MIN: usize = 32;
    let is_bracket = |byte: &u8| matches!(byte, b'(' | b')' | b'{' | b'}' | b'<' | b'>');
    let is_key = value.len() >= LONG_BYTES_MIN
        && value.iter().any(u8::is_ascii_digit)
        && !value
            .last()
            .is_some_and(|byte| is_bracket(byte) || *byte == b';')
        && value.iter().filter(|byte| is_sign(**byte)).count() >= 3;
    !is_key && value.iter().any(is_bracket)
}

/// Returns whether a byte is a sign that occurs in no name.
const fn is_sign(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'?' | b'~'
    )
}

/// Returns whether a value has small letters and capitals.
fn is_of_both_cases(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_lowercase) && value.iter().any(u8::is_ascii_uppercase)
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is(name: &[u8], known: &[u8]) -> bool {
    name.len() == known.len()
        && name.iter().zip(known).all(|(byte, known)| {
            byte.eq_ignore_ascii_case(known) || (*byte == b'-' && *known == b'_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_names_ignore_case_and_the_kind_of_dash() {
        for name in [
            "authorization",
            "Authorization",
            "Proxy-Authorization",
            "proxy_authorization",
            "x-api-key",
            "X_API_KEY",
            "api_key",
            "API-KEY",
            "apikey",
            "ApiKey",
            "OPENAI_API_KEY",
            "service-api-key",
            "_api_key",
        ] {
            assert!(is_credential(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "key",
            "api",
            "api key",
            "my_apikey",
            "xapikey",
            "api_keys",
            "user_api_key_hash",
            "authorizations",
            "pre_authorization",
            "rapi_key",
            "any",
            "in",
        ] {
            assert!(!is_credential(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_of_secrets_are_recognised_by_their_words() {
        for (name, expected) in [
            ("token", Some(Subject::Token)),
            ("accessToken", Some(Subject::Token)),
            ("GITHUB_TOKEN", Some(Subject::Token)),
            ("db-password", Some(Subject::Password)),
            ("spring.datasource.password", Some(Subject::Password)),
            ("passwd", Some(Subject::Password)),
            ("password2", Some(Subject::Password)),
            ("Pwd", Some(Subject::Password)),
            ("SMTP_PASS", Some(Subject::Password)),
            ("dbPass", Some(Subject::Password)),
            ("AWS_SECRET_ACCESS_KEY", Some(Subject::Secret)),
            ("clientSecret", Some(Subject::Secret)),
            ("SECRET_KEY_BASE", Some(Subject::Secret)),
            ("my_secret_value", Some(Subject::Secret)),
            ("AccountKey", Some(Subject::Key)),
            ("openaiApiKey", Some(Subject::Key)),
            ("tokens", None),
            ("max_tokens", None),
            ("next_page_token", None),
            ("nextPageToken", None),
            ("csrf_token", None),
            ("password_hash", None),
            ("secret_name", None),
            ("private_key_path", None),
            ("bypass", None),
            ("compass", None),
            ("pass", None),
            ("key", None),
            ("primary_key", None),
            ("content", None),
            ("", None),
        ] {
            let found = secret(name.as_bytes()).map(|secret| secret.subject);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn the_value_of_a_credential_member_is_secret_even_if_it_looks_harmless() {
        let kept = |name: &str, value: &str| {
            secret(name.as_bytes()).is_some_and(|secret| secret.is_kept_in(value.as_bytes()))
        };
        for (name, value) in [
            ("password", "letmein"),
            ("password", "password1"),
            ("password", "111111"),
            ("db_password", "monkey"),
            ("dbPass", "a"),
            ("passphrase", "open sesame please"),
            ("passphrase", "open your door please"),
            ("client_secret", "sesame"),
            ("access_token", "sesame"),
            ("refreshToken", "sesame"),
            ("id_token", "sesame"),
            ("cookie", "theme=dark; user=ann"),
            ("Set-Cookie", "user=ann"),
            ("token", "a1b2c3d4e5f6a7b8"),
        ] {
            assert!(kept(name, value), "{name} {value}");
        }
        for (name, value) in [
            ("password", ""),
            ("password", "string"),
            ("password", "${DB_PASSWORD}"),
            ("password", "<password>"),
            ("password", "your-password"),
            ("password", "********"),
            ("password", "/run/secrets/db"),
            ("pwd", "src"),
            ("token", "Hello"),
            ("mask_token", "mask"),
            ("valid_token", "yes"),
            ("next_page_token", "a1b2c3d4e5f6a7b8"),
            ("access_key", "s"),
            ("private_key", "server"),
        ] {
            assert!(!kept(name, value), "{name} {value}");
        }
    }

    #[test]
    fn a_real_secret_looks_random() {
        let real =
            |subject: Subject, value: &str, written| subject.looks_real(value.as_bytes(), written);
        assert!(real(
            Subject::Token,
            "a1b2c3d4e5f6a7b8",
            ValueNotation::Spaced
        ));
        assert!(real(Subject::Password, "hunter22", ValueNotation::Spaced));
        assert!(real(Subject::Password, "hunter2", ValueNotation::Bare));
        assert!(real(Subject::Password, "P@ssword1", ValueNotation::Quoted));
        assert!(real(
            Subject::Password,
            "correcthorse",
            ValueNotation::Shell
        ));
        assert!(real(Subject::Password, "monkey", ValueNotation::Shell));
        assert!(!real(
            Subject::Password,
            "DB_PASSWORD",
            ValueNotation::Shell
        ));
        assert!(!real(Subject::Password, "dbPassword", ValueNotation::Shell));
        assert!(real(Subject::Secret, "s3cr3t!", ValueNotation::Quoted));
        for value in [
            "get_access_token",
            "self.settings.token",
            "1234567890123456",
            "a1b2c3",
            "https://a1b2c3d4e5f6a7b8",
            "",
        ] {
            assert!(!real(Subject::Token, value, ValueNotation::Bare), "{value}");
        }
        for value in [
            "password",
            "hunter",
            "correct-horse",
            "${DB_PASS1}",
            "<password1>",
            "newPassword2",
            "a b c d 1 2",
            "/run/secrets/db1",
        ] {
            assert!(
                !real(Subject::Password, value, ValueNotation::Quoted),
                "{value}"
            );
        }
    }
}
