"""OpenTelemetry out: readings and signals to a collector, and what clients sent, passed on."""
