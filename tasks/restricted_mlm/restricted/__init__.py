"""A model as a list of allowed operators: exporting, checking and running it.

``export`` turns an ``nn.Module`` into a :class:`graph.Graph` and its tensors, ``graph`` reads and writes the list and
holds it to the table in ``allowed``, ``plan`` propagates shapes and dtypes, ``interpret`` runs the list. The scorer
and the agent's ``check.py`` use the same files; they import torch, safetensors and nothing of re_bench.
"""
