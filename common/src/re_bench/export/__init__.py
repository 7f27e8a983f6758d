"""Tasks written in formats that others run: directories of Harbor, families of METR's Task Standard."""
