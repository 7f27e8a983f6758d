"""Prepared data: the cache, files, checksums, logs, Hugging Face repositories and provenance."""
