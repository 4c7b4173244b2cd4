"""Finding orders by the words of their lines."""

import re
from collections import defaultdict

WORD = re.compile(r"[a-z0-9]+")


def words_of(text):
    return set(WORD.findall(text.lower()))


class OrderIndex:
    def __init__(self):
        self.postings = defaultdict(set)

    def add(self, order_id, description):
        for word in words_of(description):
            self.postings[word].add(order_id)

    def find(self, query):
        """Returns the orders that have every word of the query."""
        wanted = [self.postings.get(word, set()) for word in words_of(query)]
        return sorted(set.intersection(*wanted)) if wanted else []
