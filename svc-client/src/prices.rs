use svc_model::endpoint::{PriceLoad, PriceRates, PriceTables};
use svc_model::request::NoParameters;
use svc_model::spend::{LoadedPrices, ModelPrice, ModelPriceRequest, PriceFileRequest, PriceTable};

use crate::{Client, Error};

/// Price tables, which require an operator token. Costs that no source reported are derived with the
/// table in force, at list price.
impl Client {
    /// Loads a file of prices: LiteLLM's list of models, or the document of models.dev. The file of
    /// the table in force is not stored again, so the request can be retried.
    ///
    /// ```no_run
    /// # async fn load(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::spend::PriceFileRequest;
    ///
    /// let file = std::fs::read("model_prices_and_context_window.json")?;
    /// let loaded = client.load_prices(&PriceFileRequest::new(file)).await?;
    /// println!("{} models, {} passed over", loaded.models, loaded.ignored);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind); a file of neither form is
    /// [`QueryFault::UnknownPriceFormat`](svc_model::problem::QueryFault::UnknownPriceFormat).
    pub async fn load_prices(&self, request: &PriceFileRequest) -> Result<LoadedPrices, Error> {
        self.call::<PriceLoad>(request).await
    }

    /// Returns the newest price tables, newest first: 100 at most. The first is in force.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn price_tables(&self) -> Result<Vec<PriceTable>, Error> {
        let list = self.call::<PriceTables>(&NoParameters).await?;
        Ok(list.tables)
    }

    /// Returns what the price table in force says of a model.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn model_price(&self, request: &ModelPriceRequest) -> Result<ModelPrice, Error> {
        self.call::<PriceRates>(request).await
    }
}
