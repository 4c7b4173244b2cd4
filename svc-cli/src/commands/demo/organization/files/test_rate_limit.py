from orders.rate_limit import TokenBucket


def test_a_bucket_refills():
    now = [0.0]
    bucket = TokenBucket(2, refill_per_second=1, clock=lambda: now[0])
    assert bucket.allow() and bucket.allow() and not bucket.allow()
    now[0] = 1.0
    assert bucket.allow()
