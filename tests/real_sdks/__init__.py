"""The real SDKs against the fake model: what the tracker reads is what was billed."""
