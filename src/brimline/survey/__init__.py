"""All sessions on a machine: find them, read them, total them."""
