"""`brimline watch`: all sessions in a terminal, updated live.

Only `app`, `screens`, `session_screen` and `widgets` import Textual. Text that commands print too
belongs to `terminal/`.
"""
