"""Every recipe of the package: the instances that each of them brings along."""

from __future__ import annotations

import inspect

from skihmm import emissions, samplers, transitions
from skihmm._recipe import Recipe
from skihmm.testing import make_instances

PACKAGES = {"sampler": samplers, "emission": emissions, "transitions": transitions}


def _instances(package):
    public = [getattr(package, name) for name in package.__all__]
    recipes = [recipe for recipe in public if issubclass(recipe, Recipe)]
    return [
        instance
        for recipe in recipes
        if not inspect.isabstract(recipe)
        for instance in make_instances(recipe)
    ]


# By the name of the estimator's parameter.
INSTANCES = {part: _instances(package) for part, package in PACKAGES.items()}
