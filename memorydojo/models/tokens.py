"""The stated rule by which tokens are estimated where no tokenizer counts them."""


def estimate_tokens(text: str) -> int:
    """One token for every four characters, rounded up.

    >>> estimate_tokens("12345")
    2
    """
    return -(-len(text) // 4)
