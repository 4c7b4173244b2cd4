//! Whether two diffs say the same.

/// Returns whether two diffs, as git writes them, change the same files in the same way. The places
/// in the files do not count, nor does what is elsewhere in them.
pub fn are_same(one: &[u8], other: &[u8]) -> bool {
    changes(one) == changes(other)
}

/// Returns the lines of a diff without those that say where it applies.
fn changes(diff: &[u8]) -> Vec<&[u8]> {
    let mut changes = Vec::new();
    let mut ids = None;
    let mut is_heading = false;
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            is_heading = true;
            ids = None;
        } else if line.starts_with(b"@@ ") {
            is_heading = false;
            changes.push(&line[..2]);
            continue;
        } else if is_heading && line.starts_with(b"index ") {
            ids = Some(line);
            continue;
        } else if is_heading && line.starts_with(b"Binary files ") {
            // Nothing but the ids tells what changed.
            changes.extend(ids);
        }
        changes.push(line);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_count_and_content_does() {
        let diff = |ids: &str, place: &str, line: &str| {
            format!("diff --git a/f b/f\nindex {ids}\n--- a/f\n+++ b/f\n{place}\n a\n+{line}\n")
        };
        let one = diff("1..2 100644", "@@ -1 +1,2 @@", "index 7");
        let moved = diff("3..4 100644", "@@ -9 +9,2 @@ fn a", "index 7");
        let other = diff("1..2 100644", "@@ -1 +1,2 @@", "index 8");
        assert!(are_same(one.as_bytes(), moved.as_bytes()));
        assert!(!are_same(one.as_bytes(), other.as_bytes()));
        let binary = |ids: &str| {
            format!("diff --git a/f b/f\nindex {ids}\nBinary files a/f and b/f differ\n")
        };
        assert!(are_same(
            binary("1..2").as_bytes(),
            binary("1..2").as_bytes()
        ));
        assert!(!are_same(
            binary("1..2").as_bytes(),
            binary("1..3").as_bytes()
        ));
        assert!(are_same(b"", b""));
    }
}
