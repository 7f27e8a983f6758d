"""The exception that refuses a model."""


class RefusedError(Exception):
    """The model is not allowed; the message is shown to the model's author."""
