"""Data on disk: the cache, files, checksums, logs, Hugging Face repositories and provenance."""
