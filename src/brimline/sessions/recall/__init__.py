"""Search in the content of a session's transcripts: an index of each file, which is derived.

It may be deleted at any time. What is in it is redacted.
"""
