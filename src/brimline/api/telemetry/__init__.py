"""OTLP requests: their bodies, decoded from JSON or protobuf, and the answers to them."""
