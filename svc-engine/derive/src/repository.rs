//! Which repository a fact belongs to.
//!
//! A repository with an identity is identified by it: a name that is given up and taken again is
//! another repository. Facts without an identity are known by their name alone, as long as no
//! repository with an identity has that name; once one has, it is unknown which repository they
//! mean.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::{Lifetime, RepositoryClaim};
use svc_model::limit::REPOSITORY_CLAIMS_MAX;
use svc_model::problem::Decline;
use svc_model::repository::{RepositoryDecline, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// What a fact says about its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mention<'f> {
    /// The name in the fact; may be empty.
    pub name: &'f str,
    /// The identity in the fact.
    pub identity: Option<&'f RepositoryIdentity>,
}

/// The names of one repository. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    all: BTreeSet<RepositoryName>,
    /// The name in the latest received fact, and when that fact was received.
    latest: (Option<Instant>, RepositoryName),
}

impl Names {
    fn one(name: RepositoryName, borne_at: Option<Instant>) -> Self {
        Self {
            all: BTreeSet::from([name.clone()]),
            latest: (borne_at, name),
        }
    }

    fn add(&mut self, name: RepositoryName, borne_at: Option<Instant>) {
        // For names received at the same time, the alphabetically later one wins, in any order of
        // claims.
        if (borne_at, &name) > (self.latest.0, &self.latest.1) {
            self.latest = (borne_at, name.clone());
        }
        self.all.insert(name);
    }

    /// Returns every name, sorted.
    pub const fn all(&self) -> &BTreeSet<RepositoryName> {
        &self.all
    }

    /// Returns the name that represents the repository in answers: the alphabetically first,
    /// because it changes least often.
    pub fn display(&self) -> &RepositoryName {
        self.all.first().unwrap_or(&self.latest.1)
    }

    /// Returns the name in the latest received fact.
    pub const fn current(&self) -> &RepositoryName {
        &self.latest.1
    }
}

/// The repositories that a query selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// By a name.
    pub name: Option<RepositoryName>,
    /// By an identity.
    pub identity: Option<RepositoryIdentity>,
}

/// What a selector selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every repository: nothing was selected.
    All,
    /// One repository.
    One(Lifetime),
    /// None: no fact gives the identity a name.
    None,
}

/// Why a selector cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Several repositories have the name.
    #[error("several repositories have the name")]
    Ambiguous,
    /// The repository with the identity never had the name.
    #[error("the repository never had the name")]
    Conflict,
}

/// The names that facts prove for the names and identities that a query touches.
///
/// The claims of every name and identity that is asked about must have been read: one that was not
/// read looks like one that no repository has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repositories {
    names: BTreeMap<RepositoryIdentity, Names>,
    bearers: BTreeMap<RepositoryName, BTreeSet<RepositoryIdentity>>,
}

impl Repositories {
    /// Collects claims.
    ///
    /// # Errors
    ///
    /// If there are more than [`REPOSITORY_CLAIMS_MAX`].
    pub fn new(claims: Vec<RepositoryClaim>) -> Result<Self, Decline> {
        if claims.len() > REPOSITORY_CLAIMS_MAX {
            return Err(Decline::RepositoryEvidenceLimit);
        }
        let mut repositories = Self::default();
        for claim in claims {
            let RepositoryClaim {
                name,
                repository,
                borne_at,
            } = claim;
            repositories
                .bearers
                .entry(name.clone())
                .or_default()
                .insert(repository.clone());
            repositories
                .names
                .entry(repository)
                .and_modify(|names| names.add(name.clone(), borne_at))
                .or_insert_with(|| Names::one(name, borne_at));
        }
        Ok(repositories)
    }

    /// Returns the names of a repository; `None` if no fact names it.
    pub fn names(&self, repository: &Lifetime) -> Option<Names> {
        match repository {
            Lifetime::Identified(identity) => self.names.get(identity).cloned(),
            Lifetime::Named(name) => Some(Names::one(name.clone(), None)),
        }
    }

    /// Returns what a selector selects.
    ///
    /// # Errors
    ///
    /// See [`SelectorError`].
    pub fn select(&self, selector: &Selector) -> Result<Selection, SelectorError> {
        match selector {
            Selector {
                name: None,
                identity: None,
            } => Ok(Selection::All),
            Selector {
                name,
                identity: Some(identity),
            } => {
                let Some(names) = self.names.get(identity) else {
                    return Ok(Selection::None);
                };
                match name {
                    Some(name) if !names.all.contains(name) => Err(SelectorError::Conflict),
                    _ => Ok(Selection::One(Lifetime::Identified(identity.clone()))),
                }
            }
            Selector {
                name: Some(name),
                identity: None,
            } => {
                let mut bearers = self.bearers(name);
                match (bearers.next(), bearers.next()) {
                    (None, _) => Ok(Selection::One(Lifetime::Named(name.clone()))),
                    (Some(one), None) => Ok(Selection::One(Lifetime::Identified(one.clone()))),
                    (Some(_), Some(_)) => Err(SelectorError::Ambiguous),
                }
            }
        }
    }

    /// Returns the repository of a fact.
    ///
    /// # Errors
    ///
    /// If it cannot be determined, for the reason in [`RepositoryDecline`].
    pub fn of(&self, fact: Mention<'_>) -> Result<Lifetime, RepositoryDecline> {
        let name = RepositoryName::new(fact.name).ok_or(RepositoryDecline::IdentityAbsent)?;
        match fact.identity {
            Some(identity) => Ok(Lifetime::Identified(identity.clone())),
            None if self.bearers(&name).next().is_some() => {
                Err(RepositoryDecline::IdentityUnresolved)
            }
            None => Ok(Lifetime::Named(name)),
        }
    }

    /// Returns whether a fact belongs to the given repository. An identity is enough, even without
    /// a name.
    pub fn holds(&self, repository: &Lifetime, fact: Mention<'_>) -> bool {
        match repository {
            Lifetime::Identified(identity) => fact.identity == Some(identity),
            Lifetime::Named(_) => self.of(fact).as_ref() == Ok(repository),
        }
    }

    /// Returns the repository of a link between a Session and a commit, given the push that led to
    /// the link. The push must be visible and received by the boundary.
    ///
    /// # Errors
    ///
    /// If it cannot be determined, for the reason in [`RepositoryDecline`].
    pub fn of_observation(
        &self,
        observation: Mention<'_>,
        push: Option<Mention<'_>>,
    ) -> Result<Lifetime, RepositoryDecline> {
        let identity = match (observation.identity, push) {
            (Some(_), None) => return Err(RepositoryDecline::SourceAbsent),
            (None, None) => None,
            (Some(own), Some(push)) => match push.identity {
                None => return Err(RepositoryDecline::IdentityUnresolved),
                Some(identity) if identity != own => {
                    return Err(RepositoryDecline::IdentityConflict);
                }
                Some(identity) => Some(identity),
            },
            (None, Some(push)) => {
                if push.identity.is_none() && push.name != observation.name {
                    return Err(RepositoryDecline::IdentityConflict);
                }
                push.identity
            }
        };
        self.of(Mention {
            name: observation.name,
            identity,
        })
    }

    /// Returns the repository whose mirror a push may be fetched into. Unlike an answer, a fetch
    /// follows the name, so the name must lead to this repository and to no other.
    ///
    /// # Errors
    ///
    /// If it does not, or if the push is not visible.
    pub fn mirror(&self, push: Option<Mention<'_>>) -> Result<Lifetime, RepositoryDecline> {
        let push = push.ok_or(RepositoryDecline::SourceAbsent)?;
        let repository = self.of(push)?;
        if let (Lifetime::Identified(identity), Some(name)) =
            (&repository, RepositoryName::new(push.name))
            && !self.bearers(&name).eq([identity])
        {
            return Err(RepositoryDecline::MirrorIdentityUnresolved);
        }
        Ok(repository)
    }

    fn bearers(&self, name: &RepositoryName) -> impl Iterator<Item = &RepositoryIdentity> {
        self.bearers.get(name).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{at, name, repository};

    use super::*;

    fn claim(text: &str, number: u32, seconds: impl Into<Option<i64>>) -> RepositoryClaim {
        RepositoryClaim {
            name: name(text),
            repository: repository(number),
            borne_at: seconds.into().map(at),
        }
    }

    fn repositories(claims: Vec<RepositoryClaim>) -> Repositories {
        Repositories::new(claims).unwrap()
    }

    fn identified(number: u32) -> Lifetime {
        Lifetime::Identified(repository(number))
    }

    fn named(text: &str) -> Lifetime {
        Lifetime::Named(name(text))
    }

    /// Lifetime 1 was renamed from `own/old` to `own/app`; 2 and 3 both had the name `own/taken`,
    /// and 3 is now `own/lib`.
    fn example() -> Repositories {
        repositories(vec![
            claim("own/app", 1, 5),
            claim("own/lib", 3, 9),
            claim("own/old", 1, None),
            claim("own/taken", 2, 7),
            claim("own/taken", 3, 8),
        ])
    }

    fn by_name(text: &str) -> Selector {
        Selector {
            name: Some(name(text)),
            identity: None,
        }
    }

    fn by_identity(number: u32, text: Option<&str>) -> Selector {
        Selector {
            name: text.map(name),
            identity: Some(repository(number)),
        }
    }

    #[test]
    fn a_name_selects_the_only_repository_that_has_it() {
        let example = example();
        for (text, expected) in [
            ("own/app", Ok(Selection::One(identified(1)))),
            ("own/old", Ok(Selection::One(identified(1)))),
            ("own/lib", Ok(Selection::One(identified(3)))),
            ("own/taken", Err(SelectorError::Ambiguous)),
            ("own/unknown", Ok(Selection::One(named("own/unknown")))),
        ] {
            assert_eq!(example.select(&by_name(text)), expected, "{text}");
        }
        assert_eq!(example.select(&Selector::default()), Ok(Selection::All));
    }

    #[test]
    fn an_identity_selects_its_repository_and_a_given_name_must_be_one_of_its_names() {
        let example = example();
        for (number, text, expected) in [
            (1, None, Ok(Selection::One(identified(1)))),
            (1, Some("own/old"), Ok(Selection::One(identified(1)))),
            (2, Some("own/taken"), Ok(Selection::One(identified(2)))),
            (1, Some("own/lib"), Err(SelectorError::Conflict)),
            (1, Some("own/unknown"), Err(SelectorError::Conflict)),
            (4, None, Ok(Selection::None)),
            (4, Some("own/app"), Ok(Selection::None)),
        ] {
            let selected = example.select(&by_identity(number, text));
            assert_eq!(selected, expected, "{number} {text:?}");
        }
    }

    #[test]
    fn a_repository_is_displayed_under_its_first_name_and_knows_its_current_one() {
        let names = example().names(&identified(1)).unwrap();
        assert_eq!(names.display(), &name("own/app"));
        assert_eq!(names.current(), &name("own/app"));
        assert_eq!(names.all().len(), 2);
        let names = example().names(&identified(3)).unwrap();
        assert_eq!(names.current(), &name("own/lib"));
        let back = repositories(vec![
            claim("own/a", 1, 3),
            claim("own/b", 1, 9),
            claim("own/c", 1, None),
        ]);
        let names = back.names(&identified(1)).unwrap();
        assert_eq!(
            (names.display(), names.current()),
            (&name("own/a"), &name("own/b"))
        );
        assert_eq!(back.names(&identified(2)), None);
        let names = back.names(&named("own/legacy")).unwrap();
        assert_eq!(names.display(), names.current());
    }

    #[test]
    fn repositories_sort_as_text_with_identified_ones_first() {
        let mut all = vec![
            named("b/b"),
            named("a/a"),
            identified(96_947_219),
            identified(1_096_947_210),
        ];
        all.sort();
        assert_eq!(
            all,
            [
                identified(1_096_947_210),
                identified(96_947_219),
                named("a/a"),
                named("b/b")
            ]
        );
    }

    fn mention<'f>(name: &'f str, identity: Option<&'f RepositoryIdentity>) -> Mention<'f> {
        Mention { name, identity }
    }

    #[test]
    fn a_fact_without_an_identity_is_never_assigned_to_an_identified_repository() {
        let example = example();
        let one = repository(1);
        for (fact, expected) in [
            (mention("own/app", Some(&one)), Ok(identified(1))),
            (mention("own/else", Some(&one)), Ok(identified(1))),
            (mention("own/legacy", None), Ok(named("own/legacy"))),
            (
                mention("own/old", None),
                Err(RepositoryDecline::IdentityUnresolved),
            ),
            (
                mention("own/taken", None),
                Err(RepositoryDecline::IdentityUnresolved),
            ),
            (
                mention("", Some(&one)),
                Err(RepositoryDecline::IdentityAbsent),
            ),
            (mention("", None), Err(RepositoryDecline::IdentityAbsent)),
        ] {
            assert_eq!(example.of(fact), expected, "{fact:?}");
        }
    }

    #[test]
    fn facts_with_an_identity_belong_to_its_repository_with_or_without_a_name() {
        let example = example();
        let one = repository(1);
        for (repository, fact, expected) in [
            (identified(1), mention("own/app", Some(&one)), true),
            (identified(1), mention("", Some(&one)), true),
            (identified(2), mention("", Some(&one)), false),
            (identified(1), mention("own/app", None), false),
            (named("own/legacy"), mention("own/legacy", None), true),
            (
                named("own/legacy"),
                mention("own/legacy", Some(&one)),
                false,
            ),
            (named("own/legacy"), mention("", None), false),
            (named("own/app"), mention("own/app", None), false),
        ] {
            assert_eq!(
                example.holds(&repository, fact),
                expected,
                "{repository} {fact:?}"
            );
        }
    }

    #[test]
    fn an_observation_belongs_to_the_repository_of_its_push() {
        let example = example();
        let (one, two) = (repository(1), repository(2));
        let with = mention("own/app", Some(&one));
        let without = mention("own/app", None);
        let legacy = mention("own/legacy", None);
        for (observation, push, expected) in [
            (with, Some(with), Ok(identified(1))),
            (without, Some(with), Ok(identified(1))),
            (legacy, Some(with), Ok(identified(1))),
            (legacy, Some(legacy), Ok(named("own/legacy"))),
            (legacy, None, Ok(named("own/legacy"))),
            (with, None, Err(RepositoryDecline::SourceAbsent)),
            (
                with,
                Some(mention("own/app", Some(&two))),
                Err(RepositoryDecline::IdentityConflict),
            ),
            (
                with,
                Some(without),
                Err(RepositoryDecline::IdentityUnresolved),
            ),
            (
                without,
                Some(legacy),
                Err(RepositoryDecline::IdentityConflict),
            ),
            (
                without,
                Some(without),
                Err(RepositoryDecline::IdentityUnresolved),
            ),
            (without, None, Err(RepositoryDecline::IdentityUnresolved)),
        ] {
            let resolved = example.of_observation(observation, push);
            assert_eq!(resolved, expected, "{observation:?} {push:?}");
        }
    }

    #[test]
    fn a_push_is_fetched_only_while_its_name_selects_only_its_repository() {
        let example = example();
        let (one, two, three) = (repository(1), repository(2), repository(3));
        for (push, expected) in [
            (None, Err(RepositoryDecline::SourceAbsent)),
            (Some(mention("own/app", Some(&one))), Ok(identified(1))),
            (Some(mention("own/old", Some(&one))), Ok(identified(1))),
            (Some(mention("own/lib", Some(&three))), Ok(identified(3))),
            (
                Some(mention("own/taken", Some(&two))),
                Err(RepositoryDecline::MirrorIdentityUnresolved),
            ),
            (
                Some(mention("own/taken", Some(&three))),
                Err(RepositoryDecline::MirrorIdentityUnresolved),
            ),
            (
                Some(mention("own/never", Some(&one))),
                Err(RepositoryDecline::MirrorIdentityUnresolved),
            ),
            (Some(mention("own/legacy", None)), Ok(named("own/legacy"))),
            (
                Some(mention("own/app", None)),
                Err(RepositoryDecline::IdentityUnresolved),
            ),
            (
                Some(mention("", Some(&one))),
                Err(RepositoryDecline::IdentityAbsent),
            ),
        ] {
            assert_eq!(example.mirror(push), expected, "{push:?}");
        }
    }

    #[test]
    fn more_repository_claims_than_the_limit_are_declined() {
        let claims = |count: usize| -> Vec<RepositoryClaim> {
            let one = claim("own/name", 1, 1);
            std::iter::repeat_n(one, count).collect()
        };
        assert!(Repositories::new(claims(REPOSITORY_CLAIMS_MAX)).is_ok());
        assert_eq!(
            Repositories::new(claims(REPOSITORY_CLAIMS_MAX + 1)),
            Err(Decline::RepositoryEvidenceLimit)
        );
    }
}
