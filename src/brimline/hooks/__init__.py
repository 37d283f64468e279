"""Hooks and status lines of agents: the client that they run, its wire protocol and its spool.

What the daemon does with a request belongs to `daemon/hook_requests/`, an agent's own payloads to
`agents/`.
"""
