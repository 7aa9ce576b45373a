"""Docstrings say what signatures and fitted objects say; their examples run."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
import re
import tomllib
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from recipes import INSTANCES
from sklearn.base import clone

import skihmm
from skihmm import HCRPHMM
from skihmm._draws import Draw, PosteriorDraws
from skihmm.windows import WindowedHMM


def _packages():
    """The package and its public subpackages that list names."""
    yield skihmm
    for info in pkgutil.iter_modules(skihmm.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"skihmm.{info.name}")
            if hasattr(module, "__all__"):
                yield module


def _public():
    """(name, object) of everything public: classes, functions, methods, properties."""
    for package in _packages():
        for name in package.__all__:
            value = getattr(package, name)
            if isinstance(value, str):
                continue
            where = f"{package.__name__}.{name}"
            yield where, value
            if not inspect.isclass(value):
                continue
            for method_name, method in inspect.getmembers(value):
                if method_name.startswith("_") or not inspect.isfunction(method):
                    continue
                # What scikit-learn documents is not ours.
                if method.__module__.split(".")[0] == "skihmm":
                    yield f"{where}.{method_name}", method


PUBLIC = dict(_public())
TOP = [name for name in PUBLIC if name.rpartition(".")[0] not in PUBLIC]  # no methods


def sections(docstring):
    """``{title: lines}`` of a numpydoc docstring; "" is what stands before the first."""
    lines = inspect.cleandoc(docstring).split("\n")
    result, title = {"": []}, ""
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line.strip() and re.fullmatch(r"-{3,}", following):
            title = line.strip()
            result[title] = []
        elif not re.fullmatch(r"-{3,}", line):
            result[title].append(line)
    return result


def listed_names(lines):
    """Names of a section such as Parameters: the entries that are not indented."""
    names = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            names += [name.strip() for name in line.split(" : ")[0].split(",")]
    return names


PLAIN = (object.__init__, object.__new__)


def signature_names(value):
    """Parameters as numpydoc writes them."""
    if inspect.isclass(value) and (value.__init__, value.__new__) == PLAIN:
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        stars.get(parameter.kind, "") + name
        for name, parameter in inspect.signature(value).parameters.items()
        if name != "self"
    ]


def test_public_names_are_found():
    assert "skihmm.HCRPHMM.fit" in PUBLIC
    assert "skihmm.metrics.mutual_information" in PUBLIC
    assert "skihmm.emissions.HCRPCategorical.decode" in PUBLIC
    assert "skihmm.HCRPHMM.set_fit_request" not in PUBLIC


def test_parser_of_docstrings():
    def function(a, b=1, *args, c, **kwargs):
        """Summary.

        Parameters
        ----------
        a, b : int, default=1
            Text : with a colon.
        *args
        c : {"x", "y"}

        Returns
        -------
        d : int
        """

    found = sections(function.__doc__)
    assert list(found) == ["", "Parameters", "Returns"]
    assert listed_names(found["Parameters"]) == ["a", "b", "*args", "c"]
    assert signature_names(function) == ["a", "b", "*args", "c", "**kwargs"]


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_equals_signature(name):
    value = PUBLIC[name]
    # A method may inherit its docstring; that of a class would be about something else.
    docstring = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
    assert docstring, f"{name} has no docstring"
    found = sections(docstring)
    assert found[""][0].strip(), f"the docstring of {name} has no summary line"
    assert listed_names(found.get("Parameters", [])) == signature_names(value)
    if inspect.isfunction(value):
        returned = inspect.signature(value).return_annotation
        nothing = (inspect.Signature.empty, None, "None")
        assert ("Returns" in found) == (returned not in nothing)


def findings(name):
    """Codes of errors; docstrings of methods need no "See Also" and no example (SA01, EX01)."""
    validate = pytest.importorskip("numpydoc.validate").validate
    with open(Path(__file__).parents[2] / "pyproject.toml", "rb") as file:
        checks = tomllib.load(file)["tool"]["numpydoc_validation"]["checks"]
    assert checks[0] == "all"
    left_out = {*checks} - {"SA01", "EX01"} if name in TOP else {*checks}
    return [code for code, _ in validate(name)["errors"] if code not in left_out]


@pytest.mark.parametrize("name", [n for n, value in PUBLIC.items() if value.__doc__])
def test_numpydoc_finds_nothing(name):
    assert findings(name) == []


def test_numpydoc_finds_what_is_missing(monkeypatch):
    docstring = """Print versions.

    Parameters
    ----------
    file
        Where to.
    """
    monkeypatch.setattr(skihmm.show_versions, "__doc__", docstring)
    assert {"SA01", "EX01", "PR04"} <= {*findings("skihmm.show_versions")}
    monkeypatch.setattr(HCRPHMM.score, "__doc__", docstring)
    found = findings("skihmm.HCRPHMM.score")
    assert "PR04" in found
    assert not {"SA01", "EX01"} & {*found}


def is_public(reference, name):
    """Whether Sphinx finds a reference in the docstring of a public name."""
    owner = name.rpartition(".")[0]
    scopes = [owner] if name in TOP else [owner, owner.rpartition(".")[0]]
    return reference in PUBLIC or any(f"{scope}.{reference}" in PUBLIC for scope in scopes)


@pytest.mark.parametrize("name", [n for n, value in PUBLIC.items() if value.__doc__])
def test_related_names_are_public(name):
    related = listed_names(sections(PUBLIC[name].__doc__).get("See Also", []))
    assert [each for each in related if not is_public(each, name)] == []


def test_references_are_resolved_as_by_sphinx():
    assert is_public("OnlineFilter", "skihmm.HCRPHMM")
    assert is_public("diagnose", "skihmm.HCRPHMM.summary")
    assert is_public("HCRPHMM.fit", "skihmm.HCRPHMM.summary")
    assert not is_public("HCRPHMM", "skihmm.emissions.VonMises")
    assert not is_public("fit", "skihmm.HCRPHMM")


SHORT = HCRPHMM(n_burnin=1, n_draws=1, n_particles=2, random_state=0)
OF_WINDOWS = WindowedHMM(clone(SHORT).set_params(emission="student"))
FITTED = [SHORT, OF_WINDOWS, *INSTANCES["emission"]]


@pytest.mark.parametrize("estimator", FITTED, ids=lambda e: type(e).__name__)
def test_documented_attributes_exist_after_fit(estimator, sequence):
    pd = pytest.importorskip("pandas")
    # Names of columns are only learned from a data frame.
    X = sequence % 2 + (type(estimator).__name__ == "GammaGamma")
    if estimator is OF_WINDOWS:
        X = np.tile(X, (4, 1))
    estimator.fit(pd.DataFrame(X, columns=["symbol"]))
    documented = listed_names(sections(type(estimator).__doc__)["Attributes"])
    assert all(name.endswith("_") for name in documented)
    # Properties too, of base classes if they are there.
    names = {*vars(type(estimator)), *filter(partial(hasattr, estimator), dir(estimator))}
    assert {name for name in names if re.fullmatch(r"[^_].*_", name)} == set(documented)


def test_every_class_with_fit_is_in_the_list_above():
    classes = [value for value in PUBLIC.values() if inspect.isclass(value)]
    with_fit = {
        value for value in classes if hasattr(value, "fit") and not inspect.isabstract(value)
    }
    assert with_fit == {type(estimator) for estimator in FITTED}


def test_attributes_of_draws(fitted):
    for value in (fitted.draws_, fitted.draws_[0, 0]):
        found = sections(type(value).__doc__)
        # (Parameters of a dataclass are attributes.)
        part = "Attributes" if "Attributes" in found else "Parameters"
        documented = set(listed_names(found[part]))
        stored = {name for name in vars(value) if not name.startswith("_")}
        assert stored <= documented
        for name in documented:
            getattr(value, name)
    assert isinstance(fitted.draws_, PosteriorDraws)
    assert isinstance(fitted.draws_[0, 0], Draw)


def _python_modules():
    for info in pkgutil.walk_packages(skihmm.__path__, "skihmm."):
        spec = importlib.util.find_spec(info.name)
        if spec is not None and spec.origin and Path(spec.origin).suffix == ".py":
            yield info.name
    yield "skihmm"


MODULES = sorted(_python_modules())


def test_modules_are_found():
    assert {"skihmm._hcrp_hmm", "skihmm.emissions._categorical"} <= set(MODULES)
    assert "skihmm.core._state" not in MODULES


# Packages that examples of the bridges need.
NEEDED = {
    "skihmm.contrib._hmmlearn": "hmmlearn",
    "skihmm.contrib.aeon": "aeon",
    "skihmm.contrib.sktime": "sktime",
}


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    if name.startswith("skihmm.inspection"):
        # (A backend without windows.)
        pytest.importorskip("matplotlib").use("Agg")
    with warnings.catch_warnings():
        if name in NEEDED:
            warnings.simplefilter("ignore")  # (Those of what they import.)
            pytest.importorskip(NEEDED[name])
        module = importlib.import_module(name)
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("name", TOP)
def test_public_names_have_examples(name):
    assert ">>> " in PUBLIC[name].__doc__
