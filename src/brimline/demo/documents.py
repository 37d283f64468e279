"""The documents of the story."""

CART = """\
# Handoff: discounts in the cart

## Task
Percentage and fixed discounts in the cart, several of them stackable, with tests.

## Done
- `cart/discounts.py`: `Discount`, `apply_all`; rounding is half-even, once, at the end.
- `cart/models.py`: a cart keeps its discounts; migration `0042` is written and applied.
- 31 of 34 tests in `tests/cart/` pass.

## Open
1. `test_stacked_below_zero`: a total must not become negative.
2. `test_expired_is_ignored`: `now()` is taken at import; pass the clock in.
3. The admin page still shows the sum **before** discounts.

## Where to look
- `cart/discounts.py:58` has the order in which discounts apply.
- The rule for rounding is in `docs/money.md`; do not round per line.

```
pytest tests/cart -q
```
"""

INVOICES = """\
# Handoff: invoices as PDF

## Task
Invoices as PDF, one template for all languages, sent with the receipt.

## Done
- `invoices/render.py` draws head, lines and totals.
- The tax table is read from `rates.toml`.

## Open
- Page breaks inside a line.
- Credit notes have no template yet.
"""

CHECKOUT = """\
# Handoff: checkout retries

## Task
A payment that timed out is tried again, once, with the same idempotency key.

## Done
- `payments/retry.py` with a back-off of 2 s; the key is kept in the order.
- The gateway's sandbox was called 40 times; no payment was made twice.

## Open
- The webhook may come before the answer: see the note in `payments/webhook.py`.
"""

SCHEMA = """\
# Handoff: reports on the new schema

## Task
All 23 reports read from `facts_v2`, with the same figures as before.

## Done
- 17 reports are moved; each is compared with last month's figures by `make compare`.

## Open
- `returns_by_reason` differs by 0.3 %: time zones, most likely.
- Five reports of finance are next; ask before `tax_summary` is touched.
"""

DRAFT = """\
# Draft handoff

Made by Brimline from the transcript, without a model. It lists what was said and done; nobody has \
judged it. What looked like a credential is `***`.

## The task, in the user's first words
> Move the staging cluster to the new network module, one service at a time.

## Open to-dos
- move `queue` and `mailer`
- delete the old security groups

## Tests and other commands, with their last result
- `terraform plan -target=module.api`: ok
- `terraform validate`: ok

## Files changed, the last one first
- `network/main.tf`
- `services/api.tf`
- `services/web.tf`
"""
