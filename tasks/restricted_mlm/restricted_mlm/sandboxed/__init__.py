"""The functions that run in sandboxes. A submission may see everything here."""
