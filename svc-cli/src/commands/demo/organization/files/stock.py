"""What is on the shelf and what is promised."""

from collections import Counter


class OutOfStock(Exception):
    def __init__(self, sku, missing):
        super().__init__(f"{missing} of {sku} are missing")
        self.sku, self.missing = sku, missing


class Stock:
    def __init__(self, on_hand):
        self.on_hand = Counter(on_hand)
        self.reserved = Counter()

    def available(self, sku):
        return self.on_hand[sku] - self.reserved[sku]

    def reserve(self, lines):
        """Reserves every line, or none of them."""
        for sku, quantity in lines:
            missing = quantity - self.available(sku)
            if missing > 0:
                raise OutOfStock(sku, missing)
        for sku, quantity in lines:
            self.reserved[sku] += quantity
