"""What we ship for tests: a fake model API that real clients can be run against."""
