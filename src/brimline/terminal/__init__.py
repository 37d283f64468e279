"""Text for a terminal: colours, tables, bars, charts, cell widths.

Nothing here knows a command or prints: that belongs to `cli/` and `tui/`.
"""
