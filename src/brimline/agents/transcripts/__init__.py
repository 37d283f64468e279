"""Reading transcripts: what a source is, and the line readers that sources share."""
