"""The HTTP server: vectors, predictions and scores of models for other programs, and the explorer page (extra `serve`).

settings  -->  service (models, indexes, tasks; one compute thread each)  -->  app (endpoints)  -->  run (processes)
"""
