"""HTTP over an embedder: the server and its explorer (extra `serve`)."""
