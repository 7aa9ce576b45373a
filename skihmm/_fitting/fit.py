"""One fit: checked parameters, new or continued chains, and fitted attributes."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from skihmm._data.contexts import StepContexts
from skihmm._data.filled import describe_filled
from skihmm._data.frames import category_orders
from skihmm._data.given import GivenColumns
from skihmm._data.growing import Grown, Rows
from skihmm._data.reading import Columns
from skihmm._data.sequences import Sequences
from skihmm._data.validation import (
    as_array,
    check_choice,
    check_flag,
    check_integer,
    check_integer_or_auto,
    check_n_jobs,
    check_nonnegative,
    check_positive,
    draw_entropy,
    is_missing,
    resolve,
    warn_caller,
    warn_of_identifiers,
    warn_of_one_hot,
    warn_of_sequences,
    warn_of_single_rows,
)
from skihmm._draws import PosteriorDraws
from skihmm._fitting.callbacks import FitTasks
from skihmm._fitting.chain import History
from skihmm._fitting.chain_file import ChainFile, Header, chain_paths, seed_of_run
from skihmm._fitting.onward import Onward
from skihmm._fitting.progress import Progress, SweepReport
from skihmm._fitting.run import (
    INTERRUPTED,
    NO_DRAW,
    ChainTask,
    Monitor,
    Plan,
    StopFlag,
    raised_by_interrupts,
    run_chain,
)
from skihmm._fitting.starts import ModelSettings, are_matched, effort_of
from skihmm._records import ChainRecord, ModelRecord
from skihmm._typing import Array, Flags, Integers, Labels, RandomState
from skihmm._using.decoding import chain_ranks, frozen_model, log_weights, rank
from skihmm._using.fitted import FittedModel, Schedule, described_emission
from skihmm._using.partitions import LOSSES
from skihmm._using.renumbering import order_like, renumbered
from skihmm.emissions import BaseEmission
from skihmm.emissions._columns import name_columns
from skihmm.emissions._encoding import encode, missing_ends, noise_of, with_inputs
from skihmm.emissions._gaps import open_gaps
from skihmm.emissions._given import given_of, given_roles
from skihmm.emissions._names import EMISSIONS
from skihmm.emissions._parts import (
    numeric_values,
    preferred_jobs,
)
from skihmm.posterior._estimate import best_draw
from skihmm.samplers import BaseSampler
from skihmm.samplers._names import SAMPLERS, auto_sampler
from skihmm.transitions import BaseTransitions
from skihmm.transitions._names import TRANSITIONS

INITS = ("auto", "particle_filter", "kmeans", "blocks", "random", "single")
POINT_ESTIMATES = (*LOSSES, "map")
# Columns per row from which rows and columns may have been exchanged.
_MANY_COLUMNS = 10


@dataclass(frozen=True)
class FitState:
    """Chains of a fit and their data, for further fits.

    Attributes
    ----------
    chains : list of History
    sequences : Sequences
        All data so far, encoded.
    model_hash : str
        Value of :attr:`Parameters.model_hash`.
    entropy : list of int
        Entropy of the random streams.
    is_extended : bool
        Whether partial_fit has added data.
    given : GivenColumns
        Columns of X that are given, not modelled.
    rows : Rows
        All data so far, as they were passed.
    numbered : ndarray of shape (n_samples,), int32, or None
        Labels whose numbers the states keep, -1 of new steps; None: numbers by size.
    """

    chains: list[History]
    sequences: Sequences
    model_hash: str
    entropy: list[int]
    is_extended: bool
    given: GivenColumns
    rows: Rows
    numbered: Labels | None = None

    @property
    def score_entropy(self) -> list[int]:
        """Entropy of the random streams of scores."""
        root = np.random.SeedSequence(self.entropy).spawn(2)[1]
        return [int(word) for word in root.generate_state(4)]

    @property
    def has_states(self) -> bool:
        """Whether every draw has its path."""
        return all(draw.states is not None for chain in self.chains for draw in chain.draws)


# What a fit makes: for all uses, and for further fits.
Fitted = tuple[FittedModel, FitState]


@dataclass(frozen=True)
class Parameters:
    """Checked parameters of the estimator, with cloned recipes."""

    plan: Plan
    n_draws: int
    n_chains: int
    n_jobs: int | None
    n_particles: int
    verbose: int
    point_estimate: str
    init: str | ArrayLike
    warm_start: bool
    new_states: bool
    callback: Callable[[SweepReport], object] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_interval: float
    random_state: RandomState
    sampler: BaseSampler
    emission: BaseEmission
    transitions: BaseTransitions

    @classmethod
    def check(cls, params: Mapping[str, Any]) -> Parameters:
        """Check the parameters that the estimator's ``get_params(deep=False)`` returns."""
        # scikit-learn's own estimators take verbose=True.
        verbose = params["verbose"]
        if not isinstance(verbose, bool):
            verbose = check_integer("verbose", verbose, 0)
        max_time = params["max_time"]
        plan = Plan(
            check_integer_or_auto("n_burnin", params["n_burnin"], 0),
            check_integer_or_auto("thin", params["thin"], 1) or 0,
            check_flag("store_states", params["store_states"]),
            np.inf if max_time is None else check_positive("max_time", max_time),
        )
        callback = params["callback"]
        if not (callback is None or callable(callback)):
            raise TypeError(f"callback={callback!r}; expected something to call, or None.")
        point_estimate = check_choice("point_estimate", params["point_estimate"], POINT_ESTIMATES)
        if point_estimate == "binder" and not plan.store_states:
            raise ValueError(
                "point_estimate='binder' compares the state paths of all draws, but "
                "store_states=False. Set store_states=True, or point_estimate='map'."
            )
        emission = resolve("emission", params["emission"], EMISSIONS, BaseEmission)
        named = transitions_for(emission)
        transitions = resolve("transitions", params["transitions"], named, BaseTransitions)
        sampler = params["sampler"]
        if isinstance(sampler, str) and sampler == "auto":
            sampler = sampler_of(emission, transitions)
        parameters = cls(
            plan=plan,
            n_jobs=check_n_jobs("n_jobs", params["n_jobs"]),
            warm_start=check_flag("warm_start", params["warm_start"]),
            new_states=check_flag("new_states", params["new_states"]),
            n_draws=check_integer("n_draws", params["n_draws"], 1),
            n_chains=check_integer("n_chains", params["n_chains"], 1),
            n_particles=check_integer("n_particles", params["n_particles"], 1),
            verbose=int(verbose),
            point_estimate=point_estimate,
            init=params["init"],
            callback=callback,
            checkpoint=params["checkpoint"],
            checkpoint_interval=check_nonnegative(
                "checkpoint_interval", params["checkpoint_interval"]
            ),
            random_state=params["random_state"],
            sampler=resolve("sampler", sampler, SAMPLERS, BaseSampler),
            emission=emission,
            transitions=transitions,
        )
        parameters.sampler.check_parameters()
        parameters.sampler.check_transitions(parameters.transitions)
        return parameters

    @property
    def model_hash(self) -> str:
        """Hash of the model.

        Counts of another emission do not fit into the statistics, and draws of different
        posteriors must not be mixed.
        """
        parts = (self.emission, self.transitions)
        named = [(type(part).__name__, part.get_params()) for part in parts]
        return str(joblib.hash(named))

    def settings(self, emission: BaseEmission, init: str | Labels) -> ModelSettings:
        """Settings of the chains, with the fitted emission."""
        return ModelSettings(
            self.sampler,
            emission,
            self.transitions,
            init,
            self.n_particles,
            effort_of(self.plan.n_burnin),
        )

    def check_continued(self, state: FitState, what: str) -> None:
        """Refuse another model, or another number of chains, than was fitted."""
        if self.model_hash != state.model_hash:
            raise ValueError(
                f"{what} continues the chains of the earlier fit, but emission or "
                "transitions is not that of the earlier fit. Keep them, or start afresh: "
                "fit with warm_start=False."
            )
        if self.n_chains != len(state.chains):
            raise ValueError(
                f"n_chains={self.n_chains}, but {what} continues the "
                f"{len(state.chains)} chains of the earlier fit. Keep n_chains, or start "
                "afresh: fit with warm_start=False."
            )


@dataclass(frozen=True)
class _Data:
    """Observed columns, first rows of sequences, and columns given to the emission."""

    observed: Array
    starts: NDArray[np.intp]
    given: Array

    def encoded(self, emission: BaseEmission, entropy: list[int]) -> Array:
        """Encode the data with the noise of a fit."""
        noise = noise_of(emission, self.observed.shape, 0, _noise_entropy(entropy))
        added = {} if noise is None else {"noise": noise}
        return encode(emission, self.observed, self.starts, given=self.given, **added)


class Fit:
    """One fit of an estimator to validated data.

    Parameters
    ----------
    parameters : Parameters
    columns : Columns
        Columns of X.
    make_tasks : callable or None
        Makes the tasks of scikit-learn's callbacks, as :class:`FitTasks` without its
        first two parameters; None without callbacks.

    Attributes
    ----------
    stopped : list of (str or None)
        Why every chain ended early, if it did.
    """

    def __init__(
        self,
        parameters: Parameters,
        columns: Columns,
        make_tasks: Callable[..., FitTasks] | None,
    ) -> None:
        self.parameters = parameters
        self._columns = columns
        self._names = columns.texts
        self._orders = category_orders(columns.types)
        self._make_tasks = make_tasks
        self.stopped: list[str | None] = []

    def start(self, rows: Rows, before: Fitted | None) -> Fitted:
        """Fit rows anew, or continue the chains of an earlier fit or of files."""
        X, starts = rows.X, rows.starts
        self._set_plan(len(X))
        earlier, resumed = None, None
        if before is not None and self.parameters.warm_start:
            earlier, resumed = before
        given, data, steps = self._separate(X, starts)
        entropy = self._entropy(resumed)
        emission, codes = self._fitted(data, entropy)
        is_closed = not self.parameters.new_states
        sequences = Sequences(codes, starts, contexts=steps).labelled(rows.states, is_closed)
        if resumed and earlier:
            known = self._as_before(data, sequences, emission, resumed, earlier.emission)
            if known is not None:
                emission, sequences = known
            elif resumed.is_extended:
                # fit drops the data of partial_fit, as everywhere in scikit-learn.
                resumed, entropy = None, self._entropy(None)
                emission, codes = self._fitted(data, entropy)
                sequences = replace(sequences, codes=codes)
            self._check_resumed(resumed, known is not None)
        settings = self._check(data, sequences, emission, resumed is None)
        histories, files, entropy = self._begin(resumed, entropy, sequences, settings)
        state = FitState(
            histories, sequences, self.parameters.model_hash, entropy, False, given, rows
        )
        if resumed and earlier:
            # One longer fit has numbers by size; numbers that were given are kept.
            numbered = None if resumed.numbered is None else earlier.labels
            state = replace(state, is_extended=resumed.is_extended, numbered=numbered)
        return self._sample(X, settings, state, files)

    def _separate(
        self, X: Array, starts: NDArray[np.intp]
    ) -> tuple[GivenColumns, _Data, StepContexts | None]:
        """Separate the observed columns from the given columns."""
        emission, transitions = self.parameters.emission, self.parameters.transitions
        n_features = X.shape[1]
        of_emission = given_roles(emission)
        given = GivenColumns.find(transitions.roles(), of_emission, n_features, self._names)
        observed, columns = given.split(X)
        if len(given):
            # Without names errors and warnings have indices of columns of X.
            names = range(n_features) if self._names is None else self._names
            self._names = np.delete(names, given.columns).tolist()
        of_transitions = given.transitions(columns)
        transitions = transitions.with_given(of_transitions)
        self.parameters = replace(self.parameters, transitions=transitions)
        steps = transitions.step_contexts(of_transitions)
        orders = [o for c, o in enumerate(self._orders) if c not in given.columns]
        name_columns(emission, self._names, orders)
        return given, _Data(observed, starts, given.emission(columns)), steps

    def _fitted(self, data: _Data, entropy: list[int]) -> tuple[BaseEmission, Array]:
        """Fit the emission; return it and the encoded data."""
        noise = _noise_entropy(entropy)
        emission = self.parameters.emission.with_given(data.given)
        emission = emission.fit_sequences(data.observed, data.starts, noise)
        return emission, data.encoded(emission, entropy)

    def _as_before(
        self,
        data: _Data,
        sequences: Sequences,
        emission: BaseEmission,
        resumed: FitState,
        earlier_emission: BaseEmission,
    ) -> tuple[BaseEmission, Sequences] | None:
        """Emission and sequences of the earlier fit; None if its data were different."""
        before = resumed.sequences
        if self.parameters.model_hash == resumed.model_hash:
            # Codes do not contain the offsets of the columns.
            emission = earlier_emission
            if data.observed.shape[1] != before.codes.shape[1] - emission.n_inputs:
                return None
            try:
                codes = data.encoded(emission, resumed.entropy)
            except ValueError:
                return None
            sequences = replace(sequences, codes=codes)
        if sequences.fingerprint != before.fingerprint:
            return None
        return emission, sequences

    def _check_resumed(self, resumed: FitState | None, is_same: bool) -> None:
        params = self.parameters
        if not resumed:
            return
        if params.checkpoint is not None:
            raise ValueError(
                "warm_start=True goes on from the earlier fit, and checkpoint "
                f"from the files in {str(params.checkpoint)!r}; one of them has to "
                "be left out. (With a checkpoint, set a larger n_draws and refit.)"
            )
        params.check_continued(resumed, "warm_start=True")
        if not is_same:
            raise ValueError(
                "warm_start=True continues the chains of the earlier fit, but X (or "
                "its division into sequences, or states) is not that of the earlier "
                "fit. Pass the same data, or set warm_start=False to start afresh."
            )
        if params.point_estimate == "binder" and not resumed.has_states:
            raise ValueError(
                "point_estimate='binder' compares the state paths of all draws, but "
                "the earlier fit, which warm_start=True continues, had "
                "store_states=False. Set point_estimate='map', or warm_start=False."
            )

    def _check(
        self, data: _Data, sequences: Sequences, emission: BaseEmission, is_new: bool
    ) -> ModelSettings:
        """Check the data with all recipes before work; return the settings of chains."""
        params = self.parameters
        self._warn_of_missing(data.observed, _lost_rows(emission, sequences), emission)
        ends = missing_ends(emission, sequences.codes, sequences.starts)
        _warn_of_missing_ends(ends, len(sequences.starts))
        if is_new:
            n_columns = data.observed.shape[1]
            labels = range(n_columns) if self._names is None else self._names
            warn_of_identifiers(data.observed, data.starts, labels)
            warn_of_sequences(data.observed, data.starts, labels)
            warn_of_one_hot(data.observed)
            n_rows = len(data.observed)
            if n_columns >= _MANY_COLUMNS * n_rows:
                warn_caller(
                    f"X has {n_rows} row{'s' * (n_rows > 1)} and {n_columns} columns, and rows are "
                    "time steps. If columns are the time steps, pass X.T."
                )
            n_values = sequences.codes.shape[1] - emission.n_inputs
            filled = _filled(data, labels, emission, n_values)
            texts = [*params.transitions._given_warnings, *emission.data_warnings(), *filled]
            # Transitions and emission may share columns.
            for text in dict.fromkeys(texts):
                warn_caller(text)
        params.sampler.check_emission(emission, emission.make_stats(sequences.codes[:0]))
        return params.settings(emission, self._check_init(sequences, emission))

    def _begin(
        self,
        resumed: FitState | None,
        entropy: list[int],
        sequences: Sequences,
        settings: ModelSettings,
    ) -> tuple[list[History], Sequence[ChainFile | None], list[int]]:
        """Resume or begin chains; return their histories and files, and the seed."""
        params = self.parameters
        if params.checkpoint is not None:
            return self._open_files(params.checkpoint, entropy, sequences, settings)
        histories = [params.plan.begin()] * params.n_chains
        if resumed:
            histories = [
                history.continued(params.plan.thin, params.plan.begin())
                for history in resumed.chains
            ]
        return histories, [None] * params.n_chains, entropy

    def _set_plan(self, n_steps: int) -> None:
        """Complete the schedule, for so many steps."""
        plan = self.parameters.plan.for_steps(n_steps)
        self.parameters = replace(self.parameters, plan=plan)

    def _entropy(self, resumed: FitState | None) -> list[int]:
        """Entropy of an earlier fit, of files without a random_state, or new entropy."""
        params = self.parameters
        if resumed:
            return resumed.entropy
        if params.random_state is None and params.checkpoint is not None:
            path = chain_paths(params.checkpoint, params.n_chains)[0]
            seed = seed_of_run(path)
            if seed:
                return seed
        return draw_entropy(params.random_state)

    def extend(self, added: Rows, before: Fitted) -> Fitted:
        """Add rows to an earlier fit, whose chains go on with an emission fitted to all rows.

        The chain of the selected draw goes on from that draw, other chains from their last state.
        """
        fitted, earlier = before
        grown = earlier.rows.grown(added)
        rows, entropy = grown.rows, earlier.entropy
        earlier.rows.warn_of_joins(added)
        self._check_added(added, grown.go_on, before)
        self._set_plan(len(rows.X))
        seen = fitted.encoder.encoded(rows.X, rows.starts)
        _warn_of_added(grown, added, missing_ends(fitted.emission, seen.codes, seen.starts))
        given, data, steps = self._separate(rows.X, rows.starts)
        emission, codes = self._fitted(data, entropy)
        whole = Sequences(codes, rows.starts, contexts=steps)
        whole = whole.labelled(rows.states, earlier.sequences.is_closed)
        params = self.parameters
        settings = params.settings(emission, "particle_filter")
        params.sampler.check_emission(emission, emission.make_stats(codes[:0]))
        onward = Onward(seen, grown.are_added, fitted.emission)
        histories = []
        for c, history in enumerate(earlier.chains):
            begun = params.plan.begin()
            if history.record is not None:
                model, states = _last_state(history.record, earlier.sequences)
                if c == fitted.best[0]:
                    model, states = fitted.selected.arrays, fitted.labels
                record = onward.begin(history.record, model, states, whole, settings)
                begun = replace(begun, record=record)
            histories.append(begun)
        numbered = np.full(len(rows.X), -1, dtype=np.int32)
        numbered[~grown.are_added] = fitted.labels
        state = FitState(histories, whole, earlier.model_hash, entropy, True, given, rows, numbered)
        return self._sample(added.X, settings, state, [None] * params.n_chains)

    def _check_added(self, added: Rows, go_on: Flags, before: Fitted) -> None:
        """Check added rows alone, so that errors have their numbers in X, and warn of them."""
        fitted, earlier = before
        fitted.encoder.warn_of_lacking(added.X, added.starts[~go_on])
        fitted.encoder.encoded(added.X, added.starts)
        columns = earlier.given.split(added.X)[1]
        fitted.emission.with_given(earlier.given.emission(columns))
        fitted.transitions.with_given(earlier.given.transitions(columns))

    def _sample(
        self,
        X: Array,
        settings: ModelSettings,
        state: FitState,
        files: Sequence[ChainFile | None],
    ) -> Fitted:
        """Run all chains to the end."""
        params = self.parameters
        seeds = np.random.SeedSequence(state.entropy).spawn(2)[0].spawn(params.n_chains)
        chains = []
        for c, (history, file) in enumerate(zip(state.chains, files, strict=True)):
            # The total number of draws includes the draws of a file.
            n_draws = params.n_draws + (0 if file else len(history.draws))
            chains.append(ChainTask(c, seeds[c], history, n_draws, file))
        summarise = partial(_summary, settings, state, params, self._columns)
        return summarise(self._run(X, settings, state.sequences, chains, summarise))

    def _run(
        self,
        X: Array,
        settings: ModelSettings,
        sequences: Sequences,
        chains: list[ChainTask],
        summarise: Callable[[list[History]], Fitted],
    ) -> list[History]:
        params = self.parameters
        n_sweeps = [params.plan.n_sweeps(chain.history, chain.n_draws) for chain in chains]
        made = [chain.history.n_sweeps for chain in chains]
        progress = None
        if params.verbose:
            progress = Progress(n_sweeps, made, params.verbose, params.plan.max_time)
        tasks = None
        if self._make_tasks is not None:
            missing = [n - m for n, m in zip(n_sweeps, made, strict=True)]
            tasks = self._make_tasks(X, missing, summarise)
        prefer = preferred_jobs(settings.emission, settings.sampler.releases_gil)
        backend = get_active_backend(prefer=prefer)[0]
        stop = StopFlag(not getattr(backend, "supports_sharedmem", False))
        monitor = Monitor(stop, progress, params.callback, tasks)
        try:
            # scikit-learn's wrapper sets warning filters in every thread, and threads that end in
            # another order than they began leave filters of other threads.
            with raised_by_interrupts(stop), warnings.catch_warnings():
                results = Parallel(n_jobs=params.n_jobs, prefer=prefer)(
                    delayed(run_chain)(chain, sequences, settings, params.plan, monitor)
                    for chain in chains
                )
        except Exception as error:
            is_interrupted = stop.is_raised()
            stop.raise_()
            # Chains of other threads write their files, and call the user's callback.
            stop.wait()
            if is_interrupted:
                # Ctrl-C may have killed a starting worker.
                raise KeyboardInterrupt from error
            if "pickle" in str(error):
                # The callback last: joblib's own backend sends some that pickle refuses.
                _name_unpicklable({**vars(settings), "callback": params.callback}, error)
            raise
        finally:
            # Other threads must not go on if this thread leaves because of an error.
            stop.raise_()
            stop.close()
            if progress is not None:
                progress.close()
        if tasks is not None:
            tasks.end()
        for chain, result in zip(chains, results, strict=True):
            # Another process's warning does not reach this process.
            if chain.file is not None and result.failure and not chain.file.failure:
                warn_caller(result.failure)
        if not any(result.history.draws for result in results):
            raise KeyboardInterrupt
        self.stopped = [result.stopped for result in results]
        return [result.history for result in results]

    def _open_files(
        self,
        checkpoint: str | os.PathLike[str],
        entropy: list[int],
        sequences: Sequences,
        settings: ModelSettings,
    ) -> tuple[list[History], list[ChainFile], list[int]]:
        """Open the files of all chains; return their histories, them and the seed."""
        params, plan, sampler = self.parameters, self.parameters.plan, settings.sampler
        sampler_params = sampler.get_params()
        # Draws do not depend on it.
        sampler_params.pop("n_jobs", None)
        # Codes do not contain the offsets of the columns.
        n_columns = sequences.codes.shape[1] - settings.emission.n_inputs
        offsets = settings.emission.columns(n_columns).offsets.tolist()
        header = Header(
            data=joblib.hash((sequences.fingerprint, offsets)),
            model=params.model_hash,
            sampler=joblib.hash((type(sampler).__name__, sampler_params)),
            start=joblib.hash((settings.init, settings.n_particles)),
            schedule=[plan.n_burnin, plan.thin, plan.store_states],
            seed=None if params.random_state is None else entropy,
            chain=0,
        )
        histories = []
        files = []
        for c, path in enumerate(chain_paths(checkpoint, params.n_chains)):
            header = replace(header, chain=c)
            file = ChainFile(path, header, params.checkpoint_interval)
            history = file.load(lambda history: plan.check(history, sequences, settings))
            history = history or plan.begin()
            # Without a random_state, the first file has the seed.
            header = file.header
            if len(history.draws) > params.n_draws:
                raise ValueError(
                    f"{path} holds {len(history.draws)} draws, more than "
                    f"n_draws={params.n_draws}.  Set n_draws to at least as many, or "
                    "pass another checkpoint."
                )
            histories.append(history)
            files.append(file)
        seed = header.seed or entropy
        for file, history in zip(files, histories, strict=True):
            file.header = replace(file.header, seed=seed)
            if len(history.draws) < params.n_draws:
                file.begin()
        return histories, files, seed

    def warn_of_stops(self, n_draws: NDArray[np.int_]) -> None:
        """Warn of chains that ended early; `n_draws` has the draws of every chain."""
        if INTERRUPTED in self.stopped:
            kept = f"draws made so far are kept: {n_draws.sum()}"
            if len(n_draws) > 1:
                kept += f" in {len(n_draws)} chains ({n_draws.min()} to {n_draws.max()} each)"
            how = "set warm_start=True and fit the same data again"
            if self.parameters.checkpoint is not None:
                how = "fit again with the same checkpoint"
            warn_caller(f"The fit was interrupted; the {kept}. To go on from there, {how}.")
        early = [c for c, reason in enumerate(self.stopped) if reason == NO_DRAW]
        if early:
            warn_caller(
                f"Chains {early} were stopped by max_time or callback before their first "
                "draw was due; the state in which they ended is their only draw. Allow "
                "more time, or set a shorter n_burnin."
            )

    def _warn_of_missing(self, X: Array, missing_rows: Flags, emission: BaseEmission) -> None:
        """Warn of data, most rows or whole columns without information on states."""
        labels = range(X.shape[1]) if self._names is None else self._names
        empty = [
            label
            for label, column in zip(labels, X.T, strict=True)
            if is_missing(column[:1]).all() and is_missing(column).all()
        ]
        if len(empty) == X.shape[1]:
            warn_caller(
                "All entries of X are missing: the draws are those of the prior. Check "
                "how X was read."
            )
        elif (lost := _share_lost(X, missing_rows)) > 0.5:
            rows, prior = "All rows of X", ": the draws are those of the prior"
            if lost < 1:
                rows = f"{100 * lost:.0f} % of the rows of X with an observation"
                prior = ""
            warn_caller(
                f"{rows} are missing for {type(emission).__name__}{prior}. With "
                'emission="autoregressive" a row is missing that does not follow `order` '
                "rows of its sequence, or follows long gaps, and with "
                'handle_unknown="missing" all symbols that are not in categories are.'
            )
        elif empty:
            warn_caller(
                f"All entries of column{'s' * (len(empty) > 1)} "
                f"{', '.join(map(repr, empty))} of X are missing, which says nothing "
                "about states. Leave them out, or check how X was read."
            )

    def _check_init(self, sequences: Sequences, emission: BaseEmission) -> str | Labels:
        init = self.parameters.init
        n_samples, known = sequences.n_steps, sequences.known_states
        if isinstance(init, str):
            check_choice("init", init, INITS)
            n_numeric = numeric_values(emission, sequences.codes).shape[1]
            if init == "kmeans" and n_numeric == 0:
                raise ValueError(
                    'init="kmeans" needs columns of numbers, but all columns of X are '
                    'symbols. Use init="auto" or "particle_filter".'
                )
            return init
        labels = as_array("init", init)
        if labels.ndim != 1:
            raise ValueError(
                f"init={init!r}; expected one of {INITS} or {n_samples} "
                "non-negative integers, one state per row of X."
            )
        if labels.dtype.kind not in "iu" or len(labels) != n_samples or labels.min() < 0:
            raise ValueError(
                f"init is an array of {len(labels)} entries of type {labels.dtype}; "
                f"expected one of {INITS} or {n_samples} non-negative integers, one "
                "state per row of X."
            )
        if known is not None and not are_matched(labels, known):
            raise ValueError(
                "init and states contradict each other: in init, the steps of every "
                "known state have to be in one state, and those of two in two."
            )
        return labels.astype(np.int64)


def transitions_for(
    emission: BaseEmission,
) -> dict[str, Callable[[], BaseTransitions]]:
    """Transitions by short name for this emission."""
    return {**TRANSITIONS, "auto": TRANSITIONS[emission.default_transitions]}


def sampler_of(emission: BaseEmission, transitions: BaseTransitions) -> BaseSampler:
    """Sampler of ``sampler="auto"`` for these recipes."""
    return auto_sampler(emission.has_lasting_states, not emission.is_categorical, transitions)


def _name_unpicklable(parameters: Mapping[str, object], error: Exception) -> None:
    """Raise TypeError with the parameter that could not be sent to other processes."""
    for name, value in parameters.items():
        try:
            pickle.dumps(value)
        except Exception as reason:
            raise TypeError(
                f"{name}={value!r:.100} cannot be sent to other processes: {reason}. "
                "Pass what can be pickled, or set n_jobs=1."
            ) from error


def _filled(
    data: _Data, labels: Sequence[str | int], emission: BaseEmission, n_values: int
) -> list[str]:
    """Warnings of gaps of columns of real numbers that were filled before the fit."""
    are_real = ~emission.columns(n_values).are_discrete
    columns = emission.columns(n_values).order[are_real]
    return describe_filled(
        data.observed[:, columns],
        data.starts,
        [labels[c] for c in columns.tolist()],
        emission.columns(n_values).periods[are_real],
    )


def _lost_rows(emission: BaseEmission, sequences: Sequences) -> Flags:
    """Mask of the rows without likelihood in a fit, which draws some missing entries."""
    codes, starts = sequences.codes, sequences.starts
    places = open_gaps(emission.make_stats(codes), starts)
    if len(places[0]):
        # Any value would do, but rows that look back use it too.
        values = codes[:, : codes.shape[1] - emission.n_inputs].copy()
        values[places] = 0.0
        codes = with_inputs(emission, values, starts, given=given_of(emission, codes))
    return emission.is_unused(codes)


def _warn_of_missing_ends(ends: Flags, n_sequences: int) -> None:
    """Warn of more missing rows at ends than the first rows that differences leave."""
    if n_sequences < ends.sum() < len(ends):
        warn_caller(
            f"{ends.sum()} rows of X, at the beginning or end of sequences, have no observed "
            "value, as rows of padding have. They belong to no segment and are not counted in "
            "summary(). Leave them out: transitions and fits take them for steps."
        )


def _warn_of_added(grown: Grown, added: Rows, ends: Flags) -> None:
    """Warn of new sequences of single rows, and of missing rows at ends, of all rows."""
    are_new = ~grown.go_on
    if are_new.any():
        n_rows = int(added.lengths[are_new].sum())
        warn_of_single_rows(n_rows, int(are_new.sum()), is_fit=False)
    _warn_of_missing_ends(ends[grown.are_added], len(added.starts))


def _last_state(record: ChainRecord, sequences: Sequences) -> tuple[ModelRecord, Integers]:
    """Model and path of the last state of a chain, without the known states."""
    arrays = record["arrays"]
    emission = arrays["emission"]
    if sequences.known_states is not None:
        emission = emission["parts"][0]
    model: ModelRecord = {
        "n_states": arrays["n_states"],
        "transitions": arrays["transitions"],
        "emission": emission,
    }
    return model, arrays["states"]


def _share_lost(X: Array, missing_rows: Flags) -> float:
    """Share of the rows with an observation that give the emission no information."""
    rows = X[missing_rows]
    n_lost = len(rows) - np.all([is_missing(column) for column in rows.T], axis=0).sum()
    return float(n_lost / (n_lost + len(X) - len(rows)))


def _noise_entropy(entropy: list[int]) -> list[int]:
    """Entropy of the noise of rounded columns."""
    root = np.random.SeedSequence(entropy).spawn(3)[2]
    return [int(word) for word in root.generate_state(4)]


def _summary(
    settings: ModelSettings,
    state: FitState,
    params: Parameters,
    columns: Columns,
    chains: list[History],
) -> Fitted:
    """Derive the fitted model from the chains' histories."""
    emission, sequences = settings.emission, state.sequences
    listed = [chain.draws for chain in chains]
    ranks = weights = None
    # The rank of a draw needs its path, and holds for data without known states.
    have_paths = replace(state, chains=chains).has_states
    if len(chains) > 1 and have_paths and sequences.known_states is None:
        ranks = chain_ranks(listed, sequences, emission, settings.transitions)
        weights = log_weights(ranks)
    draws = PosteriorDraws(listed, emission.hyperparameters, weights)
    if not draws.has_states:
        best = draws.argmax()
        # Stored separately, because draws have no paths with store_states=False.
        path = chains[best[0]].best_states
    else:
        if params.point_estimate == "map":
            index = [(c, d) for c, n in enumerate(draws.n_draws) for d in range(n)]
            best = max(
                index,
                key=lambda i: rank(draws[i], sequences, emission, settings.transitions),
            )
        else:
            best = best_draw(draws, params.point_estimate)
        path = draws[best].states
    selected = draws[best]
    if have_paths and sequences.known_states is None:
        draws.log_rank = rank(selected, sequences, emission, settings.transitions)
    first = Sequences(sequences.codes[:1], sequences.starts[:1])
    startprob, transmat = frozen_model(selected, first, emission).transition_matrix()
    fitted = FittedModel(
        draws=draws,
        best=best,
        ranks=ranks,
        labels=np.asarray(path, dtype=np.int32),
        startprob=startprob,
        transmat=transmat,
        emission=described_emission(emission, draws, selected),
        transitions=settings.transitions,
        sequences=sequences,
        given=state.given,
        columns=columns,
        entropy=state.score_entropy,
        schedule=Schedule(
            sampler=settings.sampler,
            n_burnin=np.array([chain.n_discarded for chain in chains]),
            thin=params.plan.thin,
            init=params.init,
            point_estimate=params.point_estimate,
            seconds=sum(chain.seconds for chain in chains),
        ),
    )
    if state.numbered is not None:
        fitted = renumbered(fitted, order_like(fitted, state.numbered))
    return fitted, replace(state, chains=chains)
