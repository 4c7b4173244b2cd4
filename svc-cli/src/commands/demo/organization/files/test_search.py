from orders.search import OrderIndex


def test_every_word_must_be_there():
    index = OrderIndex()
    index.add(1, "Blue fountain pen")
    index.add(2, "Blue ink")
    assert index.find("blue PEN") == [1]
    assert index.find("") == []
