use super::ReadDecline;
use crate::object_id::ObjectId;

/// The average bytes of a folder's entry. A folder with larger entries is too large.
const ENTRY_BYTES_MAX: u64 = 320;

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A file, executable or not.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A commit of another repository.
    Repository,
}

/// Returns how many bytes a folder with this many entries may have.
pub(super) fn bytes_max(entries_max: usize) -> u64 {
    (entries_max as u64).saturating_mul(ENTRY_BYTES_MAX)
}

/// Parses the object of a folder, whose ids are as long as `like`, and passes on the entries. Each
/// entry is `MODE NAME`, NUL, and the bytes of the id.
pub(super) fn each(
    mut tree: &[u8],
    like: ObjectId,
    entries_max: usize,
    mut each: impl FnMut(EntryKind, &[u8], ObjectId),
) -> Result<(), ReadDecline> {
    let id_bytes = like.bytes().len();
    let mut count = 0;
    while !tree.is_empty() {
        if count == entries_max {
            return Err(ReadDecline::TooManyEntries);
        }
        count += 1;
        let ((kind, name, id), rest) = parse_entry(tree, id_bytes).ok_or(ReadDecline::Malformed)?;
        each(kind, name, id);
        tree = rest;
    }
    Ok(())
}

type TreeEntry<'t> = (EntryKind, &'t [u8], ObjectId);

fn parse_entry(tree: &[u8], id_bytes: usize) -> Option<(TreeEntry<'_>, &[u8])> {
    let end = tree.iter().position(|byte| *byte == 0)?;
    let (head, rest) = (&tree[..end], &tree[end + 1..]);
    let space = head.iter().position(|byte| *byte == b' ')?;
    // Old programs wrote modes with other permissions and with leading zeros.
    let mode = u32::from_str_radix(str::from_utf8(&head[..space]).ok()?, 8).ok()?;
    let kind = match mode >> 12 {
        0o10 => EntryKind::File,
        0o12 => EntryKind::Link,
        0o4 => EntryKind::Folder,
        0o16 => EntryKind::Repository,
        _ => return None,
    };
    let (id, rest) = rest.split_at_checked(id_bytes)?;
    Some(((kind, &head[space + 1..], ObjectId::of_bytes(id)?), rest))
}
