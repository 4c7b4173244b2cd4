"""Invoices as text."""

from datetime import date, timedelta

TERMS_DAYS = 30


def due_date(issued, terms_days=TERMS_DAYS):
    due = issued + timedelta(days=terms_days)
    weekend = due.weekday() - 4
    return due + timedelta(days=3 - weekend) if weekend > 0 else due


def render_invoice(number, customer, lines, issued=None):
    issued = issued or date.today()
    heading = [f"Invoice {number}", customer, f"issued {issued:%Y-%m-%d}"]
    body = [f"{quantity:>4} x {name:<24} {price:>10}" for quantity, name, price in lines]
    total = sum(quantity * price for quantity, _, price in lines)
    footer = [f"total {total}", f"due {due_date(issued):%Y-%m-%d}"]
    return "\n".join([*heading, "", *body, "", *footer])
