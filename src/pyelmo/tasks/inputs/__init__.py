"""Words -> the vectors that a task network reads: static word vectors, characters and mixed encoder layers."""
