"""All that is particular to one agent, a folder each."""
