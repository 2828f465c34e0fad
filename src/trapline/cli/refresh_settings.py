"""Options of a refresh policy as users type them: NAME=X, or POLICY.NAME=X as `trapline refresh replay` has it. Whether a policy has
such an option is the policy's to say."""

from collections.abc import Sequence

from trapline.errors import ConfigError


def settings_of(policy: str, typed: Sequence[str], of_others: bool = False) -> dict[str, str]:
    """What was typed for this policy. `of_others`: others are chosen too, and what is meant for them is passed over.

    >>> settings_of("cgm", ["estimator=mle"]) == settings_of("cgm", ["cgm.estimator=mle"])
    True
    """
    settings = {}
    for text in typed:
        name, equals, value = text.partition("=")
        owner, dot, own = name.rpartition(".")
        if not equals:
            raise ConfigError(f"--refresh-option {text}: give NAME=X, such as kappa=0.5")
        if not dot or owner == policy:
            settings[own] = value
        elif not of_others:
            raise ConfigError(
                f"--refresh-option {text}: the policy is {policy}; give {own}={value}, or --refresh-policy {owner}"
            )
    return settings
