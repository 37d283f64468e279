"""The ledger: which content put how many tokens into a thread."""
