"""What the integrations have in common, without a framework."""
