"""The truths of the profiles: tables, the sweeps that they were fitted to, and their forms."""
