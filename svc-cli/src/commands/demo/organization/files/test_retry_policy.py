import pytest

from orders.retry_policy import GivenUp, backoff_seconds, call_with_retries


def test_the_wait_never_exceeds_its_ceiling():
    waits = [backoff_seconds(n, jitter=lambda: 1.0) for n in range(20)]
    assert max(waits) == 30.0


def test_it_gives_up():
    def refuse():
        raise ConnectionError("refused")

    with pytest.raises(GivenUp):
        call_with_retries(refuse, attempts=3, sleep=lambda seconds: None)
