"""`brimline watch`: every session in a terminal, as it changes.

Only `app`, `screens` and `widgets` need Textual.
"""
