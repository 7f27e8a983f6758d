"""The ``restricted_mlm`` task: masked language models made of a few allowed operators."""
