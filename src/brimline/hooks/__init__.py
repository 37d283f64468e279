"""What runs inside an agent's loop, and what it is answered.

`client.py` and `brimline-hook` are run by the agent and import nothing of Brimline; the rest of
this room is the daemon's side of them.
"""
