"""The exception that refuses a model."""


class RefusedError(Exception):
    """The model is not allowed; the model's author sees the message."""
