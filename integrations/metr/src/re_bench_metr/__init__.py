"""Export tasks as task families of METR's Task Standard."""
