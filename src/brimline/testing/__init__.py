"""What we ship for tests: a fake model API for real clients, and the suite that a store passes."""
