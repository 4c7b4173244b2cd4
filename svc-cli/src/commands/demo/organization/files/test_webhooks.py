from orders.webhooks import SIGNATURE_HEADER, delivery, is_authentic


def test_a_delivery_verifies_with_its_secret_only():
    body, headers = delivery("paid", {"id": 7}, "s3cret")
    signature = headers[SIGNATURE_HEADER]
    assert is_authentic("s3cret", body, signature)
    assert not is_authentic("other", body, signature)
