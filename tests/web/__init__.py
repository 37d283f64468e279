"""The page in a real browser, on a real daemon."""
