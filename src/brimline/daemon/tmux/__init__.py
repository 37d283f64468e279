"""Agents in tmux panes: find them, type into them, clear them."""
