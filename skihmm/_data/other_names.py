"""Names in other packages of things that have other names here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, ClassVar, NoReturn, TypeAlias

# Names, with spaces between them, and their replacement: from hmmlearn, statsmodels, scikit-learn's
# mixtures, pyhsmm, PyMC and packages in R.
PARAMETERS = {
    "n_components n_states num_states k_regimes n_clusters nbStates nstates": "leave "
    "it out: the number of states is inferred; after fit it is n_states_.",
    "n_iter max_iter tol draws tune": "a sampler has a fixed number of sweeps; set "
    "n_burnin, n_draws and thin.",
    "covariance_type": 'set emission="gaussian" (full) or "diagonal_gaussian".',
    "exog": "name columns of X: emission=AutoregressiveNormal(input_features=[...]).",
    "exog_tvtp": "of categories: HCRPTransitions(context_features=[...]).",
    "kappa": 'set transitions="sticky", or HCRPTransitions(stay_prior=...).',
    "algorithm": "choose it in a call: predict(X, method=...).",
    "n_init chains": "set n_chains; all chains' draws are kept.",
    "switching_variance": 'variances of emission="gaussian" always differ by state.',
}
ATTRIBUTES = {
    "means_ covars_ covariances_": "after fit the states have emission_.means_ and "
    "emission_.covariances_.",
    "bic aic": "there is no number of states to choose; score(X) and "
    "skihmm.metrics.frozen_log_likelihood compare models.",
    "n_components n_states": "after fit it is n_states_.",
    "labels states states_": "after fit it is labels_.",
    "transmat transition_matrix": "after fit it is transmat_.",
    "draws": "after fit it is draws_.",
    "emissionprob_": "skihmm.posterior.draw_parameters(hmm) has emissionprob_.",
    "lambdas_": 'emission="poisson" has emission_.rates_ after fit.',
    "monitor_": "diagnose() compares the chains.",
    "smoothed_marginal_probabilities": "call predict_proba(X).",
    "expected_durations": "after fit it is dwell_times_.",
    "stay_coefficients_ stay_intercepts_": "transitions with input_features have it.",
    "regimes_": "after fit find_regimes() finds them, or says why not.",
    "regime_transition": "after fit it is transmat_.",
}
# Values of parameters such as `method`, and the choice that has the same meaning here.
CHOICES = {
    "map posterior argmax smoothed smoothing forward_backward": "smooth",
    "forward filtered filtering": "filter",
    "mean": "expectation",
}
# Emissions; also correct names, which may be given as a sampler, the first parameter.
SHORT_NAMES = {
    "gaussian normal mvn gmm": "emission='gaussian'",
    "student student_t t": "emission='student'",
    "autoregressive ar arhmm ar_hmm var": "emission='autoregressive'",
    "logistic logit logistic_regression binomial": "emission='logistic'",
    "log_linear poisson_regression": "emission='log_linear'",
    "choice mnl softmax multinomial_logit": "emission='choice'",
    "hcrp categorical discrete multinomial": "emission='hcrp' or 'dirichlet'",
}

# Classes without a parameter that similar classes have, and what to use instead.
LACKING = {
    "GammaPoisson BetaNegativeBinomial": {
        "subject_feature": "counts with offsets of subjects are "
        'NegativeBinomialRegression(subject_feature=...), "log_linear", also without inputs.',
        "subject_scale": "of counts an offset of the log rate is the scale: "
        "NegativeBinomialRegression(subject_feature=...).",
    },
    "NegativeBinomialRegression": {
        "subject_scale": "an offset of the log rate is the scale: subject_feature alone has it.",
    },
    "GammaGamma": {
        "subject_feature subject_scale": "pass logarithms of the values to "
        "NormalInverseWishart(subject_feature=...): an offset of logarithms is a scale.",
    },
    "BetaBernoulli": {
        "subject_feature": "binary values with offsets of subjects are "
        'BernoulliRegression(subject_feature=...), "logistic", also without inputs.',
    },
    "HCRPCategorical DirichletCategorical CategoricalRegression": {
        "subject_feature": "options have no order in which an offset moves them. For two options "
        "use BernoulliRegression(subject_feature=...); contexts give subjects own symbols.",
    },
}


# Every kind of recipe has factories by short name.
Factories: TypeAlias = Mapping[str, Mapping[str, Callable[[], Any]]]


def remedy_of(remedies: Mapping[str, str], name: str) -> str | None:
    """Entry of a table above, None if it has no such name."""
    return next((text for key, text in remedies.items() if name in key.split()), None)


def lacking_of(owner: object) -> Mapping[str, str]:
    """Parameters that only similar classes have, and what to use instead."""
    return next((v for k, v in LACKING.items() if type(owner).__name__ in k.split()), {})


def _advice(owner: object, name: str, recipes: Factories) -> str | None:
    """Error about a parameter that `owner` lacks; None if there is no counterpart.

    `recipes` has for every kind factories by short name, whose objects may have it.
    """
    found = {
        f"{kind}={type(recipe).__name__}({name}=...)": None
        for kind, known in recipes.items()
        for recipe in (make() for make in known.values())
        if name in recipe.get_params(deep=False)
    }
    places = f"it is one of {' or '.join(found)}." if found else None
    remedy = remedy_of(lacking_of(owner), name) or remedy_of(PARAMETERS, name) or places
    seen = f"Invalid parameter {name!r}: {type(owner).__name__} has none of it"
    return f"{seen}; {remedy}" if remedy else None


def explain_parameter(owner: object, name: str, recipes: Factories) -> None:
    """Raise ValueError for a parameter that `owner` lacks but that has a counterpart."""
    if not (name and hasattr(owner, "get_params")) or name in owner.get_params():
        return
    if advice := _advice(owner, name, recipes):
        raise ValueError(advice)


def explain_attribute(owner: object, name: str, is_fitted: bool) -> NoReturn:
    """Raise AttributeError with the counterpart, or for an attribute that a fit would make."""
    missing = f"{type(owner).__name__!r} object has no attribute {name!r}"
    remedy = remedy_of(ATTRIBUTES, name)
    if remedy is None and name.endswith("_") and not name.endswith("__") and not is_fitted:
        remedy = "call fit first, which makes such attributes."
    raise AttributeError(f"{missing}; {remedy}" if remedy else missing)


def _unknown(name: str, call: Callable[..., object], what: str) -> str:
    """Error about a keyword without a counterpart."""
    known = [key for key in inspect.signature(call).parameters if key != "self"]
    close = get_close_matches(name, known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    recipe, _, own = name.partition("__")
    if own and recipe in known:
        hint = f" Call set_params({name}=...), or pass an object as {recipe}, with its own {own!r}."
    return f"{what} has no parameter {name!r}; it has {', '.join(known)}.{hint}"


def _explained_init(init: Callable[..., None]) -> Callable[..., None]:
    """Constructor that explains keywords that it lacks."""

    @wraps(init)  # which keeps the signature, read by scikit-learn
    def explained(self: ExplainsNames, *args: object, **params: object) -> None:
        try:
            init(self, *args, **params)
        except TypeError as error:
            for name in params:
                if f"unexpected keyword argument {name!r}" in str(error):
                    advice = _advice(self, name, self._recipes)
                    text = advice or _unknown(name, init, type(self).__name__)
                    raise TypeError(text) from None
            raise

    return explained


def _explained_method(method: Callable[..., object]) -> Callable[..., object]:
    """Method that explains its keywords, and keywords that it lacks."""
    parameters = inspect.signature(method).parameters.values()
    places = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    name = method.__name__

    @wraps(method)
    def explained(self: object, *args: object, **params: object) -> object:
        try:
            return method(self, *args, **params)
        except TypeError as error:
            # Errors of the call itself have no frame within the method.
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:
                raise
            if len(args) > len(places):
                remedy = (
                    "Lengths of sequences are passed as lengths=..., or groups=..., one sequence "
                    "id per row."
                    if "groups" in named and not isinstance(args[len(places)], str)
                    else f"Pass {', '.join(f'{key}=...' for key in named)} by name."
                )
                raise TypeError(
                    f"{name} takes {', '.join(places) or 'nothing'} by position, and {len(args)} "
                    f"argument{'s were' if len(args) > 1 else ' was'} given. {remedy}"
                ) from None
            for key in params:
                if f"unexpected keyword argument {key!r}" in str(error):
                    raise TypeError(_unknown(key, method, name)) from None
            raise

    return explained


class ExplainsNames:
    """Classes whose calls explain parameters of other packages, and missing keywords."""

    _recipes: ClassVar[Factories] = {}

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name == "__init__":
                setattr(cls, name, _explained_init(member))
            elif not name.startswith("_") and inspect.isfunction(member):
                parameters = inspect.signature(member).parameters.values()
                if any(p.kind is p.KEYWORD_ONLY for p in parameters):
                    setattr(cls, name, _explained_method(member))
