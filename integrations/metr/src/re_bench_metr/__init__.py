"""Export tasks as families of METR's Task Standard."""
