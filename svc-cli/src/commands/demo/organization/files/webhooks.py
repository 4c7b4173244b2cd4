"""Telling other systems of an order."""

import hashlib
import hmac
import json

SIGNATURE_HEADER = "X-Orders-Signature"


def sign(secret, body):
    digest = hmac.new(secret.encode(), body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def delivery(event, order, secret):
    """Returns the body and the headers of one delivery."""
    payload = {"event": event, "order": order}
    body = json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", SIGNATURE_HEADER: sign(secret, body)}
    return body, headers


def is_authentic(secret, body, signature):
    return hmac.compare_digest(sign(secret, body), signature)
