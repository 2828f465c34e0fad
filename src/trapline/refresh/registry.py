"""Finds refresh policies: every module of the folder policies/. A new policy is one file; nothing is listed anywhere."""

import importlib
import pkgutil
from functools import cache

import trapline.refresh.policies
from trapline.errors import ConfigError, nearest
from trapline.refresh.policy import Policy


@cache
def all_policies() -> dict[str, Policy]:
    names = sorted(found.name for found in pkgutil.iter_modules(trapline.refresh.policies.__path__))
    modules = [importlib.import_module(f"trapline.refresh.policies.{name}") for name in names]
    found = (getattr(module, "POLICY", None) for module in modules)
    return {policy.name: policy for policy in found if isinstance(policy, Policy)}


def policy_named(name: str) -> Policy:
    if name not in all_policies():
        raise ConfigError(f"no policy {name!r}; {nearest(name, all_policies())}")
    return all_policies()[name]
