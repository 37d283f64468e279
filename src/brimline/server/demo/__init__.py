"""A daemon with sample sessions: it neither reads nor writes files of the user."""
