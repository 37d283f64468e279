"""The library for people who build agents: trackers, streams, the context service."""
