"""Amounts in the smallest unit of their currency."""

from decimal import ROUND_HALF_EVEN, Decimal

DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}


def to_minor_units(amount, currency):
    """Returns an amount as a whole number of cents, or whatever is smallest."""
    scale = Decimal(10) ** DIGITS[currency]
    exact = Decimal(str(amount)) * scale
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def format_amount(minor, currency):
    digits = DIGITS[currency]
    whole = Decimal(minor).scaleb(-digits)
    return f"{whole:.{digits}f} {currency}"
