//! Keys that are recognised by their own prefix.
//!
//! The prefixes, alphabets and lengths are those that the issuers document and that public secret
//! scanners agree on. The minimum lengths are a little shorter, because issuers change the length
//! of their keys. In exchange, the rest of a key must not be plain words.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_word, preceded_by, starts_word};
use super::looks::{has_random_part, is_plain_words, is_stand_in, is_worded};

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
    /// Small letters and digits.
    Lower,
    /// Capitals, digits and `-`.
    CapitalDashed,
    /// Like [`Dashed`](Self::Dashed), after a prefix that is also the beginning of ordinary names: with
    /// a random part.
    Random,
    /// A UUID.
    Uuid,
}

impl Body {
    fn holds(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Dashed | Self::Random => is_run(byte),
            Self::Lower => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Self::CapitalDashed => Self::Capital.holds(byte) || byte == b'-',
            Self::Uuid => byte.is_ascii_hexdigit() || byte == b'-',
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
    family("A21AA", Body::Dashed, 60),
    family("A3-", Body::CapitalDashed, 31),
    family("ABIA", Body::Capital, 16),
    family("ABSK", Body::Base64, 60),
    family("ACCA", Body::Capital, 16),
    family("AGE-SECRET-KEY-1", Body::Capital, 50),
    family("AIza", Body::Dashed, 30),
    family("AKCp", Body::Plain, 60),
    family("AKIA", Body::Capital, 16),
    family("AKID", Body::Dashed, 32),
    family("API-", Body::Capital, 26),
    family("AQVN", Body::Dashed, 35),
    family("ASIA", Body::Capital, 16),
    family("ATATT3", Body::Dotted, 60),
    family("ATBB", Body::Plain, 24),
    family("ATCTT3", Body::Dotted, 60),
    family("ATSTT3", Body::Dotted, 60),
    family("ATTA", Body::Hex, 64),
    family("BSA", Body::Random, 26),
    family("CCDB1_", Body::Dashed, 30),
    family("CCIPAT_", Body::Dashed, 30),
    family("CCIPRJ_", Body::Dashed, 30),
    family("CFPAT-", Body::Dashed, 40),
    family("CLOJARS_", Body::Plain, 50),
    family("DO00", Body::Capital, 16),
    family("EAA", Body::Plain, 80),
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
    family("Mid-server-", Body::Random, 16),
    family("NRAK-", Body::Capital, 20),
    family("NRII-", Body::Dashed, 24),
    family("NRIQ-", Body::Dashed, 24),
    family("NRJS-", Body::Hex, 16),
    family("PMAK-", Body::Dashed, 40),
    family("SB-Mid-server-", Body::Random, 16),
    family("SK", Body::Hex, 32),
    family("access-development-", Body::Uuid, 36),
    family("access-production-", Body::Uuid, 36),
    family("access-sandbox-", Body::Uuid, 36),
    family("aio_", Body::Plain, 24),
    family("akab-", Body::Dashed, 30),
    family("api-", Body::Uuid, 36),
    family("ak_live_", Body::Plain, 20),
    family("api_org_", Body::Plain, 28),
    family("apify_api_", Body::Plain, 30),
    family("bb_live_", Body::Dashed, 16),
    family("bedrock-api-key-", Body::Base64, 60),
    family("bkat_", Body::Plain, 32),
    family("bkct_", Body::Plain, 32),
    family("bkua_", Body::Plain, 32),
    family("cal_live_", Body::Dashed, 24),
    family("cfat_", Body::Dashed, 32),
    family("cfk_", Body::Random, 32),
    family("cfut_", Body::Dashed, 32),
    family("chpt_", Body::Random, 16),
    family("cio", Body::Random, 32),
    family("cmVmd", Body::Plain, 59),
    family("csk-", Body::Plain, 32),
    family("dG9rO", Body::Base64, 40),
    family("dapi", Body::Hex, 32),
    family("dbtc_", Body::Dashed, 30),
    family("dbtu_", Body::Dashed, 30),
    family("dckr_oat_", Body::Dashed, 20),
    family("dckr_pat_", Body::Dashed, 20),
    family("dkea", Body::Hex, 32),
    family("dnkey-", Body::Dashed, 60),
    family("doo_v1_", Body::Hex, 40),
    family("dop_v1_", Body::Hex, 40),
    family("dor_v1_", Body::Hex, 40),
    family("dub_", Body::Random, 20),
    family("duffel_live_", Body::Dotted, 32),
    family("duffel_test_", Body::Dotted, 32),
    family("e2b_", Body::Hex, 32),
    family("esecret_", Body::Random, 16),
    family("eyJrIjoi", Body::Base64, 40),
    family("fc-", Body::Hex, 32),
    family("figd_", Body::Dashed, 30),
    family("figo_", Body::Dashed, 30),
    family("figu_", Body::Dashed, 30),
    family("fio-u-", Body::Dotted, 50),
    family("fm1a_", Body::Base64, 80),
    family("fm1r_", Body::Base64, 80),
    family("fm2_", Body::Base64, 80),
    family("fo1_", Body::Dashed, 40),
    family("fw_", Body::Random, 20),
    family("gb_api_", Body::Dashed, 24),
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
    family("glrtr-", Body::Dashed, 16),
    family("glsa_", Body::Dashed, 32),
    family("glsoat-", Body::Dashed, 16),
    family("glwt-", Body::Dashed, 16),
    family("gsk_", Body::Plain, 32),
    family("hcaik_", Body::Dashed, 40),
    family("hcalk_", Body::Random, 32),
    family("hcbik_", Body::Dashed, 40),
    family("hcxik_", Body::Dashed, 40),
    family("hcxlk_", Body::Random, 20),
    family("hcxmk_", Body::Random, 20),
    family("hf_", Body::Plain, 28),
    family("jina_", Body::Dashed, 40),
    family("key-", Body::Hex, 32),
    family("key_", Body::Hex, 64),
    family("lin_api_", Body::Plain, 32),
    family("lin_oauth_", Body::Plain, 32),
    family("lip_", Body::Random, 16),
    family("live_", Body::Random, 28),
    family("ls__", Body::Hex, 32),
    family("lsv2_", Body::Dashed, 32),
    family("m0-", Body::Random, 40),
    family("mdb_sa_sk_", Body::Dashed, 30),
    family("mob-", Body::Uuid, 36),
    family("napi_", Body::Dashed, 40),
    family("nfc_", Body::Plain, 32),
    family("nfo_", Body::Plain, 32),
    family("nfp_", Body::Plain, 32),
    family("nfu_", Body::Plain, 32),
    family("npm_", Body::Plain, 30),
    family("ntn_", Body::Plain, 40),
    family("nvapi-", Body::Dashed, 40),
    family("ops_eyJ", Body::Base64, 100),
    family("os_v2_app_", Body::Dashed, 60),
    family("oy2", Body::Lower, 43),
    family("p8e-", Body::Plain, 32),
    family("pa-", Body::Random, 40),
    family("pat-eu1-", Body::Uuid, 36),
    family("pat-na1-", Body::Uuid, 36),
    family("pat-na2-", Body::Uuid, 36),
    family("pcsk_", Body::Dashed, 50),
    family("pdl_live_", Body::Dashed, 40),
    family("pdl_sdbx_", Body::Dashed, 40),
    family("phs_", Body::Plain, 32),
    family("phx_", Body::Dashed, 32),
    family("pk_prod_", Body::Random, 26),
    family("pnb_", Body::Plain, 32),
    family("pnu_", Body::Plain, 32),
    family("polar_", Body::Random, 36),
    family("pplx-", Body::Plain, 40),
    family("pscale_oauth_", Body::Dotted, 30),
    family("pscale_pw_", Body::Dotted, 30),
    family("pscale_tkn_", Body::Dotted, 30),
    family("pul-", Body::Hex, 40),
    family("pypi-", Body::Dashed, 32),
    family("pypi-AgEN", Body::Dashed, 32),
    family("r8_", Body::Plain, 32),
    family("rdme_", Body::Plain, 60),
    family("re_", Body::Random, 24),
    family("retool_", Body::Dashed, 20),
    family("rk_live_", Body::Plain, 10),
    family("rk_prod_", Body::Plain, 10),
    family("rk_test_", Body::Plain, 10),
    family("rnd_", Body::Dashed, 24),
    family("rpa_", Body::Random, 30),
    family("rubygems_", Body::Hex, 40),
    family("rzp_live_", Body::Plain, 14),
    family("sandbox-sq0csb-", Body::Dashed, 20),
    family("sb_secret_", Body::Dashed, 24),
    family("sbp_", Body::Hex, 40),
    family("sdk-", Body::Uuid, 36),
    family("secret-", Body::Random, 36),
    family("secret_", Body::Plain, 40),
    family("sgp_", Body::Dashed, 40),
    family("shippo_", Body::Dashed, 40),
    family("shpat_", Body::Hex, 32),
    family("shpca_", Body::Hex, 32),
    family("shppa_", Body::Hex, 32),
    family("shpss_", Body::Hex, 32),
    family("shptka_", Body::Hex, 32),
    family("shpua_", Body::Hex, 32),
    family("signkey-", Body::Random, 40),
    family("sk-", Body::Dashed, 16),
    family("sk_", Body::Hex, 40),
    family("sk_car_", Body::Dashed, 20),
    family("sk_live_", Body::Plain, 10),
    family("sk_org_live_", Body::Plain, 10),
    family("sk_org_test_", Body::Plain, 10),
    family("sk_prod_", Body::Plain, 10),
    family("sk_test_", Body::Plain, 10),
    family("slk_", Body::Hex, 64),
    family("sm_aat_", Body::Plain, 16),
    family("sm_pat_", Body::Plain, 16),
    family("sm_sat_", Body::Plain, 16),
    family("sntrys_", Body::Base64, 60),
    family("sntrys_eyJ", Body::Base64, 40),
    family("sntryu_", Body::Hex, 60),
    family("snyk_", Body::Random, 32),
    family("sq0atp-", Body::Dashed, 20),
    family("sq0csp-", Body::Dashed, 20),
    family("sqa_", Body::Hex, 40),
    family("sqp_", Body::Hex, 40),
    family("squ_", Body::Hex, 40),
    family("syt_", Body::Dashed, 30),
    family("test_", Body::Random, 28),
    family("testsk_", Body::Random, 24),
    family("tfp_", Body::Dotted, 44),
    family("tgp_v1_", Body::Dashed, 30),
    family("tk-us-", Body::Dashed, 40),
    family("tr_dev_", Body::Random, 20),
    family("tr_prod_", Body::Random, 20),
    family("tskey-", Body::Dashed, 20),
    family("tvly-", Body::Dashed, 24),
    family("unkey_", Body::Random, 16),
    family("vca_", Body::Random, 24),
    family("vci_", Body::Random, 24),
    family("vck_", Body::Random, 24),
    family("vcp_", Body::Dashed, 24),
    family("vcr_", Body::Random, 24),
    family("vercel_blob_rw_", Body::Dashed, 24),
    family("vtwn_", Body::Dashed, 20),
    family("wandb_v1_", Body::Dashed, 40),
    family("whsec_", Body::Base64, 24),
    family("xaat-", Body::Uuid, 36),
    family("xai-", Body::Plain, 60),
    family("xapp-", Body::Dashed, 20),
    family("xapt-", Body::Uuid, 36),
    family("xkeysib-", Body::Dashed, 70),
    family("xnd_development_", Body::Dashed, 30),
    family("xnd_production_", Body::Dashed, 30),
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
    family("xwfp-", Body::Dashed, 20),
    family("zpka_", Body::Dashed, 30),
];

/// The words before a dot that is followed by the rest of a key, and the minimum length of that
/// rest in bytes.
const DOTTED: [(&[u8], usize); 30] = [
    (b"SG", 20),
    (b"hvs", 20),
    (b"hvb", 20),
    (b"hvr", 20),
    (b"ya29", 30),
    (b"dp.pt", 32),
    (b"dp.st", 32),
    (b"dp.st.dev", 32),
    (b"dp.st.stg", 32),
    (b"dp.st.prd", 32),
    (b"dp.ct", 32),
    (b"dp.sa", 32),
    (b"dp.scim", 32),
    (b"dp.audit", 32),
    (b"dt0c01", 24),
    (b"dt0s01", 24),
    (b"dt0s16", 24),
    (b"sl", 100),
    (b"sl.u", 60),
    (b"v1.local", 40),
    (b"v2.local", 40),
    (b"v3.local", 40),
    (b"v4.local", 40),
    (b"v2.public", 80),
    (b"v4.public", 80),
    (b"mlsn", 60),
    (b"amzn.mws", 36),
    (b"AQ", 40),
    (b"sk", 60),
    (b"p", 60),
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
        .or_else(|| marked(text, run))
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
        // Without a key of its own, the second segment is empty.
        if segment == 1 && dot && cursor.peek() == Some(b'.') {
            continue;
        }
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
    let [first, second, ..] = *rest else {
        return None;
    };
    let first = usize::from(first);
    let families = usize::from(*BY_FIRST.get(first)?)..usize::from(*BY_FIRST.get(first + 1)?);
    // Every prefix has two bytes, and the second rules most families out.
    let mut families = FAMILIES[families]
        .iter()
        .filter(|family| family.prefix[1] == second);
    families.find_map(|family| {
        let body = rest.strip_prefix(family.prefix)?;
        let mut cursor = Cursor::new(text, start + family.prefix.len());
        let length = cursor.run(|byte| family.body.holds(byte));
        let body = &body[..length];
        let whole = match family.body {
            // A shard of a key may follow it: `-2`.
            Body::Hex if cursor.peek() == Some(b'-') => {
                let mut shard = cursor;
                shard.at += 1;
                shard.run(|byte| byte.is_ascii_digit()) == 1
                    && !shard.peek().is_some_and(is_run)
                    && {
                        cursor = shard;
                        true
                    }
            }
            Body::Capital | Body::CapitalDashed | Body::Lower | Body::Hex => {
                !cursor.peek().is_some_and(is_run)
            }
            Body::Random => has_random_part(body),
            Body::Uuid => is_uuid(body),
            Body::Plain | Body::Dashed | Body::Dotted | Body::Base64 => true,
        };
        let is_mask =
            family.prefix.starts_with(b"gh") && body.iter().all(|byte| byte | 0x20 == b'x');
        if length < family.shortest || !whole || is_mask || is_plain_words(body) {
            return None;
        }
        cursor.run(is_word);
        Some(start..without_end_of_sentence(text, start..cursor.at))
    })
}

/// Returns whether a text has the form of a UUID.
fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text
            .iter()
            .enumerate()
            .all(|(place, byte)| (*byte == b'-') == matches!(place, 8 | 13 | 18 | 23))
}

/// Returns the key that only the text within it or before it gives away.
fn marked(text: &[u8], run: usize) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, run);
    let length = cursor.run(is_run);
    let (before, own) = (&text[..run], &text[run..cursor.at]);
    let back = |mut start: usize, holds: &dyn Fn(u8) -> bool| {
        while start > 0 && run - start < 24 && holds(text[start - 1]) {
            start -= 1;
        }
        start
    };
    // Terraform: `xxxxxxxxxxxxxx.atlasv1.`.
    if let Some(head) = before.strip_suffix(b".atlasv1.")
        && length >= 40
    {
        let start = back(head.len(), &|byte| byte.is_ascii_alphanumeric());
        return (head.len() - start == 14).then_some(start..cursor.at);
    }
    // Airtable: `patXXXXXXXXXXXXXX.` and 64 hexadecimal digits.
    if let Some(head) = before.strip_suffix(b".")
        && length == 64
        && own.iter().all(u8::is_ascii_hexdigit)
    {
        let start = back(head.len(), &|byte| byte.is_ascii_alphanumeric());
        return text[start..]
            .starts_with(b"pat")
            .then_some(start..cursor.at);
    }
    // Entra: three signs, a digit, `Q~`, and the rest, in which the run may be anywhere.
    let in_secret = |byte: u8| is_run(byte) || matches!(byte, b'.' | b'~');
    let start = run
        - before
            .iter()
            .rev()
            .take(48)
            .take_while(|byte| in_secret(**byte))
            .count();
    if text[start..].get(3).is_some_and(u8::is_ascii_digit) && text[start + 4..].starts_with(b"Q~")
    {
        let mut cursor = Cursor::new(text, start);
        let length = cursor.run(in_secret);
        let place = start..without_end_of_sentence(text, start..cursor.at);
        return (36..=48).contains(&length).then_some(place);
    }
    // Twitch: `oauth:`.
    if before.ends_with(b"oauth:")
        && length == 30
        && own.iter().all(|byte| Body::Lower.holds(*byte))
    {
        return Some(run..cursor.at);
    }
    // Refresh tokens of Google: `1//0`.
    if before.ends_with(b"1//") && own.starts_with(b"0") && length >= 40 {
        return Some(run - 3..cursor.at);
    }
    // Azure: 84 characters with a mark in the middle. New Relic: 40 with a mark at the end. Mailgun:
    // three groups.
    let is_azure = length == 84 && own[52..].starts_with(b"JQQJ99");
    let is_relic = length == 40
        && own.ends_with(b"NRAL")
        && own.iter().any(u8::is_ascii_digit)
        && !is_worded(own);
    let groups = own.split(|byte| *byte == b'-').map(<[u8]>::len);
    let is_mailgun = length == 50
        && groups.eq([32, 8, 8])
        && own
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    (is_azure || is_relic || is_mailgun || is_said(own)).then_some(run..cursor.at)
}

/// Returns whether a run is the key of an issuer that says what it is: `x_live_…`.
fn is_said(run: &[u8]) -> bool {
    const KEY_BYTES_MIN: usize = 20;
    // The key comes after the word, so there is little to search.
    let before = &run[..run.len().saturating_sub(KEY_BYTES_MIN)];
    [&b"_live_"[..], b"_secret_", b"_sk_"].iter().any(|word| {
        let place = before
            .windows(word.len())
            .position(|window| window == *word);
        place.is_some_and(|place| has_random_part(&run[place + word.len()..]))
    })
}

fn dotted(text: &[u8], run: usize) -> Option<Range<usize>> {
    let before = text[..run].strip_suffix(b".")?;
    DOTTED.iter().find_map(|(word, shortest)| {
        let start = before.strip_suffix(*word)?.len();
        let is_of_web_token = matches!(*word, b"sk" | b"p");
        if preceded_by(text, start, |byte| is_run(byte) || byte == b'.')
            || (is_of_web_token && !text[run..].starts_with(b"eyJ"))
        {
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
            let in_url = text[..start].ends_with(b"/bot");
            (numbered && (in_url || !preceded_by(text, start, is_word))).then_some(start..cursor.at)
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
