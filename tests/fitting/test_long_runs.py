"""Long runs: progress, callbacks, limits of time, Ctrl-C."""

from __future__ import annotations

import io
import math
import os
import pickle
import re
import signal
import sys
import threading
import time
import tracemalloc
import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
from fitting.test_reproducibility import all_draws, assert_same

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._fitting.chain import ModelSettings, begin_chain
from skihmm._fitting.progress import Progress, SweepReport
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.core._sweep_info import SweepInfo
from skihmm.emissions import HCRPCategorical
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.samplers import BlockedGibbs, StepwiseGibbs
from skihmm.transitions import HCRPTransitions

make_model = partial(
    HCRPHMM, n_burnin=10, n_draws=6, thin=3, n_chains=2, n_particles=10, random_state=3
)


@pytest.fixture(scope="module")
def reference(sequence):
    return make_model().fit(sequence)


def assert_begins(model, whole, n_draws):
    """The draws of `model` are the first ones of `whole`, so many in every chain."""
    assert list(model.draws_.n_draws) == list(n_draws)
    expected = all_draws(whole)
    found = all_draws(model)
    assert {path: expected[path] for path in found} == found


@contextmanager
def earlier_fit(sequence, **params):
    """A model with other parameters, whose fit is to fail and to leave the earlier one."""
    model = make_model().fit(sequence)
    lp = model.draws_.lp
    yield model.set_params(**params)
    assert model.draws_.lp is lp
    assert model.n_features_in_ == 1


class Recorder:
    """Keeps reports; ends a chain, or calls a function, after one of its sweeps."""

    def __init__(self, sweep=None, chain=0, action=lambda: True):
        self.sweep, self.chain, self.action = sweep, chain, action
        self.reports = []

    def __call__(self, report):
        self.reports.append(report)
        if (report.chain, report.sweep) == (self.chain, self.sweep):
            return self.action()
        return None


# -- callbacks ------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_sees_every_sweep(sequence, reference, n_jobs):
    recorder = Recorder()
    model = make_model(callback=recorder, n_jobs=n_jobs).fit(sequence)
    assert_same(model, reference)
    for c in range(2):
        reports = [report for report in recorder.reports if report.chain == c]
        assert [report.sweep for report in reports] == list(range(1, 29))
        assert {report.n_sweeps for report in reports} == {28}
        draws = [report for report in reports if report.sweep in range(13, 29, 3)]
        assert [report.n_draws for report in draws] == [1, 2, 3, 4, 5, 6]
        for name in ("n_states", "lp", "alpha", "gamma"):
            found = [getattr(report, name) for report in draws]
            np.testing.assert_allclose(found, getattr(model.draws_, name)[c], rtol=1e-12)
        seconds = [report.seconds for report in reports]
        assert seconds == sorted(seconds)
        assert seconds[0] > 0
        for report in reports:
            assert 0 < report.acceptance_rate <= 1
            assert not report.split_merge_acceptance_rate > 1


def test_callback_of_a_warm_start_counts_from_there(sequence):
    recorder = Recorder()
    model = make_model(warm_start=True, n_chains=1).fit(sequence)
    model.set_params(callback=recorder).fit(sequence)
    assert [report.sweep for report in recorder.reports] == list(range(1, 19))
    assert recorder.reports[0].n_sweeps == 18
    assert recorder.reports[-1].n_draws == 12


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_ends_a_chain(sequence, reference, n_jobs):
    recorder = Recorder(sweep=20)
    model = make_model(callback=recorder, n_jobs=n_jobs).fit(sequence)
    assert_begins(model, reference, [3, 6])
    assert max(r.sweep for r in recorder.reports if r.chain == 0) == 20
    # The rest of the estimator copes with chains of unequal length.
    draws = model.draws_
    assert draws.shape == (2, 6)
    assert np.isnan(draws.lp[0]).tolist() == [False] * 3 + [True] * 3
    assert draws.n_states[0].tolist()[3:] == [-1, -1, -1]
    assert draws.states[0, 2].min() == 0
    assert (draws.states[0, 3:] == -1).all()
    assert repr(draws).startswith("<PosteriorDraws: 2 chains x 3 to 6 draws, ")
    assert len(draws.thinned()) == 9
    assert len(draws.thinned(4)) == 4
    assert draws[0, -1].lp == draws.lp[0, 2]
    with pytest.raises(IndexError):
        draws[0, 3]
    arrays = draws.to_dict()
    assert arrays["posterior"]["states"].shape == (2, 3, 60)
    assert np.isfinite(arrays["sample_stats"]["lp"]).all()
    assert model._fitted.best[1] < draws.n_draws[model._fitted.best[0]]
    assert model.score(sequence) < 0
    model.predict(sequence)
    model.set_params(callback=None)
    assert_same(pickle.loads(pickle.dumps(model)), model)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_that_stops_an_iteration_is_an_error(sequence, n_jobs):
    def callback(report):
        next(iter(()))

    with pytest.raises(RuntimeError, match="callback raised StopIteration"):
        make_model(callback=callback, n_jobs=n_jobs).fit(sequence)


def test_the_last_draw_counts_even_if_the_callback_ends_it(sequence, reference):
    model = make_model(callback=Recorder(sweep=28)).fit(sequence)
    assert_same(model, reference)


@pytest.mark.parametrize(
    ("answer", "n_reports"),
    [(True, 1), (np.True_, 1), (False, 28), (np.False_, 28), (None, 28)]
    + [(junk, None) for junk in (1, 0, 1.0, "stop", [], np.array(True))],
)
def test_only_true_ends_a_chain(sequence, answer, n_reports):
    reports = []

    def callback(report):
        reports.append(report)
        return answer

    model = make_model(callback=callback, n_chains=1)
    if n_reports is None:
        with pytest.raises(TypeError, match=r"callback returned .*; expected True"):
            model.fit(sequence)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the chain that has no draw
        model.fit(sequence)
    assert len(reports) == n_reports


def test_callback_that_fails(sequence):
    def fail():
        raise RuntimeError("from the callback")

    with earlier_fit(sequence, callback=Recorder(sweep=20, action=fail)) as model:
        with pytest.raises(RuntimeError, match="from the callback"):
            model.fit(np.zeros((9, 2)))
        assert model.score(sequence) < 0


def test_a_fit_that_fails_ends_with_its_last_chain(sequence, reference, tmp_path):
    # Its callback is not called later, and its file not written during the next fit.
    both, events = threading.Barrier(2), []

    def callback(report):
        if report.sweep == 20:
            both.wait(10)
            if report.chain == 0:
                raise RuntimeError("from the callback")
            time.sleep(0.3)
            events.append("the other chain ends")

    model = make_model(callback=callback, n_jobs=2, checkpoint=tmp_path)
    with pytest.raises(RuntimeError, match="from the callback"):
        model.fit(sequence)
    events.append("the fit ends")
    model.set_params(callback=None).fit(sequence)
    assert events == ["the other chain ends", "the fit ends"]
    assert_same(model, reference)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_what_other_processes_cannot_get_is_named(sequence, backend, monkeypatch):
    lock = threading.Lock()
    with joblib.parallel_config(backend=backend, n_jobs=2):
        with pytest.raises(TypeError, match=r"^callback=.* cannot be sent to other"):
            make_model(callback=lambda report: lock and None).fit(sequence)

        def start(sampler):
            sampler.lock = lock

        monkeypatch.setattr(StepwiseGibbs, "check_parameters", start)
        with pytest.raises(TypeError, match=r"^sampler=.* cannot be sent to other"):
            make_model(sampler="stepwise").fit(sequence)
    with pytest.raises(TypeError, match=r"^sampler=BlockedGibbs.* cannot be copied"):
        make_model(sampler=BlockedGibbs(lock)).fit(sequence)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_callback_in_workers(sequence, reference, tmp_path, backend):
    path = tmp_path / "reports"

    # (A function of a test module could not be imported there.)
    def callback(report):
        with open(path, "a") as file:
            file.write(f"{report.chain} {report.sweep}\n")

    with joblib.parallel_config(backend=backend, n_jobs=2):
        model = make_model(callback=callback).fit(sequence)
    assert_same(model, reference)
    assert len(path.read_text().splitlines()) == 56


# -- a limit of time ------------------------------------------------------------------


def test_max_time_keeps_the_first_draws(sequence):
    # So many draws that they cannot be made in this time.
    started = time.thread_time()
    model = make_model(n_draws=10**7, thin=1, max_time=0.2).fit(sequence)
    assert 0.4 < time.thread_time() - started < 2
    assert (model.draws_.n_draws > 0).all()
    assert (np.nansum(model.draws_.seconds, axis=1) < 0.3).all()
    n_draws = model.draws_.n_draws.min()
    whole = make_model(n_draws=int(n_draws), thin=1).fit(sequence)
    np.testing.assert_array_equal(whole.draws_.lp, model.draws_.lp[:, :n_draws])


def test_max_time_that_is_enough(sequence, reference):
    assert_same(make_model(max_time=600).fit(sequence), reference)


def test_max_time_in_the_burn_in(sequence):
    model = make_model(n_burnin=10**7, max_time=0.1, warm_start=True)
    with pytest.warns(UserWarning, match=r"Chains \[0, 1\] were stopped by max_time"):
        model.fit(sequence)
    assert list(model.draws_.n_draws) == [1, 1]
    assert (model.draws_.sweep > 0).all()
    assert (model.draws_.sweep < 10**7).all()
    assert model.score(sequence) < 0
    assert model.labels_.shape == (60,)


@pytest.mark.parametrize("sweep", [1, 3, 4])
def test_a_stop_before_the_first_draw_counts_the_sweeps_so_far(sequence, sweep):
    # The burn-in ends with sweep 3: counts begin again, but not those of this draw.
    model = make_model(n_burnin=3, thin=2, callback=Recorder(sweep=sweep))
    with pytest.warns(UserWarning, match=r"Chains \[0\] were stopped"):
        model.fit(sequence)
    assert model.draws_.acceptance_rate[0, 0] == 1


def test_a_stop_in_the_burn_in_and_a_warm_start(sequence, reference):
    model = make_model(warm_start=True, callback=Recorder(sweep=7))
    with pytest.warns(UserWarning, match=r"Chains \[0\] were stopped"):
        model.fit(sequence)
    assert list(model.draws_.n_draws) == [1, 6]
    # The burn-in goes on, and then come the draws that were to come, without its state.
    model.set_params(callback=None).fit(sequence)
    assert list(model.draws_.n_draws) == [6, 12]
    np.testing.assert_array_equal(model.draws_.lp[0, :6], reference.draws_.lp[0])
    np.testing.assert_array_equal(model.draws_.lp[1, :6], reference.draws_.lp[1])


# -- Ctrl-C ---------------------------------------------------------------------------


def sends_interrupt(at, times=1):
    """Callback that sends this process the signal of Ctrl-C after a sweep of chain 0."""
    pid = os.getpid()

    def callback(report):
        if (report.chain, report.sweep) == (0, at):
            for _ in range(times):
                os.kill(pid, signal.SIGINT)
                # The main thread of that process has to get at it.
                time.sleep(0.2)

    return callback


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_draws(sequence, reference, n_jobs):
    model = make_model(callback=sends_interrupt(21), n_jobs=n_jobs, warm_start=True)
    with pytest.warns(UserWarning, match="The fit was interrupted; the draws"):
        model.fit(sequence)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    n_draws = model.draws_.n_draws
    assert n_draws[0] == 3
    assert n_draws[1] <= 6
    assert_begins(model, reference, n_draws)
    model.predict(sequence)
    assert model.score(sequence) < 0
    # To go on is to go on as if nothing had happened.
    model.set_params(callback=None, n_draws=7).fit(sequence)
    longer = make_model(n_draws=int(model.draws_.n_draws.max())).fit(sequence)
    assert_begins(model, longer, n_draws + 7)


def test_interrupt_stops_loky(sequence, reference):
    model = make_model(callback=sends_interrupt(21), n_draws=10**6)
    with (
        joblib.parallel_config(backend="loky", n_jobs=2),
        pytest.warns(UserWarning, match="The fit was interrupted"),
    ):
        model.fit(sequence)
    assert model.draws_.n_draws[0] == 3
    np.testing.assert_array_equal(model.draws_.lp[0, :3], reference.draws_.lp[0, :3])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_before_the_first_draw(sequence, n_jobs):
    params = {"callback": sends_interrupt(5), "n_burnin": 10**7, "n_jobs": n_jobs}
    with earlier_fit(sequence, **params) as model, pytest.raises(KeyboardInterrupt):
        model.fit(np.zeros((9, 2)))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextmanager
def interrupted_soon():
    """Send the signal of Ctrl-C after a while; it has to be obeyed within two seconds."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - sent[0] < 2
    finally:
        timer.cancel()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def long_data():
    return np.random.default_rng(0).integers(30, size=(60_000, 1))


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_interrupt_in_the_start(sequence, backend):
    # The particle filter takes about 20 seconds.
    with (
        earlier_fit(sequence, n_particles=1000) as model,
        joblib.parallel_config(backend=backend, n_jobs=2),
    ):
        make_model().fit(sequence)  # so that loky's workers have been started
        with interrupted_soon():
            model.fit(long_data())


def test_interrupt_in_partial_fit(sequence):
    with earlier_fit(sequence) as model, interrupted_soon():
        # Before the first draw.
        model.set_params(n_burnin=100_000).partial_fit(long_data() % 5)


def test_interrupt_in_sample(sequence):
    # Ten seconds of work or more, after half a second in which NumPy cannot be stopped.
    model = make_model().fit(sequence)
    with interrupted_soon():
        model.sample(5 * 10**7)


def test_a_flag_seen_in_the_start_changes_nothing():
    asked = []

    def is_stopped():
        asked.append(True)
        return False

    codes = np.random.default_rng(0).integers(30, size=(10_000, 1))
    found = [
        filter_particles(
            categorical_stats(codes, [30], 1.0),
            [0],
            RandomStream(np.random.SeedSequence(1)),
            n_particles=100,
            is_stopped=ask,
        )
        for ask in (None, is_stopped)
    ]
    assert len(asked) > 1
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"n_chains": 1},
            "The fit was interrupted; the draws made so far are kept: 3. To go on from "
            "there, set warm_start=True and fit the same data again.",
        ),
        (
            {"checkpoint": "run"},
            "The fit was interrupted; the draws made so far are kept: 3 in 2 chains (0 "
            "to 3 each). To go on from there, fit again with the same checkpoint.",
        ),
    ],
)
def test_words_of_an_interrupt(sequence, tmp_path, monkeypatch, params, message):
    monkeypatch.chdir(tmp_path)
    model = make_model(callback=sends_interrupt(21), **params)
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        model.fit(sequence)


def test_second_interrupt_ends_at_once(sequence):
    params, before = {"callback": sends_interrupt(20, times=2), "n_jobs": 2}, threading.enumerate()
    with earlier_fit(sequence, **params) as model, pytest.raises(KeyboardInterrupt):
        model.fit(sequence)
    # A thread that ends after the fit would set warning filters in the test that follows.
    for thread in {*threading.enumerate()}.difference(before):
        thread.join(timeout=5)


def test_error_after_an_interrupt(sequence):
    # As when the signal reaches a worker that is about to start.
    def fail():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        raise RuntimeError("a worker has died")

    with (
        earlier_fit(sequence, callback=Recorder(sweep=20, action=fail)) as model,
        pytest.raises(KeyboardInterrupt) as caught,
    ):
        model.fit(sequence)
    assert str(caught.value.__cause__) == "a worker has died"


def test_interrupt_by_somebody_elses_handler(sequence, reference):
    # Whatever raises KeyboardInterrupt inside a chain keeps its draws too.
    def interrupt():
        raise KeyboardInterrupt

    model = make_model(callback=Recorder(sweep=24, action=interrupt), warm_start=True)
    handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with pytest.warns(UserWarning, match="interrupted"):
            model.fit(sequence)
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert_begins(model, reference, [4, 0])
    assert model.draws_.to_dict()["posterior"]["alpha"].shape == (1, 4)
    model.set_params(callback=None).fit(sequence)
    assert_begins(model, make_model(n_draws=10).fit(sequence), [10, 6])


def test_fit_in_another_thread(sequence, reference):
    # Only the main thread gets signals.
    models = []
    thread = threading.Thread(target=lambda: models.append(make_model().fit(sequence)))
    thread.start()
    thread.join()
    assert_same(models[0], reference)


# -- progress -------------------------------------------------------------------------

REPORT = SweepReport(
    chain=0,
    sweep=5,
    n_sweeps=20,
    n_draws=0,
    n_states=7,
    lp=-123.45,
    alpha=1.0,
    gamma=1.0,
    acceptance_rate=0.987,
    split_merge_acceptance_rate=math.nan,
    run_split_merge_acceptance_rate=math.nan,
    seconds=0.5,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Function that makes standard output a terminal, and returns it."""

    def start(columns=200):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", Terminal())
        return sys.stdout

    return start


def last_picture(text):
    return text.rstrip("\n").rsplit("\r", 1)[-1]


BAR = re.compile(r"100 % \|#{14}\| 0 s left, (\d+)/(\d+) sweeps, \d+(-\d+)? states *")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bar(sequence, terminal, n_jobs, reference):
    screen = terminal()
    model = make_model(verbose=1, n_jobs=n_jobs).fit(sequence)
    assert_same(model, reference)
    text = screen.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert re.match(r"\r  0 % \| {14}\| searching a start", text)
    assert BAR.fullmatch(last_picture(text)).groups()[:2] == ("56", "56")


def test_bar_of_a_run_that_goes_on(sequence, terminal):
    model = make_model(warm_start=True, n_chains=1).fit(sequence)
    screen = terminal()
    model.set_params(verbose=True).fit(sequence)
    assert BAR.fullmatch(last_picture(screen.getvalue())).groups()[0] == "18"


def test_bar_fits_the_terminal(terminal):
    screen = terminal(40)
    progress = Progress([20, 20], [0, 0], 1, math.inf)
    progress.show(REPORT)
    assert len(last_picture(screen.getvalue())) == 39


def test_time_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    progress = Progress([20, 20], [0, 10], 1, math.inf)
    assert progress._left([0, 1]) == math.inf
    now[0] = 102.0
    # Ten sweeps of a chain in two seconds; twenty are left over both.
    progress.is_due(0, 10, 20, 0.5)
    assert progress._left([0, 1]) == pytest.approx(4.0)
    assert progress._left([0]) == pytest.approx(2.0)
    assert progress._left([]) == 0.0
    # A chain that may use no more than a second of CPU time, half of which is gone.
    progress = Progress([1000], [0], 1, 1.0)
    now[0] = 104.0
    progress.is_due(0, 10, 1000, 0.5)
    assert progress._left([0]) == pytest.approx(2.0)


def test_the_speed_is_the_speed_of_the_last_seconds(monkeypatch):
    """Neither of the start, which takes long, nor of slow sweeps in the beginning."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    progress = Progress([1000, 1000], [0, 0], 1, math.inf)
    progress.begin_search(0)
    now[0] += 60.0
    progress.begin_sweeps(0)
    for sweep in range(1, 31):  # a second each, then a tenth
        now[0] += 1.0 if sweep <= 10 else 0.1
        progress.is_due(0, sweep, 1000, 0.0)
        progress.show(replace(REPORT, sweep=sweep, n_sweeps=1000))
    assert progress._left([0]) == pytest.approx(970 * 12 / 30, rel=0.1)
    for sweep in range(31, 201):
        now[0] += 0.1
        progress.is_due(0, sweep, 1000, 0.0)
        progress.show(replace(REPORT, sweep=sweep, n_sweeps=1000))
    assert progress._left([0]) == pytest.approx(80.0, rel=0.05)
    # The other chain searches a start, too.
    assert progress._left([0, 1]) == pytest.approx(80.0 + 100.0 + 60.0, rel=0.05)


def test_lines_have_at_most_80_columns(terminal, capsys):
    screen = terminal()
    progress = Progress([600_000] * 4, [0] * 4, 1, math.inf)
    for chain, n_states in enumerate((342, 361)):
        progress.is_due(chain, 123_456, 600_000, 0.0)
        progress.show(replace(REPORT, chain=chain, n_states=n_states))
    progress._history[0] = (progress._history[0][0] - 800 * 60, (0, 0, 0, 0))
    progress._draw_bar()
    line = last_picture(screen.getvalue()).rstrip()
    pattern = r" 10 % \|# {13}\| \d{3} h \d+ min left, 246912/2400000 sweeps, 342-361 states"
    assert re.fullmatch(pattern, line)
    assert len(line) <= 80


def test_a_copy_in_another_process_writes_lines(terminal):
    screen = terminal()
    progress = Progress([20], [0], 1, math.inf)
    progress._done[0] = 5
    pickle.loads(pickle.dumps(progress)).show(REPORT)
    assert re.match(r"chain 0:  25 % .*sweep 5/20, 7 states\n", screen.getvalue())


def test_lines_once_a_second(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    progress = Progress([100, 100], [0, 0], 1, math.inf)
    due = []
    for sweep in range(1, 17):
        now[0] += 0.25
        due.append(progress.is_due(0, sweep, 100, 0.0))
    assert np.flatnonzero(due).tolist() == [3, 7, 11, 15]
    # Lines are counted by chain, and its last one is always due.
    assert progress.is_due(1, 1, 100, 0.0)
    assert not progress.is_due(1, 2, 100, 0.0)
    assert progress.is_due(1, 100, 100, 0.0)


# -- scikit-learn's callbacks ---------------------------------------------------------


class TaskRecorder:
    """A callback of scikit-learn's kind."""

    def __init__(self):
        self.events, self.scores, self.stop_at = [], [], None
        self.n_set_up = self.n_torn_down = 0

    def setup(self, estimator, context):
        self.n_set_up += 1

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.events.append(("end", context.task_name, context.task_id))
        if context.task_name == "sweep":
            self.scores.append(fitted_estimator.score(X))
            assert fitted_estimator.draws_.shape == (1, 1)
            return context.task_id == self.stop_at
        return None

    def teardown(self, estimator, context):
        self.n_torn_down += 1


@pytest.fixture
def recorder():
    pytest.importorskip("sklearn.callback")
    return TaskRecorder()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sklearn_callbacks(sequence, n_jobs, recorder):
    model = make_model(n_burnin=2, n_draws=2, n_jobs=n_jobs)
    whole = make_model(n_burnin=2, n_draws=2).fit(sequence)
    model.set_callbacks(recorder).fit(sequence)
    assert_same(model, whole)
    assert recorder.n_set_up == recorder.n_torn_down == 1
    begun = [event[1:] for event in recorder.events if event[0] == "begin"]
    ended = [event[1:] for event in recorder.events if event[0] == "end"]
    expected = [("fit", 0), ("chain", 0), ("chain", 1)]
    expected += [("sweep", sweep) for sweep in range(8) for _ in range(2)]
    assert sorted(begun) == sorted(ended) == sorted(expected)
    assert len(set(recorder.scores)) > 1


def test_sklearn_callbacks_of_partial_fit(sequence, recorder):
    model = make_model(n_burnin=2, n_draws=2).set_callbacks(recorder)
    for call in (1, 2):
        model.partial_fit(sequence)
        assert recorder.n_set_up == recorder.n_torn_down == call
        assert sum(event[:2] == ("begin", "sweep") for event in recorder.events) == (16 * call)


def test_sklearn_callbacks_get_the_contexts(sequence, recorder):
    X = np.hstack([sequence, np.arange(len(sequence))[:, None] % 2])
    model = make_model(n_burnin=1, n_draws=1, transitions=HCRPTransitions(context_features=[1]))
    model.set_callbacks(recorder).fit(X)
    assert len(recorder.scores) == 2 * (1 + model.thin)
    model.partial_fit(X)
    assert len(recorder.scores) == 4 * (1 + model.thin)


def test_sklearn_callbacks_end_a_chain(sequence, reference, recorder):
    recorder.stop_at = 19
    model = make_model().set_callbacks(recorder).fit(sequence)
    assert_begins(model, reference, [3, 3])


def test_sklearn_callbacks_are_torn_down_after_an_error(sequence, recorder):
    def fail():
        raise RuntimeError

    model = make_model(callback=Recorder(sweep=3, action=fail)).set_callbacks(recorder)
    with pytest.raises(RuntimeError):
        model.fit(sequence)
    assert recorder.n_torn_down == 1


def peak(function):
    """Its result, and the most bytes of Python and NumPy at a time."""
    tracemalloc.start()
    try:
        return function(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_starts_and_draws(monkeypatch):
    """Beside the chain one path of four bytes a step at a time, others of one byte."""
    n_steps = 60_000
    # What does not depend on the number of steps would hide the rest.
    monkeypatch.setattr("skihmm._data.validation.CHUNK_ROWS", 1000)
    monkeypatch.setattr("skihmm._fitting.starts.PIECE", 50)
    monkeypatch.setattr("skihmm._fitting.starts.CHUNK", 1000)
    X = np.random.default_rng(0).integers(3, size=(n_steps, 1))
    emission = HCRPCategorical().fit(X)
    codes, starts = emission.encode_values(X), np.zeros(1, dtype=np.intp)
    settings = ModelSettings(StepwiseGibbs(), emission, HCRPTransitions(), "auto", 10)

    def start(n_steps):
        seed = np.random.SeedSequence(0)
        return begin_chain(Sequences(codes[:n_steps], starts), settings, seed)

    start(2000)  # tables that are kept
    chain, at_start = peak(lambda: start(n_steps))
    draw, at_draw = peak(lambda: chain.draw(SweepInfo()))
    assert at_start < 9 * n_steps
    assert at_draw < 7 * n_steps
    assert draw.states.nbytes == n_steps
    # Codes, labels, two hints of cells, and where sequences begin.
    assert chain.state.n_bytes() < 17.5 * n_steps


def test_the_time_left_of_a_chain_is_its_own(monkeypatch):
    """Chains in turn: the speed of one chain begins with its first sweep."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    shown = Progress([200, 200], [100, 100], 1, math.inf)
    reports = [replace(REPORT, chain=chain) for chain in (0, 1)]
    for sweep in range(101, 201):
        now[0] += 0.1
        if shown.is_due(0, sweep, 200, now[0]):
            shown.show(reports[0])
    shown.begin_sweeps(1)
    for sweep in range(101, 151):
        now[0] += 0.1
        if shown.is_due(1, sweep, 200, now[0]):
            shown.show(reports[1])
    assert shown._left([1]) == pytest.approx(5, rel=0.1)
