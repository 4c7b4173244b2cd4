"""Discounts by quantity and by code."""

from decimal import Decimal

QUANTITY_STEPS = [(100, Decimal("0.15")), (50, Decimal("0.10")), (10, Decimal("0.05"))]


def quantity_discount(quantity):
    for threshold, share in QUANTITY_STEPS:
        if quantity >= threshold:
            return share
    return Decimal(0)


def discounted(price, quantity, code_share=Decimal(0)):
    """Returns the price after the better of the two discounts; they do not add up."""
    best = max(quantity_discount(quantity), code_share)
    return (price * quantity * (1 - best)).quantize(Decimal("0.01"))
