//! Which facts belong to a Session, as conditions of statements.

use super::{calls, kind};

/// The condition that a call belongs to a Session. The organization and the Session are
/// expressions. Calls have no index that begins with the id of their Session, because each new
/// Session would touch another page of it.
macro_rules! calls_of_session {
    ($org_id:literal, $session_id:literal) => {
        concat!(
            "f.session_number = (SELECT n.session_number FROM sessions n WHERE n.session_id = ",
            $session_id,
            " AND n.org_id = ",
            $org_id,
            ")"
        )
    };
}
pub(crate) use calls_of_session;

/// Returns the condition that a fact of this table belongs to a Session. The organization and the
/// Session are expressions.
pub(crate) fn of_session(table: &str, org_id: &str, session_id: &str) -> String {
    if table == calls::TABLE.name {
        return format!(
            calls_of_session!("{org_id}", "{session_id}"),
            org_id = org_id,
            session_id = session_id
        );
    }
    format!("f.org_id = {org_id} AND f.session_id = {session_id}")
}

/// Returns the condition that some visible fact belongs to the Session of `row`.
pub(crate) fn exists(row: &str) -> String {
    let (org_id, session_id) = (format!("{row}.org_id"), format!("{row}.session_id"));
    let tables = kind::tables().filter(|table| table.is_of_session());
    let exist = tables.map(|table| {
        let condition = of_session(table.name, &org_id, &session_id);
        format!(
            "EXISTS (SELECT 1 FROM visible_{} f WHERE {condition})",
            table.name
        )
    });
    format!("({})", exist.collect::<Vec<_>>().join(" OR "))
}
