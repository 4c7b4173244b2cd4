//! The product names of the systems that evidence comes from, on the command line.
//!
//! The service has a neutral word for each kind of system. JSON uses that word, and every argument
//! accepts it; output for people uses the product name.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use svc_model::open::Open;
pub(crate) use svc_view::Product;

use crate::output::escape;

/// Returns the product name of a kind of system, escaped.
pub(crate) fn product<T: Product>(kind: &Open<T>) -> String {
    escape(svc_view::product(kind))
}

/// Returns the parser for an argument that names a kind of system. Its help lists the products.
pub(crate) fn product_parser<T: Product>() -> impl TypedValueParser<Value = T> {
    let values = T::ALL.iter().map(|kind| {
        let value = PossibleValue::new(kind.product());
        if kind.word() == kind.product() {
            value
        } else {
            value.alias(kind.word())
        }
    });
    PossibleValuesParser::new(values)
        .try_map(|text| T::named(&text).ok_or("is the name of no system"))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};
    use svc_model::ingest::{CiProvider, GatewayProvider};
    use svc_model::json;

    use super::*;

    fn parsed<T: Product>(text: &str) -> Option<T> {
        let argument = Arg::new("system").value_parser(product_parser::<T>());
        let command = Command::new("svc").arg(argument);
        let matches = command.try_get_matches_from(["svc", text]).ok()?;
        matches.get_one::<T>("system").copied()
    }

    #[test]
    fn every_system_is_recognised_by_its_product_and_its_word() {
        for kind in CiProvider::ALL {
            assert_eq!(parsed(kind.product()), Some(*kind));
            assert_eq!(parsed(kind.as_str()), Some(*kind));
        }
        for kind in GatewayProvider::ALL {
            assert_eq!(parsed(kind.product()), Some(*kind));
            assert_eq!(parsed(kind.as_str()), Some(*kind));
            // The path of the gateways' webhook and the shell have the same names.
            assert_eq!(GatewayProvider::from_word(kind.product()), Some(*kind));
        }
        assert_eq!(parsed::<CiProvider>("Jenkins"), None);
    }

    #[test]
    fn an_unknown_system_keeps_its_word() {
        let kind: Open<CiProvider> = json::from_slice(br#""ci_z""#).unwrap();
        assert_eq!(product(&kind), "ci_z");
        assert_eq!(product(&Open::Known(CiProvider::CiA)), "jenkins");
    }
}
