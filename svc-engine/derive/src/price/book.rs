//! Finds the rates of a model of a provider.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use svc_model::spend::UnpricedReason;

use super::provider::family;
use super::rates::Rates;

/// What a model's name may end with that is no part of it: the length of the context that a client
/// asked for.
const LONG_CONTEXT: &str = "[1m]";

/// The price of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Price {
    /// Its rates.
    Rates(Rates),
    /// It has a price in a form that is not read.
    UnknownForm,
}

/// An entry of a table.
#[derive(Clone, Debug)]
struct Entry {
    /// The provider, if the entry names one.
    provider: Option<Box<str>>,
    price: Price,
}

/// An entry under the provider that its key names.
#[derive(Clone, Debug)]
struct Place {
    provider: Box<str>,
    entry: usize,
}

/// The rates of a price table's file.
#[derive(Clone, Debug, Default)]
pub struct PriceBook {
    entries: Vec<Entry>,
    /// The entries of models without a provider in the key, and with one.
    by_key: HashMap<Box<str>, usize, RandomState>,
    /// The entries whose key is a provider and a model, by model.
    by_model: HashMap<Box<str>, Vec<Place>, RandomState>,
    /// Whether each model is listed under a provider, so that a call that names none may mean any.
    is_by_provider: bool,
}

impl PriceBook {
    /// Returns an empty book of a file that lists models under their providers.
    pub(super) fn by_provider() -> Self {
        Self {
            is_by_provider: true,
            ..Self::default()
        }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds the entry of a key, which may be a provider and a model.
    pub(super) fn add_key(&mut self, key: &str, provider: Option<&str>, price: Price) {
        let place = self.add(provider, price);
        self.by_key.insert(key.into(), place);
        if let Some((provider, model)) = key.split_once('/') {
            self.add_model(provider, model, place);
        }
    }

    /// Adds the entry of a provider's model.
    pub(super) fn add_of_provider(&mut self, provider: &str, model: &str, price: Price) {
        let place = self.add(Some(provider), price);
        self.add_model(provider, model, place);
    }

    fn add(&mut self, provider: Option<&str>, price: Price) -> usize {
        let provider = provider.map(Box::from);
        self.entries.push(Entry { provider, price });
        self.entries.len() - 1
    }

    fn add_model(&mut self, provider: &str, model: &str, entry: usize) {
        let places = self.by_model.entry(model.into()).or_default();
        let provider = provider.into();
        places.push(Place { provider, entry });
    }

    /// Returns the rates of a model, which the table must have exactly as it is written.
    ///
    /// # Errors
    ///
    /// Why the table has no rates of it.
    pub fn rates(&self, provider: Option<&str>, model: &str) -> Result<&Rates, UnpricedReason> {
        let model = model.strip_suffix(LONG_CONTEXT).unwrap_or(model);
        let price = match provider {
            Some(provider) => self.of_provider(provider, model)?,
            None => self.of_any_provider(model)?,
        };
        match price {
            Price::Rates(rates) => Ok(rates),
            Price::UnknownForm => Err(UnpricedReason::PriceFormUnknown),
        }
    }

    fn of_provider(&self, provider: &str, model: &str) -> Result<&Price, UnpricedReason> {
        if let Some(entry) = self.listed_under(provider, model) {
            return Ok(&entry.price);
        }
        let family_of_call = family(provider);
        let is_same = |word: &str| family(word) == family_of_call;
        let bare = self.entry(model);
        let is_of_call = |entry: &&Entry| entry.provider.as_deref().is_some_and(is_same);
        match bare.filter(is_of_call) {
            Some(entry) => Ok(&entry.price),
            None => self.agreed(model, is_same),
        }
    }

    fn of_any_provider(&self, model: &str) -> Result<&Price, UnpricedReason> {
        if self.is_by_provider {
            return self.agreed(model, |_| true);
        }
        let entry = self.entry(model);
        entry
            .map(|entry| &entry.price)
            .ok_or(UnpricedReason::ModelNotInTable)
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(*self.by_key.get(key)?)
    }

    /// Returns the entry whose key is exactly this provider and this model.
    fn listed_under(&self, provider: &str, model: &str) -> Option<&Entry> {
        if !self.is_by_provider {
            return self.entry(&format!("{provider}/{model}"));
        }
        let places = self.by_model.get(model)?;
        let place = places.iter().find(|place| &*place.provider == provider)?;
        self.entries.get(place.entry)
    }

    /// Returns the price that all entries of a model under certain providers have.
    fn agreed(
        &self,
        model: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<&Price, UnpricedReason> {
        let places = self.by_model.get(model).map_or(&[][..], Vec::as_slice);
        let meant = places.iter().filter(|place| is_meant(&place.provider));
        let mut prices = meant.filter_map(|place| Some(&self.entries.get(place.entry)?.price));
        let first = prices.next().ok_or(UnpricedReason::ModelNotInTable)?;
        if prices.all(|price| price == first) {
            Ok(first)
        } else {
            Err(UnpricedReason::AmbiguousPrice)
        }
    }
}
