from orders.currency import format_amount, to_minor_units


def test_a_half_is_rounded_to_even():
    assert to_minor_units("0.125", "USD") == 12
    assert to_minor_units("0.135", "USD") == 14


def test_yen_have_no_decimals():
    assert format_amount(to_minor_units("1200", "JPY"), "JPY") == "1200 JPY"
