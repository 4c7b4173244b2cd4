//! Keys that are recognised by their own prefix.
//!
//! The prefixes, alphabets and lengths are those that the issuers document and that public secret
//! scanners agree on. The minimum lengths are a little shorter, because issuers change the length
//! of their keys. In exchange, the rest of a key must not be plain words.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_word, preceded_by, starts_word};
use super::looks::{is_plain_words, is_stand_in, is_worded};

/// What a key consists of after its prefix.
#[derive(Clone, Copy)]
enum Body {
    /// Letters and digits.
    Plain,
    /// Digits and the letters from a to f.
    Hex,
    /// Capitals and digits.
    Capital,
    /// Letters, digits, `_` and `-`.
    Dashed,
    /// Letters, digits, `_`, `-`, `.` and `=`.
    Dotted,
    /// Letters, digits and the signs of both alphabets of Base64.
    Base64,
}

impl Body {
    fn holds(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Dashed => is_run(byte),
            Self::Dotted => is_run(byte) || matches!(byte, b'.' | b'='),
            Self::Base64 => is_run(byte) || matches!(byte, b'+' | b'/' | b'='),
        }
    }
}

struct Family {
    prefix: &'static [u8],
    body: Body,
    /// The minimum number of bytes after the prefix.
    shortest: usize,
}

const fn family(prefix: &'static str, body: Body, shortest: usize) -> Family {
    Family {
        prefix: prefix.as_bytes(),
        body,
        shortest,
    }
}

/// The families, in the order of their first bytes.
const FAMILIES: &[Family] = &[
    family("AGE-SECRET-KEY-1", Body::Capital, 50),
    family("AIza", Body::Dashed, 30),
    family("AKCp", Body::Plain, 60),
    family("AKIA", Body::Capital, 16),
    family("API-", Body::Capital, 26),
    family("AQVN", Body::Dashed, 35),
    family("ASIA", Body::Capital, 16),
    family("ABIA", Body::Capital, 16),
    family("ACCA", Body::Capital, 16),
    family("ATATT3", Body::Dotted, 60),
    family("ATBB", Body::Plain, 24),
    family("ATCTT3", Body::Dotted, 60),
    family("CCIPAT_", Body::Dashed, 30),
    family("CFPAT-", Body::Dashed, 40),
    family("CLOJARS_", Body::Plain, 50),
    family("EAAA", Body::Dashed, 40),
    family("EAAC", Body::Plain, 80),
    family("EAAM", Body::Plain, 80),
    family("EZAK", Body::Plain, 50),
    family("EZTK", Body::Plain, 50),
    family("FLWSECK-", Body::Dashed, 12),
    family("FLWSECK_TEST-", Body::Dashed, 12),
    family("GOCSPX-", Body::Dashed, 20),
    family("GR1348941", Body::Dashed, 18),
    family("HRKU-", Body::Dashed, 30),
    family("LTAI", Body::Plain, 16),
    family("NRAK-", Body::Capital, 20),
    family("NRII-", Body::Dashed, 24),
    family("NRJS-", Body::Hex, 16),
    family("PMAK-", Body::Dashed, 40),
    family("SK", Body::Hex, 32),
    family("aio_", Body::Plain, 24),
    family("api_org_", Body::Plain, 28),
    family("bkua_", Body::Plain, 32),
    family("cmVmd", Body::Plain, 59),
    family("csk-", Body::Plain, 32),
    family("dapi", Body::Hex, 32),
    family("dckr_oat_", Body::Dashed, 20),
    family("dckr_pat_", Body::Dashed, 20),
    family("dnkey-", Body::Dashed, 60),
    family("doo_v1_", Body::Hex, 40),
    family("dop_v1_", Body::Hex, 40),
    family("dor_v1_", Body::Hex, 40),
    family("duffel_live_", Body::Dotted, 32),
    family("duffel_test_", Body::Dotted, 32),
    family("figd_", Body::Dashed, 30),
    family("fio-u-", Body::Dotted, 50),
    family("fm1a_", Body::Base64, 80),
    family("fm1r_", Body::Base64, 80),
    family("fm2_", Body::Base64, 80),
    family("fo1_", Body::Dashed, 40),
    family("gho_", Body::Plain, 16),
    family("ghp_", Body::Plain, 16),
    family("ghr_", Body::Plain, 16),
    family("ghs_", Body::Plain, 16),
    family("ghu_", Body::Plain, 16),
    family("github_pat_", Body::Dashed, 20),
    family("glagent-", Body::Dashed, 30),
    family("glc_", Body::Base64, 32),
    family("glcbt-", Body::Dashed, 20),
    family("gldt-", Body::Dashed, 16),
    family("glffct-", Body::Dashed, 16),
    family("glft-", Body::Dashed, 16),
    family("glimt-", Body::Dashed, 20),
    family("gloas-", Body::Dashed, 40),
    family("glpat-", Body::Dotted, 16),
    family("glptt-", Body::Hex, 32),
    family("glrt-", Body::Dotted, 16),
    family("glsa_", Body::Dashed, 32),
    family("glsoat-", Body::Dashed, 16),
    family("gsk_", Body::Plain, 32),
    family("hf_", Body::Plain, 28),
    family("key-", Body::Hex, 32),
    family("lin_api_", Body::Plain, 32),
    family("lin_oauth_", Body::Plain, 32),
    family("lsv2_", Body::Dashed, 32),
    family("nfp_", Body::Plain, 32),
    family("npm_", Body::Plain, 30),
    family("ntn_", Body::Plain, 40),
    family("nvapi-", Body::Dashed, 40),
    family("ops_eyJ", Body::Base64, 100),
    family("p8e-", Body::Plain, 32),
    family("phx_", Body::Plain, 32),
    family("pnu_", Body::Plain, 32),
    family("pplx-", Body::Plain, 40),
    family("pscale_oauth_", Body::Dotted, 30),
    family("pscale_pw_", Body::Dotted, 30),
    family("pscale_tkn_", Body::Dotted, 30),
    family("pul-", Body::Hex, 40),
    family("pypi-", Body::Dashed, 32),
    family("r8_", Body::Plain, 32),
    family("rdme_", Body::Plain, 60),
    family("rk_live_", Body::Plain, 10),
    family("rk_prod_", Body::Plain, 10),
    family("rk_test_", Body::Plain, 10),
    family("rubygems_", Body::Hex, 40),
    family("sbp_", Body::Hex, 40),
    family("sgp_", Body::Dashed, 40),
    family("shippo_", Body::Dashed, 40),
    family("shpat_", Body::Hex, 32),
    family("shpca_", Body::Hex, 32),
    family("shppa_", Body::Hex, 32),
    family("shpss_", Body::Hex, 32),
    family("sk-", Body::Dashed, 16),
    family("sk_live_", Body::Plain, 10),
    family("sk_prod_", Body::Plain, 10),
    family("sk_test_", Body::Plain, 10),
    family("slk_", Body::Hex, 64),
    family("sm_aat_", Body::Plain, 16),
    family("sm_pat_", Body::Plain, 16),
    family("sm_sat_", Body::Plain, 16),
    family("sntrys_", Body::Base64, 60),
    family("sntryu_", Body::Hex, 60),
    family("sq0atp-", Body::Dashed, 20),
    family("sq0csp-", Body::Dashed, 20),
    family("tfp_", Body::Dotted, 44),
    family("tk-us-", Body::Dashed, 40),
    family("tskey-", Body::Dashed, 20),
    family("whsec_", Body::Base64, 24),
    family("xai-", Body::Plain, 60),
    family("xapp-", Body::Dashed, 20),
    family("xkeysib-", Body::Dashed, 70),
    family("xoxa-", Body::Dashed, 8),
    family("xoxb-", Body::Dashed, 8),
    family("xoxc-", Body::Dashed, 8),
    family("xoxd-", Body::Base64, 8),
    family("xoxe-", Body::Dashed, 8),
    family("xoxo-", Body::Dashed, 8),
    family("xoxp-", Body::Dashed, 8),
    family("xoxr-", Body::Dashed, 8),
    family("xoxs-", Body::Dashed, 8),
    family("xsmtpsib-", Body::Dashed, 70),
];

/// The words before a dot that is followed by the rest of a key, and the minimum length of that
/// rest in bytes.
const DOTTED: [(&[u8], usize); 9] = [
    (b"SG", 20),
    (b"hvs", 20),
    (b"hvb", 20),
    (b"hvr", 20),
    (b"ya29", 30),
    (b"dp.pt", 32),
    (b"dp.st", 32),
    (b"dt0c01", 24),
    (b"sl", 100),
];

/// Where the families that start with each ASCII byte begin, and where the last ones end.
const BY_FIRST: [u8; 129] = {
    let mut starts = [0; 129];
    let mut byte = 0;
    let mut next = 0;
    while byte < 128 {
        starts[byte] = next;
        while (next as usize) < FAMILIES.len() && FAMILIES[next as usize].prefix[0] as usize == byte
        {
            next += 1;
        }
        byte += 1;
    }
    starts[128] = next;
    assert!(
        next as usize == FAMILIES.len(),
        "in the order of their first bytes"
    );
    starts
};

/// Returns the key that starts with the long run at `start`, or of which the run is the last part.
pub(super) fn key(text: &[u8], start: usize) -> Option<Range<usize>> {
    let run = after_escape(text, start);
    if let Some(place) = prefixed(text, run) {
        return Some(place);
    }
    let place = dotted(text, run)
        .or_else(|| bot(text, run))
        .or_else(|| of_region(text, run))?;
    (!is_stand_in(&text[place.clone()])).then_some(place)
}

/// Returns the key whose prefix is the anchor. It may be shorter than a long run.
pub(super) fn short_key(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let apart =
        starts_word(text, anchor.start) && !preceded_by(text, anchor.start, |byte| byte == b'-');
    apart.then(|| prefixed(text, anchor.start)).flatten()
}

/// Returns the JSON web token that starts with the long run at `start`. It has three to five
/// segments.
pub(super) fn web_token(text: &[u8], start: usize) -> Option<Range<usize>> {
    const SEGMENT_BYTES_MIN: usize = 8;
    let start = after_escape(text, start);
    if !text[start..].starts_with(b"eyJ") {
        return None;
    }
    let mut cursor = Cursor::new(text, start);
    let mut end = start;
    for segment in 0..5 {
        let dot = segment == 0 || cursor.one(|byte| byte == b'.').is_some();
        if !dot || cursor.run(is_run) < SEGMENT_BYTES_MIN {
            return (segment >= 3).then_some(start..end);
        }
        end = cursor.at;
    }
    Some(start..end)
}

/// Returns the start of a run without the end of an escape sequence before it, as in JSON within a
/// text, in a URL or in terminal colours.
fn after_escape(text: &[u8], start: usize) -> usize {
    let hex = |length: usize| {
        let digits = text.get(start..start + length);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match (start.checked_sub(1).map(|before| text[before]), text[start]) {
        (Some(b'\\'), b'n' | b't' | b'r' | b'b' | b'f') => start + 1,
        (Some(b'\\'), b'u')
            if Cursor::new(text, start + 1).run(|byte| byte.is_ascii_hexdigit()) >= 4 =>
        {
            start + 5
        }
        (Some(b'%'), _) if hex(2) => start + 2,
        (Some(b'[' | b';'), b'0'..=b'9') => {
            let mut cursor = Cursor::new(text, start);
            cursor.run(|byte| byte.is_ascii_digit());
            cursor.one(|byte| byte == b'm').map_or(start, |_| cursor.at)
        }
        _ => start,
    }
}

fn prefixed(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let first = usize::from(*rest.first()?);
    let families = usize::from(*BY_FIRST.get(first)?)..usize::from(*BY_FIRST.get(first + 1)?);
    FAMILIES[families].iter().find_map(|family| {
        let body = rest.strip_prefix(family.prefix)?;
        let mut cursor = Cursor::new(text, start + family.prefix.len());
        let length = cursor.run(|byte| family.body.holds(byte));
        let whole = match family.body {
            Body::Capital | Body::Hex => !cursor.peek().is_some_and(is_run),
            Body::Plain | Body::Dashed | Body::Dotted | Body::Base64 => true,
        };
        if length < family.shortest || !whole || is_plain_words(&body[..length]) {
            return None;
        }
        cursor.run(is_word);
        Some(start..without_end_of_sentence(text, start..cursor.at))
    })
}

fn dotted(text: &[u8], run: usize) -> Option<Range<usize>> {
    let before = text[..run].strip_suffix(b".")?;
    DOTTED.iter().find_map(|(word, shortest)| {
        let start = before.strip_suffix(*word)?.len();
        if preceded_by(text, start, |byte| is_run(byte) || byte == b'.') {
            return None;
        }
        let mut cursor = Cursor::new(text, run);
        let length = cursor.run(|byte| is_run(byte) || byte == b'.');
        let key = start..without_end_of_sentence(text, start..cursor.at);
        (length >= *shortest && !is_worded(&text[run..key.end])).then_some(key)
    })
}

/// Returns a bot's token: `123456789:AA...`, or three segments of which the first is a number in
/// Base64.
fn bot(text: &[u8], run: usize) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, run);
    let length = cursor.run(is_run);
    match text[run..cursor.at] {
        [b'A', b'A', ..] if (33..=37).contains(&length) => {
            let number = text[..run].strip_suffix(b":")?;
            let digits = number
                .iter()
                .rev()
                .take(11)
                .take_while(|byte| byte.is_ascii_digit());
            let start = number.len() - digits.count();
            let numbered = (8..=10).contains(&(number.len() - start));
            (numbered && !preceded_by(text, start, is_word)).then_some(start..cursor.at)
        }
        [b'M' | b'N' | b'O', ..] if (23..=28).contains(&length) => {
            cursor.one(|byte| byte == b'.')?;
            let middle = cursor.run(is_run);
            cursor.one(|byte| byte == b'.')?;
            let last = cursor.run(is_run);
            ((6..=7).contains(&middle) && (27..=40).contains(&last)).then_some(run..cursor.at)
        }
        _ => None,
    }
}

/// Returns a key of 32 hexadecimal digits that is followed by its region: `...-us12`.
fn of_region(text: &[u8], run: usize) -> Option<Range<usize>> {
    const KEY_BYTES: usize = 32;
    let mut cursor = Cursor::new(text, run);
    cursor.run(|byte| byte.is_ascii_hexdigit());
    if cursor.at - run != KEY_BYTES {
        return None;
    }
    cursor.word(b"-us")?;
    let digits = cursor.run(|byte| byte.is_ascii_digit());
    ((1..=2).contains(&digits) && !cursor.peek().is_some_and(is_run)).then_some(run..cursor.at)
}

/// Returns the end of a key without the full stop of the sentence that it ends.
fn without_end_of_sentence(text: &[u8], key: Range<usize>) -> usize {
    let stops = text[key.clone()]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'.');
    key.end - stops.count()
}

const fn is_run(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}
