//! A string that stores short contents inline.

/// The length of the longest string that is stored without a heap allocation. With the length and
/// the tag, it fills the 24 bytes that a `String` would take, and it covers nearly all member names
/// and numbers.
pub(super) const INLINE_MAX: usize = 22;

/// An immutable string. Its representation depends only on its length, so equal strings have the
/// same representation and the derived comparisons are right.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Compact {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<str>),
}

impl Compact {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Inline { .. } => str::from_utf8(self.as_bytes())
                .expect("inline bytes were copied from a whole string"),
            Self::Heap(string) => string,
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(string) => string.as_bytes(),
        }
    }

    fn inline(string: &str) -> Option<Self> {
        let mut bytes = [0; INLINE_MAX];
        bytes
            .get_mut(..string.len())?
            .copy_from_slice(string.as_bytes());
        let len = u8::try_from(string.len()).ok()?;
        Some(Self::Inline { len, bytes })
    }
}

impl From<&str> for Compact {
    fn from(string: &str) -> Self {
        Self::inline(string).unwrap_or_else(|| Self::Heap(string.into()))
    }
}

impl From<String> for Compact {
    fn from(string: String) -> Self {
        Self::inline(&string).unwrap_or_else(|| Self::Heap(string.into()))
    }
}

impl From<Compact> for String {
    fn from(compact: Compact) -> Self {
        match compact {
            Compact::Inline { .. } => compact.as_str().to_owned(),
            Compact::Heap(string) => string.into(),
        }
    }
}
