"""The subject itself: usage, calls, windows, limits, prices, and the figures that follow from them.

Nothing here opens a file of an agent, talks to a process, or knows the name of a client.
"""
