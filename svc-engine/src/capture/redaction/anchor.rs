//! Finding the few places of a text at which a credential may be.
//!
//! Every pattern holds one of the sequences in [`mark`]. They are chosen to be rare in prose and
//! code, and compared for a whole block at once, without a branch: the compiler makes vector
//! instructions of it. (A multi-pattern automaton that ignores case reads a byte at a time and is
//! several times slower.)

/// The places that are compared at once.
const BLOCK: usize = 64;
/// A block and the bytes after it that its last place looks at.
const WINDOW: usize = BLOCK + 3;

/// What a found sequence is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `authorization`.
    Authorization,
    /// `api_key` or `api-key` or `api key` or `apikey`.
    ApiKey,
    /// `bearer`.
    Bearer,
    /// The prefix of a provider's keys.
    Provider(Provider),
    /// `eyJ`, with which the first segment of a JSON web token begins.
    WebToken,
    /// `token`.
    Token,
    /// `password` or `passwd`.
    Password,
    /// `-----BEGIN`.
    Pem,
}

/// A family of keys with a prefix of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    /// `sk-`.
    Secret,
    /// `ghp_` and its siblings.
    Forge,
    /// `github_pat_`.
    ForgeFineGrained,
    /// `AKIA` and `ASIA`.
    Cloud,
    /// `xoxb-` and its siblings.
    Chat,
}

/// A sequence in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Calls `visit` with each anchor in order, until it returns true; returns whether it did.
pub(super) fn any(text: &[u8], mut visit: impl FnMut(Anchor) -> bool) -> bool {
    let mut hits = [0; BLOCK];
    for start in (0..text.len()).step_by(BLOCK) {
        let rest = &text[start..];
        let hit = if let Some(window) = rest.first_chunk() {
            mark(window, &mut hits)
        } else {
            let mut window = [0; WINDOW];
            window[..rest.len()].copy_from_slice(rest);
            mark(&window, &mut hits)
        };
        if hit {
            for (offset, hit) in hits.iter().enumerate() {
                if *hit != 0
                    && let Some(anchor) = at(text, start + offset)
                    && visit(anchor)
                {
                    return true;
                }
            }
        }
    }
    false
}

/// Returns every anchor in order.
pub(super) fn all(text: &[u8]) -> Vec<Anchor> {
    let mut anchors = Vec::new();
    any(text, |anchor| {
        anchors.push(anchor);
        false
    });
    anchors
}

/// Marks the places of a block at which [`at`] may find an anchor; returns whether there is one.
///
/// Comparing `byte | 0x20` ignores the case of a letter. It takes a few other bytes for each other
/// as well, which [`at`] sorts out.
#[inline]
fn mark(window: &[u8; WINDOW], hits: &mut [u8; BLOCK]) -> bool {
    // Bits and not truth values, which a compiler would rather branch on.
    let is = |byte: u8, wanted: u8| u8::from(byte == wanted);
    let mut any = 0;
    for (place, hit) in hits.iter_mut().enumerate() {
        let own = [
            window[place],
            window[place + 1],
            window[place + 2],
            window[place + 3],
        ];
        let low = [own[0] | 0x20, own[1] | 0x20, own[2] | 0x20, own[3] | 0x20];
        *hit = (is(low[0], b'r') & is(low[1], b'i') & is(low[2], b'z'))
            | (is(low[0], b'p') & is(low[1], b'i') & (is(low[2], b'k') | is(low[3], b'k')))
            | (is(low[0], b'b') & is(low[1], b'e') & is(low[2], b'a'))
            | (is(low[0], b's') & is(low[1], b'k') & is(own[2], b'-'))
            | (is(low[0], b'g') & is(low[1], b'h') & is(own[3], b'_'))
            | (is(low[0], b'b') & is(own[1], b'_') & is(low[2], b'p'))
            | (is(own[0], b'A') & is(own[2], b'I') & is(own[3], b'A'))
            | (is(low[0], b'x') & is(low[1], b'o'))
            | (is(low[1], b'y') & is(low[2], b'j'))
            | (is(low[0], b't') & is(low[1], b'o') & is(low[2], b'k'))
            | (is(low[0], b's') & is(low[1], b's') & is(low[2], b'w'))
            | (is(own[0], b'-') & is(own[1], b'B') & is(own[2], b'E'));
        any |= *hit;
    }
    any != 0
}

/// Returns the anchor of which `place` is the marked byte.
fn at(text: &[u8], place: usize) -> Option<Anchor> {
    let word = |kind, back: usize, word: &[u8]| {
        let start = place.checked_sub(back)?;
        let end = start + word.len();
        let found = text.get(start..end)?;
        found
            .eq_ignore_ascii_case(word)
            .then_some(Anchor { kind, start, end })
    };
    let exact = |kind, back: usize, prefix: &[u8]| {
        let start = place.checked_sub(back)?;
        let found = text[start..].starts_with(prefix);
        found.then_some(Anchor {
            kind,
            start,
            end: start + prefix.len(),
        })
    };
    match text[place] {
        b'r' | b'R' => word(Kind::Authorization, 5, b"authorization"),
        b'p' | b'P' => api_key(text, place),
        b'b' => word(Kind::Bearer, 0, b"bearer").or_else(|| {
            exact(
                Kind::Provider(Provider::ForgeFineGrained),
                5,
                b"github_pat_",
            )
        }),
        b'B' => word(Kind::Bearer, 0, b"bearer"),
        b's' => {
            exact(Kind::Provider(Provider::Secret), 0, b"sk-").or_else(|| password(text, place))
        }
        b'S' => password(text, place),
        b'g' => matches!(text.get(place + 2)?, b'p' | b'o' | b'u' | b's' | b'r')
            .then_some(Anchor {
                kind: Kind::Provider(Provider::Forge),
                start: place,
                end: place + 4,
            })
            .filter(|_| text[place + 1] == b'h'),
        b'A' => matches!(text.get(place + 1)?, b'K' | b'S').then_some(Anchor {
            kind: Kind::Provider(Provider::Cloud),
            start: place,
            end: place + 4,
        }),
        b'x' => {
            let [b'x', b'o', b'x', b'a' | b'b' | b'p' | b'r' | b's', b'-'] =
                text[place..].first_chunk()?
            else {
                return None;
            };
            let kind = Kind::Provider(Provider::Chat);
            Some(Anchor {
                kind,
                start: place,
                end: place + 5,
            })
        }
        b'e' => exact(Kind::WebToken, 0, b"eyJ"),
        b't' | b'T' => word(Kind::Token, 0, b"token"),
        b'-' => exact(Kind::Pem, 4, b"-----BEGIN "),
        _ => None,
    }
}

fn api_key(text: &[u8], place: usize) -> Option<Anchor> {
    let start = place.checked_sub(1)?;
    let rest = text.get(place + 2..)?;
    let rest = match rest {
        [b'_' | b'-' | b' ', rest @ ..] => rest,
        together => together,
    };
    let whole =
        text[start].eq_ignore_ascii_case(&b'a') && rest.get(..3)?.eq_ignore_ascii_case(b"key");
    whole.then_some(Anchor {
        kind: Kind::ApiKey,
        start,
        end: text.len() - rest.len() + 3,
    })
}

fn password(text: &[u8], place: usize) -> Option<Anchor> {
    let start = place.checked_sub(2)?;
    let length = [&b"password"[..], b"passwd"].into_iter().find_map(|word| {
        let found = text.get(start..start + word.len())?;
        found.eq_ignore_ascii_case(word).then_some(word.len())
    })?;
    Some(Anchor {
        kind: Kind::Password,
        start,
        end: start + length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let found = all(text.as_bytes());
        found
            .iter()
            .map(|anchor| (anchor.kind, &text[anchor.start..anchor.end]))
            .collect()
    }

    const WORDS: [(&str, Kind); 21] = [
        ("Authorization", Kind::Authorization),
        ("AUTHORIZATION", Kind::Authorization),
        ("api_key", Kind::ApiKey),
        ("API-Key", Kind::ApiKey),
        ("api key", Kind::ApiKey),
        ("ApiKey", Kind::ApiKey),
        ("Bearer", Kind::Bearer),
        ("bEARER", Kind::Bearer),
        ("sk-", Kind::Provider(Provider::Secret)),
        ("ghp_", Kind::Provider(Provider::Forge)),
        ("ghr_", Kind::Provider(Provider::Forge)),
        ("github_pat_", Kind::Provider(Provider::ForgeFineGrained)),
        ("AKIA", Kind::Provider(Provider::Cloud)),
        ("ASIA", Kind::Provider(Provider::Cloud)),
        ("xoxb-", Kind::Provider(Provider::Chat)),
        ("eyJ", Kind::WebToken),
        ("token", Kind::Token),
        ("TOKEN", Kind::Token),
        ("password", Kind::Password),
        ("PassWd", Kind::Password),
        ("-----BEGIN ", Kind::Pem),
    ];

    #[test]
    fn every_word_is_found_at_every_place_of_a_block() {
        for (word, kind) in WORDS {
            for before in 0..(2 * BLOCK + 3) {
                for after in [0, 1, 2, 3, BLOCK] {
                    let text = format!("{}{word}{}", ".".repeat(before), ".".repeat(after));
                    assert_eq!(
                        kinds(&text),
                        [(kind, word)],
                        "{before} before, {after} after"
                    );
                }
            }
        }
    }

    #[test]
    fn neighbours_of_a_word_are_not_it() {
        for text in [
            "prize",
            "organization",
            "spike",
            "picked",
            "bearing",
            "desk",
            "high_water",
            "lib_path",
            "Asian",
            "xylophone",
            "eyjafjallajokull",
            "stock",
            "glassware",
            "-BEST",
            "GHP_",
            "XOXB-",
            "akia",
            "EYJ",
            "----BEGIN ",
            "ri",
            "z",
            "",
            "passwort",
            "toke",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn anchors_come_in_order_and_may_touch() {
        let found = kinds("tokenpassword api_keysk-");
        let words: Vec<_> = found.iter().map(|(_, word)| *word).collect();
        assert_eq!(words, ["token", "password", "api_key", "sk-"]);
    }
}
