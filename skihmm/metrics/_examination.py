"""The diagnosis of a fitted model: gathers the arguments of its rules."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from skihmm._typing import Floats
from skihmm._using.decoding import frozen_model
from skihmm._using.stays import note_of_separation
from skihmm.metrics._clusters import better_clusters
from skihmm.metrics._diagnosis import Diagnosis, Setting
from skihmm.metrics._labels import evenly, firm_share
from skihmm.metrics._misfit import find_misfits

# Draws of every chain with a score: two for each of four batches.
_N_SCORED = 8


def _scores(estimator: BaseEstimator) -> Floats:
    """Log likelihood of the data of the fit by some draws of every chain, nats."""
    draws, sequences = estimator.draws_, estimator._fit_state.sequences
    scores = np.full((len(draws), _N_SCORED), np.nan)
    for c, n in enumerate(draws.n_draws.tolist()):
        for i, d in enumerate(evenly(n, _N_SCORED).tolist() if n else ()):
            model = frozen_model(draws[c, d], sequences, estimator.emission_)
            scores[c, i] = model.filter()[0].sum()
    return scores


def _fit_arguments(estimator: BaseEstimator) -> str:
    """Arguments of ``fit`` by names that a command shows."""
    sequences = estimator._fit_state.sequences
    arguments = ["X"]
    if len(sequences.starts) > 1:
        arguments.append("groups=groups")
    if sequences.known_states is not None:
        arguments.append("states=states")
    return ", ".join(arguments)


def examine(estimator: BaseEstimator) -> Diagnosis:
    """Diagnose a fitted model."""
    emission, init = estimator.emission_, estimator.init
    if isinstance(init, str) and init == "auto":
        init = emission.default_init
    notes = emission.data_warnings(with_notes=True)
    if note := note_of_separation(estimator):
        notes.append(note)
    firm = firm_share(estimator.draws_, estimator._best)
    misfits = find_misfits(estimator, firm)
    setting = Setting(
        sampler=estimator.sampler_,
        n_burnin=int(estimator.n_burnin_.max()),
        thin=estimator.thin_,
        n_samples=len(estimator.labels_),
        shares_start=not isinstance(init, str) or init in ("single", "blocks"),
        has_numbers=not emission.is_categorical,
        data_notes=notes,
        point_estimate=estimator.point_estimate,
        misfits=[misfit.words for misfit in misfits],
        noise_misfits=[m.words for m in misfits if m.is_noise_of_regimes],
        scores=_scores(estimator),
        clusters=better_clusters(estimator),
        looks_back=getattr(emission, "order", 0) > 0,
        fit_arguments=_fit_arguments(estimator),
        seconds=sum(chain.seconds for chain in estimator._fit_state.chains),
    )
    return Diagnosis(estimator.draws_, estimator._best, setting, estimator._ranks)
