"""Prepared data: the cache, files and checksums, repositories of the hub, provenance."""
