import pytest

from orders.paging import PAGE_ROWS_MAX, page


def test_pages_share_no_row():
    first, second = page(list(range(90)), 0), page(list(range(90)), 1)
    assert set(first.rows).isdisjoint(second.rows)
    assert not first.is_last and second.is_last


def test_a_page_is_bounded():
    with pytest.raises(ValueError):
        page([], 0, page_rows=PAGE_ROWS_MAX + 1)
