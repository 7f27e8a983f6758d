"""The task restricted_mlm: masked language models made of a few allowed operators."""
