from decimal import Decimal

from orders.discount import discounted


def test_the_better_discount_wins_alone():
    price = Decimal("2.00")
    assert discounted(price, 50, Decimal("0.08")) == Decimal("90.00")
    assert discounted(price, 5, Decimal("0.08")) == Decimal("9.20")
