use super::{Access, Faults};
use crate::problem::QueryFault;
use crate::request::NoParameters;
use crate::spend::{
    LoadedPrices, ModelPrice, ModelPriceRequest, PriceFileRequest, PriceTableList,
};

endpoint! {
    PriceLoad: POST "/v1/prices" as "priceLoad" for Access::Operator,
    PriceFileRequest => LoadedPrices,
    "Load a file of prices, which is then in force for every report." {
        const FAULTS: Faults = &[
            ("form", QueryFault::UnknownPriceFormat),
            ("models", QueryFault::NoModels),
            ("full", QueryFault::PriceTablesFull),
        ];
    }
}

endpoint! {
    PriceTables: GET "/v1/prices" as "priceTables" for Access::Operator,
    NoParameters => PriceTableList,
    "List the newest price tables, newest first." {}
}

endpoint! {
    PriceRates: GET "/v1/prices/rates" as "priceRates" for Access::Operator,
    ModelPriceRequest => ModelPrice,
    "Say what the tokens of a model cost by the price table in force." {}
}
