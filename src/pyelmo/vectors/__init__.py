"""Static word vectors, one vector for each word in any context: training, files, queries and evaluation."""
