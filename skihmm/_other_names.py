"""Names that other packages have for what is called otherwise here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_COUNT = (
    "the number of states is inferred; in a fitted model it is n_states_. Leave it out."
)
_MEANS = "after fit the states have emission_.means_ and emission_.covariances_."
_CRITERION = (
    "there is no number of states to choose; score(X) and "
    "skihmm.metrics.frozen_log_likelihood compare models."
)
# Of hmmlearn, statsmodels and scikit-learn's mixtures.
PARAMETERS = {
    **dict.fromkeys(("n_components", "n_states", "k_regimes", "n_clusters"), _COUNT),
    **dict.fromkeys(
        ("n_iter", "max_iter", "tol"),
        "a sampler has a fixed number of sweeps; set n_burnin, n_draws and thin.",
    ),
    "covariance_type": 'set emission="gaussian" (full) or "diagonal_gaussian".',
    "exog": "name columns of X: emission=AutoregressiveNormal(input_features=[...]).",
    "algorithm": "choose it in a call: predict(X, method=...).",
    "n_init": "several chains run by n_chains, and all of their draws are kept.",
    "switching_variance": 'variances of emission="gaussian" always differ by state.',
}
ATTRIBUTES = {
    **dict.fromkeys(("means_", "covars_", "covariances_"), _MEANS),
    **dict.fromkeys(("bic", "aic"), _CRITERION),
    "n_components": _COUNT,
    "emissionprob_": "skihmm.posterior.draw_parameters(hmm) has emissionprob_.",
    "lambdas_": 'emission="poisson" has emission_.rates_ after fit.',
    "monitor_": "diagnose() compares the chains.",
    "smoothed_marginal_probabilities": "call predict_proba(X).",
    "expected_durations": "after fit it is dwell_times_.",
    "regime_transition": "after fit it is transmat_.",
}


def explain_parameter(
    owner: Any,
    name: str,
    recipes: Mapping[str, Mapping[str, Callable[[], object]]],
) -> None:
    """Raise ValueError for a parameter that `owner` lacks but that has a counterpart.

    `recipes` has for every kind the factories by short name, whose objects may have it.
    """
    if not (name and hasattr(owner, "get_params")) or name in owner.get_params():
        return
    remedy = PARAMETERS.get(name)
    if remedy is None:
        found = {
            f"{kind}={type(recipe).__name__}({name}=...)": None
            for kind, known in recipes.items()
            for recipe in (make() for make in known.values())
            if name in recipe.get_params(deep=False)  # type: ignore[attr-defined]
        }
        if not found:
            return
        remedy = f"it is one of {' or '.join(found)}."
    seen = f"{type(owner).__name__} has none of it"
    raise ValueError(f"Invalid parameter {name!r}: {seen}; {remedy}")
