//! What an overview is narrowed to, and links to the same page narrowed otherwise.

use maud::{Markup, html};
use svc_model::overview::{OverviewDays, OverviewOutcome};
use svc_model::query::LifetimeIdentity;
use svc_model::time::Instant;

use crate::console::layout::{Field, InputKind, narrowing};
use crate::console::link::Link;
use crate::console::pages::repository;
use crate::console::text::{inert, words};
use crate::console::visit::Visit;

const PATH: &str = "/console";
/// The place of the list on the page.
pub(super) const LIST: &str = "sessions";
const DAYS: &str = "days";
const AS_OF: &str = "as_of";
const MODEL: &str = "model";
const OUTCOME: &str = "outcome";
/// The parameters that select a repository.
const REPOSITORY: [&str; 4] = [
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
];
/// The parameters that narrow the figures, besides the days.
const NARROWING: [&str; 6] = [
    REPOSITORY[0],
    REPOSITORY[1],
    REPOSITORY[2],
    REPOSITORY[3],
    MODEL,
    "user_id",
];
const TIME: [&str; 2] = [DAYS, AS_OF];

/// Returns the address of the list of the Sessions behind a figure, on a page without a list.
pub(super) fn behind(page: Link, outcome: OverviewOutcome) -> Link {
    page.with(OUTCOME, outcome.as_str()).at(LIST)
}

/// The filters of a visit.
pub(super) struct Filters<'v>(&'v Visit);

impl<'v> Filters<'v> {
    pub(super) const fn new(visit: &'v Visit) -> Self {
        Self(visit)
    }

    /// Returns whether the figures are of all calls up to now.
    pub(super) fn is_now(&self) -> bool {
        !self.is_narrowed() && self.0.given(AS_OF).is_none()
    }

    /// Returns whether the figures are of some calls only.
    fn is_narrowed(&self) -> bool {
        let mut names = NARROWING.into_iter();
        names.any(|name| self.0.given(name).is_some())
    }

    /// Returns the figure whose Sessions are listed.
    pub(super) fn outcome(&self) -> Option<OverviewOutcome> {
        self.0.given(OUTCOME).and_then(OverviewOutcome::from_wire)
    }

    /// Returns the address of the page of what the calls cost, unless its sum is of other calls than
    /// the figures: it ends now, and is of all calls.
    pub(super) fn spend(&self) -> Option<Link> {
        let days = self.0.given(DAYS).unwrap_or(OverviewDays::Seven.as_str());
        self.is_now()
            .then(|| Link::to("/console/spend").with(DAYS, days))
    }

    /// Returns the address of this page without some of its filters, and without its list.
    fn without(&self, dropped: &[&str]) -> Link {
        let names = TIME.into_iter().chain(NARROWING);
        let kept = names.filter(|name| !dropped.contains(name));
        kept.fold(Link::to(PATH), |link, name| {
            link.with_any(name, self.0.given(name))
        })
    }

    /// Returns the moment that the words are of: a window that ends at a given moment is not the
    /// last one.
    pub(super) fn now(&self, now: Instant) -> Instant {
        self.0.given(AS_OF).map_or(now, |_| Instant::MAX)
    }

    /// Returns the address of this page for all calls up to now.
    pub(super) fn wide(&self) -> Link {
        let days = self.0.given(DAYS);
        Link::to(PATH).with_any(DAYS, days)
    }

    /// Returns the address of the list of the Sessions behind a figure.
    pub(super) fn list(&self, outcome: Option<OverviewOutcome>) -> Link {
        let outcome = outcome.map(OverviewOutcome::as_str);
        self.without(&[]).with_any(OUTCOME, outcome).at(LIST)
    }

    /// Returns the address of the list with room for this many Sessions.
    pub(super) fn longer(&self, limit: u64) -> Link {
        let link = self.without(&[]).with_any(OUTCOME, self.0.given(OUTCOME));
        link.with("limit", &limit.to_string()).at(LIST)
    }

    pub(super) fn repository(&self, name: &str, identity: Option<&LifetimeIdentity>) -> Link {
        repository::selecting(self.without(&REPOSITORY), name, identity)
    }

    pub(super) fn model(&self, model: &str) -> Link {
        self.without(&[MODEL]).with(MODEL, model)
    }

    /// Links to the same page for other numbers of days.
    pub(super) fn days(&self) -> Markup {
        let given = self.0.given(DAYS).unwrap_or(OverviewDays::Seven.as_str());
        html! {
            nav.pages aria-label="Days" {
                @for days in OverviewDays::ALL {
                    @let link = self.without(&[DAYS]).with(DAYS, days.as_str());
                    @let is_given = given == days.as_str();
                    a href=(link) aria-current=[is_given.then_some("true")] {
                        (days.as_str()) @if *days == OverviewDays::One { " day" } @else { " days" }
                    }
                }
            }
        }
    }

    /// Returns the form.
    pub(super) fn form(&self) -> Markup {
        let given = |name| self.0.given(name).unwrap_or_default();
        let days: Vec<(&str, &str)> = OverviewDays::ALL
            .iter()
            .map(|days| (days.as_str(), days.as_str()))
            .collect();
        let outcomes: Vec<(&str, String)> = OverviewOutcome::ALL
            .iter()
            .map(|outcome| (outcome.as_str(), words(outcome.as_str())))
            .collect();
        let outcomes = outcomes.iter().map(|(value, name)| (*value, name.as_str()));
        let outcomes: Vec<(&str, &str)> = std::iter::once(("", "all")).chain(outcomes).collect();
        let field = |label, name, kind| Field {
            label,
            name,
            value: given(name),
            kind,
        };
        let mut last = field("Days", DAYS, InputKind::One(&days));
        if last.value.is_empty() {
            last.value = OverviewDays::Seven.as_str();
        }
        let fields = [
            last,
            field("Repository", REPOSITORY[0], InputKind::Text),
            field("Model", MODEL, InputKind::Text),
            field("User", "user_id", InputKind::Text),
            field("List Sessions", OUTCOME, InputKind::One(&outcomes)),
        ];
        narrowing(PATH, "Filter the overview", &fields)
    }

    /// Says what the figures are narrowed to where the form does not show it.
    pub(super) fn selected(&self) -> Markup {
        let identity = REPOSITORY.iter().skip(1);
        let identity: Vec<&str> = identity.filter_map(|name| self.0.given(name)).collect();
        html! {
            @if !identity.is_empty() {
                p {
                    "Only the repository " (inert(&identity.join("/"))) ": "
                    a href=(self.without(&REPOSITORY)) { "all repositories" } "."
                }
            }
        }
    }
}
