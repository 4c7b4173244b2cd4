"""An append-only record of who changed what."""

import json
from datetime import datetime, timezone


class AuditLog:
    def __init__(self, path):
        self.path = path

    def append(self, actor, action, order_id, **details):
        entry = {
            "at": datetime.now(timezone.utc).isoformat(),
            "actor": actor,
            "action": action,
            "order_id": order_id,
            "details": details,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, sort_keys=True) + "\n")
        return entry

    def of_order(self, order_id):
        with self.path.open(encoding="utf-8") as file:
            entries = [json.loads(line) for line in file]
        return [entry for entry in entries if entry["order_id"] == order_id]
