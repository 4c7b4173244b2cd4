//! Finds the few places in a text at which a credential may be.
//!
//! What gives a credential away is either a word before it, which contains one of the sequences in
//! [`mark`], or a run of letters and digits that is longer than nearly every word. Both are
//! searched for in a whole block at once and without branches, which the compiler turns into vector
//! instructions. (A multi-pattern automaton that ignores case reads one byte at a time and is
//! several times slower. One that compares vectors does not ignore case, and slows down with every
//! prefix, of which there are more than a hundred.)

/// The number of places that are compared at once.
const BLOCK: usize = 64;
/// The byte before a block, the block, and the bytes after it that its last places need.
const WINDOW: usize = 96;
/// A short text fits into one block of half the size. There are many of them.
const SHORT_BLOCK: usize = BLOCK / 2;
/// The byte before the short block, the block, and padding for what its last places need.
const SHORT_WINDOW: usize = 40;
/// The shortest run of letters, digits, `_` and `-` that is an anchor: every key with a prefix is
/// at least this long, except those with an anchor of their own.
const RUN_BYTES_MIN: u32 = 17;

/// What the sequence that was found belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `authorization`.
    Authorization,
    /// `api_key` or `api-key` or `api key` or `apikey`.
    ApiKey,
    /// `bearer`.
    Bearer,
    /// `secret`, `token`, `pass`, `pwd`, `psk`, `cookie`, `auth` or `key`: part of a name that may say
    /// what its value is.
    Name,
    /// A long run of letters, digits, `_` and `-`; the anchor is empty and stands at its start.
    Run,
    /// `xox`: the prefix of keys that may be shorter than a long run.
    ShortKey,
    /// `://`.
    Url,
    /// ` -` or `--` and a letter: an option of a command that may take a password.
    Option,
    /// `:54`, as in a line of `.pgpass`: the beginning of PostgreSQL's port.
    Port,
    /// `tcp(`, as in a data source name of Go: what follows a user and a password.
    Address,
    /// `identified by`: before a password in SQL.
    Identified,
    /// `sig=`.
    Signature,
    /// `-----BEGIN `.
    Pem,
}

/// A sequence in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Calls `visit` with each anchor, in the order of the marked bytes.
pub(super) fn each(text: &[u8], mut visit: impl FnMut(Anchor)) {
    for start in (0..text.len()).step_by(BLOCK) {
        let inside = start
            .checked_sub(1)
            .and_then(|from| text[from..].first_chunk());
        let (words, runs) = if let Some(window) = inside {
            mark::<BLOCK, WINDOW>(window)
        } else if text.len() <= SHORT_BLOCK {
            let mut window = [0; SHORT_WINDOW];
            window[1..][..text.len()].copy_from_slice(text);
            mark::<SHORT_BLOCK, SHORT_WINDOW>(&window)
        } else {
            let mut window = [0; WINDOW];
            let from = start.saturating_sub(1);
            let rest = &text[from..text.len().min(start + WINDOW - 1)];
            window[usize::from(start == 0)..][..rest.len()].copy_from_slice(rest);
            mark::<BLOCK, WINDOW>(&window)
        };
        let mut hits = words | runs;
        while hits != 0 {
            let offset = hits.trailing_zeros() as usize;
            let place = start + offset;
            if runs >> offset & 1 == 1 {
                visit(Anchor {
                    kind: Kind::Run,
                    start: place,
                    end: place,
                });
            }
            if words >> offset & 1 == 1
                && let Some(anchor) = at(text, place)
            {
                visit(anchor);
            }
            hits &= hits - 1;
        }
    }
}

/// Returns two sets of places in a block, with a bit for each place: where [`at`] may find an
/// anchor, and where a long run starts.
///
/// Comparing `byte | 0x20` ignores the case of letters. It also confuses a few other bytes, which
/// [`at`] sorts out.
#[inline]
fn mark<const BLOCK: usize, const WINDOW: usize>(window: &[u8; WINDOW]) -> (u64, u64) {
    // Bits, because a compiler would rather branch on Booleans.
    let is = |byte: u8, wanted: u8| u8::from(byte == wanted);
    let within = |byte: u8, first: u8, count: u8| u8::from(byte.wrapping_sub(first) < count);
    let mut words = [0; BLOCK];
    for (place, hit) in words.iter_mut().enumerate() {
        let own = [
            window[place + 1],
            window[place + 2],
            window[place + 3],
            window[place + 4],
        ];
        let low = own.map(|byte| byte | 0x20);
        let word = |word: [u8; 3]| is(low[0], word[0]) & is(low[1], word[1]) & is(low[2], word[2]);
        // The letters of options are compared in groups: up to `c`, `p`, `s`, and `u` with `w`.
        let then = |pair: [u8; 2]| is(low[1], pair[0]) & is(low[2], pair[1]);
        *hit = word(*b"aut")
            | word(*b"bea")
            | word(*b"key")
            | word(*b"tok")
            | word(*b"ecr")
            | (is(low[0], b'p') & (then(*b"as") | is(low[1], b'w') | then(*b"sk")))
            | word(*b"coo")
            | word(*b"xox")
            | word(*b"tcp")
            | word(*b"ied")
            | (is(low[0], b':') & (then(*b"//") | then(*b"54")))
            | (word(*b"sig") & is(own[3], b'='))
            | ((is(own[0], b' ') | is(own[0], b'-'))
                & is(own[1], b'-')
                & (is(low[2] & 0xfc, b'`')
                    | is(low[2], b'p')
                    | is(low[2], b's')
                    | is(low[2] | 2, b'w')))
            | (is(own[0], b'-') & is(own[1], b'B') & is(own[2], b'E'));
    }
    let mut run = [0; WINDOW];
    for (place, in_run) in run.iter_mut().enumerate() {
        let byte = window[place];
        *in_run = within(byte | 0x20, b'a', 26)
            | within(byte, b'0', 10)
            | is(byte, b'_')
            | is(byte, b'-');
    }
    let in_run = bits(&run);
    let mut long = in_run;
    let mut length = 1;
    while length < RUN_BYTES_MIN {
        let step = length.min(RUN_BYTES_MIN - length);
        long &= long >> step;
        length += step;
    }
    let starts = long & !(in_run << 1);
    let words = bits(&words);
    #[expect(clippy::cast_possible_truncation, reason = "the bits of the block")]
    (words as u64, (starts >> 1) as u64)
}

/// Returns a bit for each byte, all of which are 0 or 1.
#[inline]
fn bits<const N: usize>(bytes: &[u8; N]) -> u128 {
    // The multiplication gathers the lowest bit of each of the eight bytes in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = bytes.as_chunks::<8>();
    let mut bits = 0;
    for (index, eight) in eights.iter().enumerate() {
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
        bits |= u128::from(gathered) << (8 * index);
    }
    bits
}

/// Returns the anchor whose marked byte is at `place`.
fn at(text: &[u8], place: usize) -> Option<Anchor> {
    let word = |kind, back: usize, word: &[u8]| {
        let start = place.checked_sub(back)?;
        let end = start + word.len();
        let found = text.get(start..end)?;
        found
            .eq_ignore_ascii_case(word)
            .then_some(Anchor { kind, start, end })
    };
    match text[place] | 0x20 {
        b'a' => word(Kind::Authorization, 0, b"authorization").or_else(|| {
            let auth = word(Kind::Name, 0, b"auth")?;
            let goes_on = text.get(auth.end).is_some_and(u8::is_ascii_lowercase);
            (!goes_on).then_some(auth)
        }),
        b'b' => word(Kind::Bearer, 0, b"bearer"),
        b'e' => word(Kind::Name, 1, b"secret"),
        b't' => word(Kind::Name, 0, b"token").or_else(|| word(Kind::Address, 0, b"tcp(")),
        b'c' => word(Kind::Name, 0, b"cookie"),
        b'p' => [&b"pass"[..], b"pwd", b"psk"]
            .iter()
            .find_map(|name| word(Kind::Name, 0, name))
            .or_else(|| {
                let pw = word(Kind::Name, 0, b"pw")?;
                let goes_on = text.get(pw.end).is_some_and(u8::is_ascii_alphanumeric);
                (!goes_on).then_some(pw)
            }),
        b'k' => {
            let key = word(Kind::Name, 0, b"key")?;
            Some(api_key(text, key).unwrap_or(key))
        }
        b'i' => word(Kind::Identified, 7, b"identified by"),
        b's' => word(Kind::Signature, 0, b"sig="),
        b'x' => word(Kind::ShortKey, 0, b"xox"),
        b':' => word(Kind::Url, 0, b"://").or_else(|| word(Kind::Port, 0, b":54")),
        b'-' if text[place..].starts_with(b"-B") => word(Kind::Pem, 4, b"-----BEGIN "),
        b' ' | b'-' => {
            let end = place + 3;
            let option = text.get(place..end)?;
            // `--B` is in the first line of a key.
            let letter = option[2] | if option[0] == b' ' { 0x20 } else { 0 };
            (option[1] == b'-' && matches!(letter, b'a' | b'b' | b'p' | b's' | b'u' | b'w'))
                .then_some(Anchor {
                    kind: Kind::Option,
                    start: place,
                    end,
                })
        }
        _ => None,
    }
}

/// Returns the whole `api_key`, given the `key` that was found in it.
fn api_key(text: &[u8], key: Anchor) -> Option<Anchor> {
    let before = &text[..key.start];
    let before = match before {
        [before @ .., b'_' | b'-' | b' '] => before,
        together => together,
    };
    let start = before.len().checked_sub(3)?;
    before[start..]
        .eq_ignore_ascii_case(b"api")
        .then_some(Anchor {
            kind: Kind::ApiKey,
            start,
            end: key.end,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut found = Vec::new();
        each(text.as_bytes(), |anchor| {
            found.push((anchor.kind, &text[anchor.start..anchor.end]));
        });
        found
    }

    const WORDS: [(&str, Kind); 32] = [
        ("Authorization", Kind::Authorization),
        ("AUTHORIZATION", Kind::Authorization),
        ("api_key", Kind::ApiKey),
        ("API-Key", Kind::ApiKey),
        ("api key", Kind::ApiKey),
        ("ApiKey", Kind::ApiKey),
        ("Bearer", Kind::Bearer),
        ("bEARER", Kind::Bearer),
        ("Secret", Kind::Name),
        ("SECRET", Kind::Name),
        ("token", Kind::Name),
        ("TOKEN", Kind::Name),
        ("pass", Kind::Name),
        ("PASS", Kind::Name),
        ("Pwd", Kind::Name),
        ("Cookie", Kind::Name),
        ("Key", Kind::Name),
        ("xox", Kind::ShortKey),
        ("://", Kind::Url),
        (" -u", Kind::Option),
        ("--u", Kind::Option),
        (" -P", Kind::Option),
        (" -a", Kind::Option),
        ("auth", Kind::Name),
        ("PSK", Kind::Name),
        (":54", Kind::Port),
        ("sig=", Kind::Signature),
        ("tcp(", Kind::Address),
        ("IDENTIFIED BY", Kind::Identified),
        (" -S", Kind::Option),
        ("pw", Kind::Name),
        ("-----BEGIN ", Kind::Pem),
    ];

    #[test]
    fn every_word_is_found_at_every_offset_in_a_block() {
        for (word, kind) in WORDS {
            for before in 0..(2 * BLOCK + 3) {
                for after in [0, 1, 2, 3, WINDOW] {
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
    fn a_long_run_is_found_where_it_starts() {
        for length in [1, 15, 16, 17, 18, 40, 200] {
            for before in 0..(2 * BLOCK + 3) {
                for after in [0, 1, WINDOW] {
                    let run = "aZ09_-".repeat(40);
                    let text = format!(
                        "{}{}{}",
                        "+".repeat(before),
                        &run[..length],
                        "/".repeat(after)
                    );
                    let mut starts = Vec::new();
                    each(text.as_bytes(), |anchor| {
                        assert_eq!(anchor.kind, Kind::Run);
                        starts.push(anchor.start);
                    });
                    let expected: &[usize] = if length >= 17 { &[before] } else { &[] };
                    assert_eq!(starts, expected, "{before} before {length}, {after} after");
                }
            }
        }
    }

    #[test]
    fn similar_words_are_not_anchors() {
        for text in [
            "prize",
            "organization",
            "bearing",
            "stock",
            "paste",
            "decrease",
            "kept",
            "-BEST",
            "----BEGIN ",
            "-x",
            " -x",
            "author",
            "automatic",
            ":50",
            ":/ /",
            "sig-",
            "tcp:",
            "identified",
            "pwn",
            "ri",
            "z",
            "",
            "toke",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn adjacent_anchors_are_found_in_order() {
        let found = kinds("tokenpass api_key://");
        let words: Vec<_> = found.iter().map(|(_, word)| *word).collect();
        assert_eq!(words, ["token", "pass", "api_key", "://"]);
    }
}
