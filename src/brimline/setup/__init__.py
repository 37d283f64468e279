"""Our hooks and status line in the agents' settings: put in, and taken out without a trace."""
