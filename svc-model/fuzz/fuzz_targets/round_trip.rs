//! Checks what holds for any bytes. The unit tests of the module check the same on the corpus.

use super::Json;

pub(super) fn check(bytes: &[u8]) {
    let Ok(value) = Json::parse(bytes) else {
        return;
    };
    let canonical = value.to_canonical();
    assert!(canonical.iter().all(|byte| (b' '..=b'~').contains(byte)));
    assert_eq!(canonical.len(), value.canonical_len());
    let reread = Json::parse(&canonical).expect("canonical text is JSON");
    assert_eq!(reread, value);
    assert_eq!(reread.to_canonical(), canonical);
}
