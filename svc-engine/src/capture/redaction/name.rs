//! Names that say what stands under them.

/// Returns whether a string under this name is a credential whatever it is.
///
/// Case and the difference between `-` and `_` do not matter.
pub(super) fn is_credential(name: &[u8]) -> bool {
    // Nearly every name of a payload is none: the last letter decides most of them.
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

/// Returns whether a string under this name is a credential if it looks like one.
pub(super) fn is_secret(name: &[u8]) -> Option<Secret> {
    let Some(b'n' | b'N' | b'd' | b'D') = name.last() else {
        return None;
    };
    let ends_with = |word: &[u8]| {
        let at = name.len().checked_sub(word.len())?;
        name[at..].eq_ignore_ascii_case(word).then_some(())
    };
    ends_with(b"token").map(|()| Secret::Token).or_else(|| {
        ends_with(b"password")
            .or(ends_with(b"passwd"))
            .map(|()| Secret::Password)
    })
}

/// What a name that is no certain sign of a credential speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    Token,
    Password,
}

impl Secret {
    /// Returns whether a value looks like a credential and not like a word, an identifier, an
    /// expression or a placeholder.
    pub(super) fn looks_real(self, value: &[u8], written: Written) -> bool {
        let plain = |byte: &u8| {
            byte.is_ascii_graphic()
                && !matches!(
                    byte,
                    b'$' | b'{' | b'}' | b'<' | b'>' | b'(' | b')' | b'[' | b']'
                )
        };
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        let (length, digits_needed) = match (self, written) {
            (Self::Token, _) => (16, 3),
            (Self::Password, Written::Quoted) => (8, 1),
            (Self::Password, Written::Bare) => (8, 2),
        };
        value.len() >= length
            && digits >= digits_needed
            && value.iter().any(u8::is_ascii_alphabetic)
            && value.iter().all(plain)
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Between quotes, or as a value of its own.
    Quoted,
    /// As it is, where an expression might stand as well.
    Bare,
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
    fn secret_names_end_with_their_word() {
        for (name, expected) in [
            ("token", Some(Secret::Token)),
            ("accessToken", Some(Secret::Token)),
            ("GITHUB_TOKEN", Some(Secret::Token)),
            ("db-password", Some(Secret::Password)),
            ("passwd", Some(Secret::Password)),
            ("tokens", None),
            ("max_tokens", None),
            ("password_hash", None),
            ("", None),
        ] {
            assert_eq!(is_secret(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_real_secret_looks_random() {
        let real =
            |secret: Secret, value: &str, written| secret.looks_real(value.as_bytes(), written);
        assert!(real(Secret::Token, "a1b2c3d4e5f6a7b8", Written::Bare));
        assert!(real(Secret::Password, "hunter22", Written::Bare));
        assert!(real(Secret::Password, "P@ssword1", Written::Quoted));
        for value in [
            "get_access_token",
            "self.settings.token",
            "1234567890123456",
            "a1b2c3",
            "",
        ] {
            assert!(!real(Secret::Token, value, Written::Bare), "{value}");
        }
        for value in [
            "password",
            "hunter2",
            "correct-horse",
            "${DB_PASS1}",
            "<password1>",
            "a b c d 1 2",
        ] {
            assert!(!real(Secret::Password, value, Written::Quoted), "{value}");
        }
    }
}
