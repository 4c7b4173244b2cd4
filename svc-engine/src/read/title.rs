//! The title of a Session, from the first call that may be shown.

use std::collections::BTreeMap;

use svc_engine_derive::title;
use svc_engine_store::Snapshot;
use svc_model::id::SessionId;

use super::content::MessageContent;
use crate::error::Error;

/// Input messages of the first call that are looked at.
const MESSAGES_MAX: usize = 32;
/// Messages that are read at once. Often the first or the second gives the title.
const MESSAGES_AT_ONCE: usize = 4;
/// Canonical bytes of a message that is looked at.
const MESSAGE_BYTES_MAX: u64 = 1_048_576;

/// Returns the title of a Session, if its first visible call has a text that its user wrote.
pub(super) fn session_title(
    snapshot: &mut Snapshot<'_>,
    session_id: &SessionId,
) -> Result<Option<String>, Error> {
    snapshot.check_deadline()?;
    let Some(input) = snapshot.first_input(session_id)? else {
        return Ok(None);
    };
    let ids: Vec<i64> = input.iter().take(MESSAGES_MAX).collect();
    for some in ids.chunks(MESSAGES_AT_ONCE) {
        let mut titles = BTreeMap::new();
        snapshot.small_content(some, MESSAGE_BYTES_MAX, |id, bytes| {
            let title = title::of_message(&MessageContent::decode(bytes)?.message);
            titles.extend(title.map(|title| (id, title)));
            Ok(())
        })?;
        if let Some(title) = some.iter().find_map(|id| titles.remove(id)) {
            return Ok(Some(title));
        }
    }
    Ok(None)
}
