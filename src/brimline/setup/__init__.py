"""Installs Brimline's hooks and status line in the agents' settings, and removes them."""
