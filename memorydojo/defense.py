"""Names of the defenses that an agent can run with; what they are made of is in `memorydojo.running.defenses`."""

from memorydojo.errors import UnknownNameError

DEFENSES = ("tool_filter", "spotlighting_with_delimiting", "repeat_user_prompt", "transformers_pi_detector")
"""AgentDojo's defenses. The detector needs the packages ``transformers`` and ``torch`` and its model."""


def check_defense(defense: str | None) -> None:
    """Refuses a defense that is neither None, one of `DEFENSES`, nor ``module:function``.

    Raises:
        UnknownNameError: No defense has this name.
    """
    if defense is not None and ":" not in defense and defense not in DEFENSES:
        raise UnknownNameError("defense", defense, DEFENSES)
