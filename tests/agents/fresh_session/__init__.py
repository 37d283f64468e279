"""What a fresh session holds, asked of a client."""
