//! Writes facts through the store with times of their own, to create a history that nobody has time
//! to wait for.

use std::sync::Arc;

use svc_engine::fact::InferenceCall;
use svc_engine::store::{Append, DatabaseUrl, Outcome, Store, StoreConfig};
use svc_model::id::OrgId;
use svc_model::time::Instant;
use tokio::task::JoinSet;

use crate::Failure;
use crate::scenario::ORGANIZATION;

/// The facts per append, and the appends that run at once.
const BATCH: usize = 1_000;
const UNDER_WAY: usize = 6;

/// Where the facts go.
pub(crate) struct Sink {
    store: Arc<Store>,
    batch: Vec<Append>,
    under_way: JoinSet<Result<(), Failure>>,
    runtime: tokio::runtime::Runtime,
}

impl Sink {
    /// Opens a database, and creates it if it is new.
    pub(crate) fn open(url: &str) -> Result<Self, Failure> {
        let store = Arc::new(Store::open_with_given_moments(&StoreConfig {
            url: DatabaseUrl::parse(url).map_err(|_| "no URL of a database")?,
            org_id: OrgId::new(ORGANIZATION)?,
            migrate: true,
            readers: 1,
        })?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()?;
        Ok(Self {
            store,
            batch: Vec::with_capacity(BATCH),
            under_way: JoinSet::new(),
            runtime,
        })
    }

    /// Adds a call that was received at this moment.
    pub(crate) fn call(&mut self, call: InferenceCall, at: Instant) -> Result<(), Failure> {
        let encoded = self.store.encode(call, at);
        self.add(Append::InferenceCall(Box::new(encoded)))
    }

    /// Adds a fact.
    pub(crate) fn add(&mut self, fact: Append) -> Result<(), Failure> {
        self.batch.push(fact);
        if self.batch.len() == BATCH {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Failure> {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let store = Arc::clone(&self.store);
        self.under_way.spawn_on(
            async move {
                let outcomes = store.append(batch).await?;
                let new = outcomes
                    .iter()
                    .all(|outcome| matches!(outcome, Outcome::Stored(_)));
                if new {
                    Ok(())
                } else {
                    Err("a fact was not new".into())
                }
            },
            self.runtime.handle(),
        );
        if self.under_way.len() > UNDER_WAY {
            self.wait()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        match self.runtime.block_on(self.under_way.join_next()) {
            Some(written) => written?,
            None => Ok(()),
        }
    }

    /// Waits until everything is stored.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.send()?;
        while !self.under_way.is_empty() {
            self.wait()?;
        }
        self.store.close();
        Ok(())
    }
}
