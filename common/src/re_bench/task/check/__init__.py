"""Everything that can be wrong with the files of a task, found without running any of them."""
