import pytest

from orders.stock import OutOfStock, Stock


def test_a_reservation_is_whole_or_nothing():
    stock = Stock({"pen": 3, "ink": 1})
    with pytest.raises(OutOfStock) as refused:
        stock.reserve([("pen", 2), ("ink", 2)])
    assert refused.value.sku == "ink"
    assert stock.available("pen") == 3
