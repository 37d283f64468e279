"""Usage in the answers of providers, as far as agents and SDKs share it; the rest is in `sdk/`."""
