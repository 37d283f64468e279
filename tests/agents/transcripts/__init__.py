"""Tests of the transcript readers that the agents share."""
