"""Check of recipes."""

from __future__ import annotations

import inspect
from typing import TypeVar

from sklearn.base import BaseEstimator, clone

from skihmm._recipe import Recipe

Instance = TypeVar("Instance", bound=Recipe)


def make_instances(recipe: type[Instance]) -> list[Instance]:
    """Build the instances of a sampler, an emission or transitions that tests cover.

    Parameters
    ----------
    recipe : class
        Its `test_params` lists the parameters of every instance.

    Returns
    -------
    instances : list of recipe

    See Also
    --------
    check_emission : Test an emission.
    check_sampler : Test a sampler.

    Examples
    --------
    >>> from skihmm.samplers import StepwiseSlice
    >>> from skihmm.testing import make_instances
    >>> make_instances(StepwiseSlice)
    [StepwiseSlice(), StepwiseSlice(run_split_merge_rate=1, split_merge_rate=1)]
    """
    return [recipe(**params) for params in recipe.test_params]


def check_recipe(recipe: BaseEstimator) -> None:
    """Check that an object can be cloned, printed and searched over by its parameters."""
    name = type(recipe).__name__
    params = recipe.get_params(deep=False)
    named = [
        parameter.name
        for parameter in inspect.signature(type(recipe)).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    assert sorted(params) == sorted(named), (
        f"get_params of {name} lists {sorted(params)}, its constructor takes "
        f"{sorted(named)}; they must agree"
    )
    copy = clone(recipe)
    assert type(copy) is type(recipe), f"clone makes a {type(copy).__name__} of a {name}"
    assert repr(copy) == repr(recipe), (
        f"the clone of {recipe!r} is {copy!r}; the constructor must keep its parameters as they are"
    )
    assert repr(recipe).startswith(name), f"repr does not begin with {name}: {recipe!r}"
