"""The ``triton_cumsum`` task: make a conditional prefix sum over int32 as fast as possible on a GPU."""
