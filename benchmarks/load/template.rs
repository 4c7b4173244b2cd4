//! Request bytes that are built once and made distinct by patching them in place.
//!
//! Building a realistic body costs far more than sending it, and the generator shares its
//! processors with the server that it measures. So every body is built before the clock starts,
//! with *markers* where something must differ from one request to the next: an id, an instant, or a
//! word in the middle of a message. A marker is as wide as what replaces it, so patching never
//! moves a byte and never changes a content length.
//!
//! A marker is `~`, a letter for its shape, five digits of salt, and more `~` up to its width. JSON
//! never escapes the tilde, however deeply the text is nested, and no other text of this program
//! contains one. An upper-case letter takes its value from the session's number, and a lower-case
//! one from the call's.

/// What a marker becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerShape {
    /// A word of 13 letters and digits, different for every number.
    Word,
    /// A UUID in its hyphenated form.
    Uuid,
    /// Forty hexadecimal digits, as a commit has.
    Commit,
    /// An integer of five digits after two blanks.
    Integer,
    /// An RFC 3339 instant, which is a millisecond later with every call.
    Instant,
    /// The same instant in seconds of Unix time. The salt is a number of milliseconds to add.
    Epoch,
    /// The same instant in nanoseconds of Unix time. The salt is a number of microseconds to add.
    Nanoseconds,
}

impl MarkerShape {
    const ALL: [Self; 7] = [
        Self::Word,
        Self::Uuid,
        Self::Commit,
        Self::Integer,
        Self::Instant,
        Self::Epoch,
        Self::Nanoseconds,
    ];

    const fn letter(self) -> u8 {
        match self {
            Self::Word => b'w',
            Self::Uuid => b'u',
            Self::Commit => b'c',
            Self::Integer => b'n',
            Self::Instant => b'i',
            Self::Epoch => b'e',
            Self::Nanoseconds => b's',
        }
    }

    /// Returns the bytes that the shape takes up, both as a marker and as a value.
    const fn width(self) -> usize {
        match self {
            Self::Word => 13,
            Self::Uuid => 36,
            Self::Commit => 40,
            Self::Integer => MARKER_MINIMUM,
            Self::Instant => 27,
            Self::Epoch => 17,
            Self::Nanoseconds => 19,
        }
    }
}

/// `~`, the letter and five digits.
const MARKER_MINIMUM: usize = 7;

/// Midnight of the day on which every planted call happened: 2026-11-20.
const DAY_SECONDS: u64 = 1_795_132_800;

/// Where a value's number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One number for all calls of a session.
    Session,
    /// One number for each call.
    Call,
}

/// Returns the marker to put into a text.
pub(crate) fn marker(source: Source, shape: MarkerShape, salt: u32) -> String {
    let letter = match source {
        Source::Session => shape.letter().to_ascii_uppercase(),
        Source::Call => shape.letter(),
    };
    let mut text = format!("~{}{salt:05}", char::from(letter));
    while text.len() < shape.width() {
        text.push('~');
    }
    text
}

#[derive(Clone, Copy, Debug)]
struct MarkerSlot {
    offset: usize,
    shape: MarkerShape,
    salt: u32,
}

/// Bytes with slots.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    session_slots: Vec<MarkerSlot>,
    call_slots: Vec<MarkerSlot>,
}

impl Template {
    /// Finds the markers of a text.
    pub(crate) fn new(text: String) -> Self {
        let bytes = text.into_bytes();
        let (mut session_slots, mut call_slots) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(distance) = bytes[at..].iter().position(|&byte| byte == b'~') {
            let offset = at + distance;
            let letter = bytes[offset + 1];
            let shape = MarkerShape::ALL
                .into_iter()
                .find(|shape| shape.letter() == letter.to_ascii_lowercase())
                .expect("a tilde begins a marker");
            let salt = bytes[offset + 2..offset + MARKER_MINIMUM]
                .iter()
                .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
            let slot = MarkerSlot {
                offset,
                shape,
                salt,
            };
            if letter.is_ascii_uppercase() {
                session_slots.push(slot);
            } else {
                call_slots.push(slot);
            }
            at = offset + shape.width();
        }
        Self {
            bytes,
            session_slots,
            call_slots,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how many places make the text of one session differ from another's.
    #[cfg(test)]
    pub(crate) fn session_slot_count(&self) -> usize {
        self.session_slots.len()
    }

    /// Sets the values of a session's slots.
    pub(crate) fn patch_session(&mut self, number: u64) {
        for slot in &self.session_slots {
            fill(&mut self.bytes, *slot, number);
        }
    }

    /// Sets the values of a call's slots.
    pub(crate) fn patch_call(&mut self, number: u64) {
        for slot in &self.call_slots {
            fill(&mut self.bytes, *slot, number);
        }
    }
}

/// Returns the UUID that a slot with this salt gets, for what a server must know in advance, such
/// as a granted session.
pub(crate) fn uuid(number: u64, salt: u32) -> String {
    let mut bytes = vec![0; MarkerShape::Uuid.width()];
    fill(
        &mut bytes,
        MarkerSlot {
            offset: 0,
            shape: MarkerShape::Uuid,
            salt,
        },
        number,
    );
    String::from_utf8(bytes).expect("a UUID is ASCII")
}

/// Returns a bijection of 64 bits that leaves no similarity between neighbours.
pub(crate) fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn fill(bytes: &mut [u8], slot: MarkerSlot, number: u64) {
    let bits = mix(number ^ (u64::from(slot.salt) << 40));
    let target = &mut bytes[slot.offset..slot.offset + slot.shape.width()];
    match slot.shape {
        MarkerShape::Word => digits(target, bits, 5, b"abcdefghijkmnpqrstuvwxyz23456789"),
        MarkerShape::Commit => {
            let (first, rest) = target.split_at_mut(16);
            let (second, third) = rest.split_at_mut(16);
            hexadecimal(first, bits);
            hexadecimal(second, mix(bits));
            hexadecimal(third, mix(!bits));
        }
        MarkerShape::Uuid => {
            let low = mix(bits);
            hexadecimal(&mut target[0..8], bits);
            hexadecimal(&mut target[9..13], bits >> 32);
            hexadecimal(&mut target[14..18], bits >> 48);
            hexadecimal(&mut target[19..23], low);
            hexadecimal(&mut target[24..36], low >> 16);
            for hyphen in [8, 13, 18, 23] {
                target[hyphen] = b'-';
            }
            target[14] = b'4';
            target[19] = b'a';
        }
        MarkerShape::Integer => {
            // Blanks before a number are legal, but a zero is not.
            target[..2].fill(b' ');
            decimal(&mut target[2..], 10_000 + bits % 90_000);
        }
        MarkerShape::Instant => {
            let milliseconds = number % 86_400_000;
            target.copy_from_slice(b"2026-11-20T00:00:00.000000Z");
            decimal(&mut target[11..13], milliseconds / 3_600_000);
            decimal(&mut target[14..16], milliseconds / 60_000 % 60);
            decimal(&mut target[17..19], milliseconds / 1_000 % 60);
            decimal(&mut target[20..23], milliseconds % 1_000);
            decimal(&mut target[23..26], 1 + bits % 999);
        }
        MarkerShape::Epoch => {
            let milliseconds = number % 86_400_000 + u64::from(slot.salt);
            decimal(&mut target[0..10], DAY_SECONDS + milliseconds / 1_000);
            target[10] = b'.';
            decimal(&mut target[11..14], milliseconds % 1_000);
            decimal(&mut target[14..17], 1 + bits % 999);
        }
        MarkerShape::Nanoseconds => {
            let microseconds = number % 86_400_000 * 1_000 + u64::from(slot.salt);
            let nanoseconds = DAY_SECONDS * 1_000_000_000 + microseconds * 1_000;
            decimal(target, nanoseconds);
        }
    }
}

/// Writes a number from its lowest bits up, with `width` bits per character.
fn digits(target: &mut [u8], mut bits: u64, width: u32, alphabet: &[u8]) {
    let mask = (1 << width) - 1;
    for byte in target {
        *byte = alphabet[(bits & mask) as usize];
        bits >>= width;
    }
}

fn hexadecimal(target: &mut [u8], bits: u64) {
    digits(target, bits, 4, b"0123456789abcdef");
}

fn decimal(target: &mut [u8], mut number: u64) {
    for byte in target.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_shape_keeps_its_width_and_loses_its_marker() {
        for source in [Source::Session, Source::Call] {
            for shape in MarkerShape::ALL {
                let text = format!("[{}]", marker(source, shape, 120));
                let length = text.len();
                let mut template = Template::new(text);
                template.patch_session(7);
                template.patch_call(7);
                assert_eq!(template.len(), length);
                assert!(!template.bytes().contains(&b'~'), "{shape:?} {source:?}");
            }
        }
    }

    #[test]
    fn words_of_distinct_numbers_are_distinct() {
        let mut template = Template::new(marker(Source::Session, MarkerShape::Word, 3));
        let mut seen = HashSet::new();
        for number in 0..100_000 {
            template.patch_session(number);
            assert!(seen.insert(template.bytes().to_vec()));
        }
    }

    #[test]
    fn instants_and_epochs_agree() {
        let mut template = Template::new(format!(
            "{} {}",
            marker(Source::Call, MarkerShape::Instant, 0),
            marker(Source::Call, MarkerShape::Epoch, 0)
        ));
        template.patch_call(3_723_004);
        let text = String::from_utf8_lossy(template.bytes());
        assert!(text.starts_with("2026-11-20T01:02:03.004"), "{text}");
        assert!(text.contains(" 1795136523.004"), "{text}");
        let mut template = Template::new(marker(Source::Call, MarkerShape::Nanoseconds, 7));
        template.patch_call(3_723_004);
        assert_eq!(template.bytes(), b"1795136523004007000");
    }
}
