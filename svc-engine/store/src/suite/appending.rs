//! What appending promises for every kind of fact.

use super::*;

/// PostgreSQL cannot store NUL in a text. The checks before the store reject it; here one is
/// smuggled in, to see that other deliveries in its group do not fail.
#[test]
fn a_delivery_that_cannot_be_stored_does_not_fail_others_in_its_group() {
    let database = database!(Backend::Postgres);
    let store = Arc::new(database.open("acme"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let appended: Vec<_> = (0..40_u128)
        .map(|number| {
            let store = Arc::clone(&store);
            let run = if number == 20 {
                "bad\0run".to_owned()
            } else {
                format!("run {number}")
            };
            runtime.spawn(async move {
                store
                    .append(vec![Append::CiOutcome(Box::new(outcome(number + 1, &run)))])
                    .await
            })
        })
        .collect();
    for (number, appended) in appended.into_iter().enumerate() {
        let result = runtime.block_on(appended).unwrap();
        assert_eq!(result.is_err(), number == 20, "{number}: {result:?}");
    }
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .ci_outcomes
            .total,
        39
    );
}
