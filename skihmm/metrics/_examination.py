"""The diagnosis of a fitted model: gathers the arguments of its rules."""

from __future__ import annotations

import numpy as np

from skihmm._typing import Floats
from skihmm._using.decoding import frozen_model
from skihmm._using.fitted import FittedModel
from skihmm._using.separation import note_of_separation
from skihmm.emissions._parts import looks_back
from skihmm.metrics._clusters import better_clusters
from skihmm.metrics._diagnosis import Diagnosis, Setting
from skihmm.metrics._labels import evenly, firm_share
from skihmm.metrics._misfit import find_misfits
from skihmm.posterior._regimes import FoundRegimes

# Draws of every chain with a score: two for each of four batches.
_N_SCORED = 8


def _scores(fitted: FittedModel) -> Floats:
    """Log likelihood of the data of the fit by some draws of every chain, nats."""
    draws, sequences = fitted.draws, fitted.sequences
    scores = np.full((len(draws), _N_SCORED), np.nan)
    for c, n in enumerate(draws.n_draws.tolist()):
        for i, d in enumerate(evenly(n, _N_SCORED).tolist() if n else ()):
            model = frozen_model(draws[c, d], sequences, fitted.emission)
            scores[c, i] = model.filter()[0].sum()
    return scores


def _fit_arguments(fitted: FittedModel) -> str:
    """Arguments of ``fit`` by names that a command shows."""
    sequences = fitted.sequences
    arguments = ["X"]
    if len(sequences.starts) > 1:
        arguments.append("groups=groups")
    if sequences.known_states is not None:
        arguments.append("states=states")
    return ", ".join(arguments)


def examine(fitted: FittedModel, regimes: FoundRegimes) -> Diagnosis:
    """Diagnose a fitted model."""
    emission, schedule = fitted.emission, fitted.schedule
    init = schedule.init
    if isinstance(init, str) and init == "auto":
        init = emission.default_init
    notes = emission.data_warnings(with_notes=True)
    if note := note_of_separation(fitted):
        notes.append(note)
    firm = firm_share(fitted.draws, fitted.best)
    misfits = find_misfits(fitted, regimes, firm)
    setting = Setting(
        sampler=schedule.sampler,
        n_burnin=int(schedule.n_burnin.max()),
        thin=schedule.thin,
        n_samples=len(fitted.labels),
        shares_start=not isinstance(init, str) or init in ("single", "blocks"),
        has_numbers=not emission.is_categorical,
        data_notes=notes,
        point_estimate=schedule.point_estimate,
        misfits=misfits,
        scores=_scores(fitted),
        clusters=better_clusters(fitted),
        looks_back=looks_back(emission),
        fit_arguments=_fit_arguments(fitted),
        seconds=schedule.seconds,
    )
    return Diagnosis(fitted.draws, fitted.best, setting, fitted.ranks)
