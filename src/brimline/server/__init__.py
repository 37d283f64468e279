"""The programs that serve: a user's daemon, a fleet's server, the demo.

They put the parts of `monitor/`, `api/` and `daemon/` together; a part itself belongs there.
"""
