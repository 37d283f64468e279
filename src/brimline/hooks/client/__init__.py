"""The hook client: what an agent runs at each hook. It imports nothing else of Brimline.

The parts are imported here so that Python caches their bytecode: the client reads that cache and
never writes it (client.py).
"""

from brimline.hooks.client import autostart, exchange, offline, payload

__all__ = ["autostart", "exchange", "offline", "payload"]
