"""What people who build agents hold: trackers, streams, the service of old."""
