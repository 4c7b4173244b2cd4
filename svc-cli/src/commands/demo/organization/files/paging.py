"""Pages of a list of orders."""

from dataclasses import dataclass

PAGE_ROWS_MAX = 200


@dataclass(frozen=True)
class Page:
    number: int
    rows: list
    is_last: bool


def page(orders, number, page_rows=50):
    """Returns one page, counted from 0. The window is half-open."""
    if not 1 <= page_rows <= PAGE_ROWS_MAX:
        raise ValueError(f"page_rows is 1 to {PAGE_ROWS_MAX}")
    first = number * page_rows
    window = orders[first:first + page_rows]
    return Page(number, window, first + page_rows >= len(orders))
