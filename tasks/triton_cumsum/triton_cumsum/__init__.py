"""The task triton_cumsum: a conditional prefix sum over int32, as fast as the agent can make it on a GPU."""
