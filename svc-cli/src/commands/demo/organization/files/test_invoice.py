from datetime import date

from orders.invoice import due_date, render_invoice


def test_nothing_is_due_on_a_weekend():
    assert due_date(date(2026, 1, 1), terms_days=2) == date(2026, 1, 5)


def test_the_total_stands_at_the_end():
    text = render_invoice("A-7", "Ada", [(2, "pen", 150)], date(2026, 1, 5))
    assert "total 300" in text.splitlines()[-2]
