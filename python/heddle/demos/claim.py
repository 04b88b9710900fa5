"""The end of a demo."""


def holds(claim, text):
    """Raises AssertionError with the text where a claim is false."""
    if not claim:
        raise AssertionError(text)
