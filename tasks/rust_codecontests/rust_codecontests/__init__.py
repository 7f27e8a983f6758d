"""The package of the task rust_codecontests."""
