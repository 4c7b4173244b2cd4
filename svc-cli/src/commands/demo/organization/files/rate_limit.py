"""How often a customer may ask."""

import time


class TokenBucket:
    """Refills at a steady rate and never holds more than its capacity."""

    def __init__(self, capacity, refill_per_second, clock=time.monotonic):
        self.capacity = capacity
        self.refill_per_second = refill_per_second
        self.clock = clock
        self.tokens = float(capacity)
        self.updated_at = clock()

    def allow(self, cost=1.0):
        now = self.clock()
        elapsed = now - self.updated_at
        self.tokens = min(self.capacity, self.tokens + elapsed * self.refill_per_second)
        self.updated_at = now
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True
