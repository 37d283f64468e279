"""Text for a terminal: colours, tables, bars, cell widths."""
