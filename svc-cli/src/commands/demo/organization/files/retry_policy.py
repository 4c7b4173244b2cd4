"""When to try again, and when to give up."""

import random
import time


class GivenUp(Exception):
    """Every attempt failed."""


def backoff_seconds(attempt, base=0.2, ceiling=30.0, jitter=random.random):
    """Returns how long to wait before an attempt, at most the ceiling."""
    longest = min(ceiling, base * 2 ** attempt)
    return longest / 2 + jitter() * longest / 2


def call_with_retries(operation, attempts=5, sleep=time.sleep):
    for attempt in range(attempts):
        try:
            return operation()
        except ConnectionError as error:
            last_error = error
            sleep(backoff_seconds(attempt))
    raise GivenUp(f"{attempts} attempts failed") from last_error
