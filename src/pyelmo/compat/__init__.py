"""The names and shapes of older programs, so that their users change one line."""
