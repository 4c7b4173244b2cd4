//! The groups of routes in the document.

/// A group of routes.
#[derive(Debug)]
pub(super) struct Area {
    /// The prefixes of the paths.
    prefixes: &'static [&'static str],
    /// The name.
    pub(super) name: &'static str,
    /// The purpose of the routes.
    pub(super) description: &'static str,
}

/// The groups, in the order of the document.
pub(super) const AREAS: &[Area] = &[
    Area {
        prefixes: &["/ingest/", "/v1/logs", "/v1/traces"],
        name: "ingest",
        description: "Sending evidence: model calls of a gateway, logs and traces of agents, results of CI runs and the \
                      events of a forge.",
    },
    Area {
        prefixes: &["/query/search"],
        name: "search",
        description: "Finding Sessions and parts by words, over everything that a token may read.",
    },
    Area {
        prefixes: &["/query/context"],
        name: "context",
        description: "Resuming earlier work: exact parts of the Sessions that are granted to a token.",
    },
    Area {
        prefixes: &["/query/evidence"],
        name: "evidence",
        description: "Exact parts of any Session, for the operator.",
    },
    Area {
        prefixes: &["/v1/prices"],
        name: "prices",
        description: "The price tables that costs are derived with. None comes with the service, and none is fetched.",
    },
    Area {
        prefixes: &["/v1/overview", "/v1/reports/"],
        name: "reports",
        description: "What became of the agents' work, computed from facts for each answer.",
    },
    Area {
        prefixes: &[
            "/query/ci/",
            "/v1/sessions",
            "/query/session/",
            "/query/commit/",
        ],
        name: "investigation",
        description: "From a failed run to its commit, and from a commit to the Sessions that made it; and the list of Sessions.",
    },
    Area {
        prefixes: &["/v1/capture"],
        name: "capture",
        description: "What arrives from each source, and why something was not stored.",
    },
    Area {
        prefixes: &["/v1/quarantine", "/v1/release"],
        name: "quarantine",
        description: "Hiding facts from every answer and showing them again, and the log of both.",
    },
    Area {
        prefixes: &["/v1/grants"],
        name: "grants",
        description: "What the named retrieval tokens may read, and the log of who changed it, when and why.",
    },
    Area {
        prefixes: &["/v1/facts"],
        name: "facts",
        description: "Counts of what is stored, and the metadata of a Session.",
    },
    Area {
        prefixes: &["/health", "/v1/me"],
        name: "identity",
        description: "The health of the service, and the authority of a token.",
    },
];

/// Returns the group of a path.
pub(super) fn area_of(path: &str) -> Option<&'static Area> {
    AREAS
        .iter()
        .find(|area| area.prefixes.iter().any(|prefix| path.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::endpoint;

    #[test]
    fn every_route_belongs_to_a_group_and_every_group_has_a_route() {
        let mut used = BTreeSet::new();
        for route in endpoint::all() {
            let area = area_of(route.path);
            assert!(area.is_some(), "{} belongs to no group", route.path);
            used.extend(area.map(|area| area.name));
        }
        assert_eq!(used.len(), AREAS.len());
    }
}
