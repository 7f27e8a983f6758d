"""A model as a list of allowed operators: exporting, checking and running it.

``allowed`` is the table of operators. ``export`` turns an ``nn.Module`` into a :class:`graph.Graph` and its tensors,
``graph`` reads and writes the list and holds it to the table, ``plan`` propagates shapes and dtypes, ``interpret`` runs
the list. The scorer's sandboxes and the agent's ``check.py`` use the same files; they import torch and safetensors.
"""
