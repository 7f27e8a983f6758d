"""The exception that refuses a model."""


class RefusedError(Exception):
    """The model is not allowed; the text is the reason shown to its author."""
