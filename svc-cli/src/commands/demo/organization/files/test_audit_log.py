from orders.audit_log import AuditLog


def test_entries_of_one_order_come_back_in_order(tmp_path):
    log = AuditLog(tmp_path / "audit.ndjson")
    log.append("ada", "created", 7)
    log.append("bob", "paid", 8, amount=300)
    log.append("ada", "shipped", 7, carrier="post")
    assert [entry["action"] for entry in log.of_order(7)] == ["created", "shipped"]
