"""The HTTP API, the event stream and the dashboard page."""
