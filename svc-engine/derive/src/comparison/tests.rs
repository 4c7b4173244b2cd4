use super::*;

fn test(counts: [u64; 4]) -> RateTest {
    let [xa, na, xb, nb] = counts;
    rate_test(Proportion::new(xa, na), Proportion::new(xb, nb))
}

#[test]
fn significance_is_strict_with_and_without_correction_for_two_tests() {
    for (counts, raw, corrected) in [
        ([45, 50, 30, 50], true, true),
        ([60, 100, 40, 100], true, true),
        ([90, 100, 85, 100], false, false),
        ([62, 100, 47, 100], true, false),
        ([10, 10, 10, 10], false, false),
    ] {
        let test = test(counts);
        let actual = (test.significant_at_alpha, test.significant_after_bonferroni);
        assert_eq!(actual, (raw, corrected), "{counts:?}: {:?}", test.p_value);
    }
}

#[test]
fn a_comparison_names_a_small_side_and_what_it_never_computes() {
    for (counts, is_small) in [
        ([29, 30, 29, 30], false),
        ([29, 29, 29, 30], true),
        ([0, 0, 1, 2], false),
    ] {
        let [xa, na, xb, nb] = counts;
        let posteriors = rate_posteriors(Proportion::new(xa, na), Proportion::new(xb, nb));
        assert_eq!(
            (posteriors.small_n, test(counts).small_n),
            (is_small, is_small)
        );
    }
    let test = serde_json::to_value(test([8, 10, 5, 10])).unwrap();
    for member in [
        "sequential_boundary",
        "benjamini_hochberg_rank",
        "benjamini_hochberg_alpha",
        "significant_after_benjamini_hochberg",
    ] {
        assert_eq!(test.get(member), Some(&serde_json::Value::Null), "{member}");
    }
}

#[test]
fn without_cases_a_comparison_has_flags_and_no_numbers() {
    let test = test([3, 0, 1, 2]);
    assert!(test.insufficient_data && !test.small_n && !test.significant_at_alpha);
    assert_eq!(
        (test.p_value, test.difference, test.baseline_p),
        (None, None, None)
    );
    let kept = non_inferiority_test(Proportion::new(0, 0), Proportion::new(1, 2), 0.5);
    assert!(kept.insufficient_data && !kept.is_non_inferior && !kept.small_n);
    assert_eq!(kept.ci_lower_bound, None);
    for (b, n_b) in [(Proportion::new(0, 0), 0), (Proportion::new(3, 4), 4)] {
        let prior = rate_posteriors(Proportion::new(0, 0), b);
        assert!(prior.insufficient_data);
        assert_eq!((prior.n_a, prior.n_b), (0, n_b));
        assert_eq!(
            (prior.posterior_mean_a, prior.posterior_mean_b),
            (None, None)
        );
        assert_eq!(prior.probability_a_gt_b, None);
        assert_eq!((prior.ci_low, prior.ci_high), (None, None));
    }
}

#[test]
fn sides_without_variance_have_the_score_interval() {
    let of = |counts: [u64; 4]| {
        let test = test(counts);
        (test.is_without_variance(), test.interval())
    };
    let (is_without, interval) = of([8, 8, 5, 5]);
    let (low, high) = interval.unwrap();
    assert!(is_without && low < -0.3 && high > 0.4, "{low} {high}");
    let (is_without, interval) = of([45, 50, 30, 50]);
    let (low, _) = interval.unwrap();
    assert!(!is_without && (low - 0.140_771_773).abs() < 1e-6, "{low}");
    assert_eq!(of([3, 0, 1, 2]), (false, None));
}
