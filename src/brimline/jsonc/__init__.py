"""A parser and editor of JSON with comments, which keeps everything that it does not change."""
