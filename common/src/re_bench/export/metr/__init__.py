"""A task as a family of METR's Task Standard, https://github.com/METR/task-standard."""
