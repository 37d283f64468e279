"""Files and JSON that others may have written: opened safely, private, locked, replaced as a whole.

What is in a file, and what it means, belongs to the folders that read it.
"""
