"""Where everything is kept: one Protocol, and what implements it."""
