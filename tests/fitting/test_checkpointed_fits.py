"""Fits that save themselves: resumed, killed, and files that are not theirs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import joblib
import numpy as np
import pytest
from fitting.test_reproducibility import assert_same

from skihmm import HCRPHMM
from skihmm._fitting import chain_file as _chain_file
from skihmm._fitting import run as _run
from skihmm._fitting.checkpoint import load, save
from skihmm.samplers import BlockedBeam, StickBreakingGibbs
from skihmm.transitions import HCRPTransitions

SAMPLERS = ["auto", BlockedBeam(5, 1.5, 1.5), StickBreakingGibbs()]


def make_model(path=None, **params):
    short = {
        "n_burnin": 10,
        "n_draws": 6,
        "thin": 3,
        "n_particles": 10,
        "random_state": 3,
        "checkpoint": path,
        "checkpoint_interval": 0,
    }
    return HCRPHMM(**{**short, **params})


class EndsAt:
    """Callback that ends a fit after a sweep of a chain, by an error or an answer."""

    def __init__(self, sweep, chain=0, error=None):
        self.sweep, self.chain, self.error = sweep, chain, error

    def __call__(self, report):
        if (report.chain, report.sweep) != (self.chain, self.sweep):
            return False
        if self.error is not None:
            raise self.error
        return True


@contextmanager
def quiet():
    """Without the warning that a fit was stopped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("sweep", [1, 7, 9, 10, 13, 15, 16, 17, 27])
def test_a_failed_fit_goes_on(sequence, path, sampler, sweep):
    whole = make_model(sampler=sampler).fit(sequence)
    error = RuntimeError("a disaster")
    with pytest.raises(RuntimeError, match="disaster"):
        make_model(path, sampler=sampler, callback=EndsAt(sweep, error=error)).fit(sequence)
    # At most the sweeps since the chain's last record are lost.
    n_kept = load(path, "chain")["history"]["record"]["n_sweeps"]
    assert sweep - 8 <= n_kept <= sweep
    first = []
    model = make_model(path, sampler=sampler, callback=lambda r: first.append(r.sweep))
    assert_same(model.fit(sequence), whole)
    assert first[0] == n_kept + 1
    assert model.score(sequence) == whole.score(sequence)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("store_states", [True, False])
def test_several_chains_in_a_folder(sequence, tmp_path, n_jobs, store_states):
    params = {"n_chains": 3, "store_states": store_states}
    whole = make_model(**params).fit(sequence)
    folder = tmp_path / "new" / "folder"
    model = make_model(folder, n_jobs=n_jobs, **params)
    error = KeyboardInterrupt
    with quiet(), suppress(error):
        model.set_params(callback=EndsAt(20, chain=1, error=error)).fit(sequence)
    model = make_model(folder, **params).fit(sequence)
    assert_same(model, whole)
    assert sorted(os.listdir(folder)) == [f"chain-{c}.npz" for c in range(3)]
    # All is done: nothing is sampled again, and nothing is written.
    before = [(folder / name).stat().st_mtime_ns for name in os.listdir(folder)]

    def must_not_sweep(report):
        raise AssertionError(report)

    again = make_model(folder, callback=must_not_sweep, **params).fit(sequence)
    assert_same(again, whole)
    assert before == [(folder / name).stat().st_mtime_ns for name in os.listdir(folder)]
    # More chains, and more draws of each.
    params["n_chains"] = 4
    longer = make_model(folder, n_draws=8, **params).fit(sequence)
    assert_same(longer, make_model(n_draws=8, **params).fit(sequence))


def test_missing_values_and_sequences(sequence, tmp_path):
    X = np.column_stack([sequence[:, 0], sequence[:, 0] % 3]).astype(float)
    X[::7, 1] = np.nan
    groups = np.repeat([0, 1, 2], 20)
    params = {"emission": "dirichlet", "transitions": HCRPTransitions(concentration_prior=None)}
    whole = make_model(**params).fit(X, groups=groups)
    make_model(tmp_path, callback=EndsAt(18), **params).fit(X, groups=groups)
    assert_same(make_model(tmp_path, **params).fit(X, groups=groups), whole)


def test_a_stop_in_the_burn_in_goes_on(sequence, path):
    model = make_model(path, callback=EndsAt(9))
    with pytest.warns(UserWarning, match="before their first draw"):
        model.fit(sequence)
    assert list(model.draws_.n_draws) == [1]
    assert_same(make_model(path).fit(sequence), make_model().fit(sequence))


def test_max_time_counts_what_went_before(sequence, path):
    params = {"n_draws": 10**7, "thin": 1}
    make_model(path, max_time=0.1, **params).fit(sequence)
    n_draws = len(load(path, "chain")["history"]["draws"])
    # The time is over: one more sweep tells.
    model = make_model(path, max_time=0.1, **params).fit(sequence)
    assert n_draws <= model.draws_.n_draws[0] <= n_draws + 1


def test_max_time_counts_the_start(sequence, monkeypatch):
    seconds = [0.0]

    begin_chain = _run.begin_chain

    def begin_slowly(*args):
        seconds[0] += 10.0
        return begin_chain(*args)

    monkeypatch.setattr(_run, "begin_chain", begin_slowly)
    monkeypatch.setattr(_run.time, "thread_time", lambda: seconds[0])
    model = make_model(n_burnin=0, thin=1, max_time=9.0)
    assert list(model.fit(sequence).draws_.n_draws) == [1]
    assert list(model.set_params(max_time=11.0).fit(sequence).draws_.n_draws) == [6]


def test_without_a_seed(sequence, tmp_path):
    # The first file brings the seed along.
    model = make_model(tmp_path, random_state=None, n_chains=2)
    with quiet():
        model.set_params(callback=EndsAt(14, chain=1)).fit(sequence)
    lp = model.draws_.lp
    again = make_model(tmp_path, random_state=None, n_chains=2).fit(sequence)
    np.testing.assert_array_equal(again.draws_.lp[0], lp[0])
    assert again.score(sequence) == make_model(tmp_path, random_state=None, n_chains=2).fit(
        sequence
    ).score(sequence)
    other = make_model(tmp_path / "other", random_state=None, n_chains=2).fit(sequence)
    assert not np.array_equal(other.draws_.lp, again.draws_.lp)


def test_interval(sequence, path, monkeypatch):
    now, writes = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slow_save(*args):
        writes.append(now[0])
        save(*args)
        now[0] += 0.5

    def tick(report):
        now[0] += 1.0

    monkeypatch.setattr(_chain_file, "save", slow_save)
    params = {"n_draws": 30, "thin": 1, "callback": tick}
    make_model(path, checkpoint_interval=20, **params).fit(sequence)
    # At the start, when due, at a record (every 8 sweeps), and at the end.
    assert writes == [0, 24.5, 41]
    del writes[:]
    make_model(path.with_name("b.npz"), checkpoint_interval=0, **params).fit(sequence)
    # Half a second for writing: then ten seconds must pass.
    assert np.diff(writes[1:-1]).min() >= 10


def test_warm_start_and_checkpoint(sequence, path):
    model = make_model(path, warm_start=True).fit(sequence)
    with pytest.raises(ValueError, match="one of them has to be left out"):
        model.fit(sequence)
    model.set_params(checkpoint=None).fit(sequence)
    assert_same(model, make_model(n_draws=12).fit(sequence))


def test_a_link_stays_one(sequence, path):
    target = path.with_name("target")
    path.symlink_to("target")
    whole = make_model().fit(sequence)
    make_model(path, callback=EndsAt(20)).fit(sequence)
    assert_same(make_model(path).fit(sequence), whole)
    assert path.is_symlink()
    assert len(load(target, "chain")["history"]["draws"]) == 6
    assert sorted(os.listdir(path.parent)) == ["run.npz", "target"]


# -- writes that fail -----------------------------------------------------------------


def test_a_wrong_path_fails_before_sampling(sequence, tmp_path):
    def must_not_sweep(report):
        raise AssertionError(report)

    (tmp_path / "file").write_text("")
    # The name of the unfinished file is too long for any file system.
    for name, message in (
        ("x" * 240 + ".npz", r"The checkpoint .* cannot be written: File name too long"),
        ("file/folder", "this folder cannot be made: Not a directory"),
        ("x" * 300 + ".npz", r"^checkpoint='.*x.npz': File name too long.  Pass another"),
        ("x" * 300, "^checkpoint='.*x': File name too long"),
        ("a\0b.npz", r"^checkpoint='.*a\\x00b.npz': embedded null byte"),
    ):
        model = make_model(tmp_path / name, callback=must_not_sweep)
        with pytest.raises(ValueError, match=message):
            model.fit(sequence)


def test_a_folder_that_cannot_be_written(sequence, tmp_path):
    folder = tmp_path / "run"
    make_model(folder, callback=EndsAt(20)).fit(sequence)
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("the superuser may write anywhere")
        with pytest.raises(ValueError, match="cannot be written: Permission denied"):
            make_model(folder).fit(sequence)
    finally:
        folder.chmod(0o700)


def test_the_file_is_there_before_the_first_sweep(sequence, path):
    def keep(report):
        if report.sweep == 1:
            first.append(path.read_bytes())

    # It brings the seed of a run that was killed so early.
    first = []
    params = {"random_state": None, "checkpoint_interval": 1e6}
    whole = make_model(path, callback=keep, **params).fit(sequence)
    path.write_bytes(first[0])
    assert load(path, "chain")["history"] is None
    assert_same(make_model(path, **params).fit(sequence), whole)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_folder_is_removed(sequence, tmp_path, backend):
    folder = tmp_path / "run"

    ready = tmp_path / "ready"

    def wait_until(is_done):
        end = time.monotonic() + 60
        while not is_done() and time.monotonic() < end:
            time.sleep(0.01)

    def remove(report):
        # While both chains are between two writes.
        if report.sweep == 12 and report.chain == 0:
            wait_until(ready.exists)
            shutil.rmtree(folder)
        elif report.sweep == 12:
            ready.touch()
            wait_until(lambda: not folder.exists())

    model = make_model(folder, n_chains=2, callback=remove)
    with (
        joblib.parallel_config(backend=backend, n_jobs=2),
        pytest.warns(UserWarning, match="No such file or directory") as caught,
    ):
        model.fit(sequence)
    # Once for every chain.
    assert sorted({str(warning.message) for warning in caught}) == [
        f"The checkpoint {folder}/chain-{c}.npz cannot be written: No such file or "
        "directory.  The fit goes on and keeps its draws; it tries again when the next "
        "write is due, and at the end."
        for c in range(2)
    ]
    assert len(caught) == 2
    assert_same(model, make_model(n_chains=2).fit(sequence))


# NumPy 1.26 leaves its archive to the garbage collector if it cannot be written.
@pytest.mark.filterwarnings("ignore:Exception ignored in. .*ZipFile.__del__")
def test_a_full_disk(sequence, path, monkeypatch):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(_chain_file, "PAUSE", 0)

    def fill(report):
        # Full after sweep 12, and when it says so in the end not any more.
        limit = 100 if 12 <= report.sweep < 24 else before[0]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))

    try:
        with pytest.warns(UserWarning, match="cannot be written: File too large") as all_:
            model = make_model(path, callback=fill).fit(sequence)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(all_) == 1
    assert_same(model, make_model().fit(sequence))
    assert os.listdir(path.parent) == ["run.npz"]
    assert len(load(path, "chain")["history"]["draws"]) == 6


# -- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampler": "slice"}, "it differs in sampler"),
        ({"sampler__split_merge_rate": 3}, "sampler"),
        ({"emission": "dirichlet"}, "emission or transitions"),
        ({"transitions__alpha": 2.0}, "emission or transitions"),
        ({"init": "single"}, "init"),
        ({"n_particles": 11}, "n_particles"),
        ({"n_burnin": 11}, "n_burnin"),
        ({"thin": 2}, "thin"),
        ({"store_states": False}, "store_states"),
        ({"random_state": 4}, "random_state"),
        ({"random_state": 4, "thin": 2}, "thin or store_states; random_state"),
        ({"n_draws": 5}, "holds 6 draws, more than n_draws=5"),
        ({"n_chains": 2}, "is one file, but n_chains=2"),
    ],
)
def test_another_run(sequence, path, change, message):
    make_model(path).fit(sequence)
    before = path.read_bytes()
    model = make_model().fit(sequence)
    lp = model.draws_.lp
    model.set_params(checkpoint=path, **change)
    with pytest.raises(ValueError, match=message):
        model.fit(sequence)
    assert path.read_bytes() == before
    assert model.draws_.lp is lp


def test_other_data(sequence, path):
    make_model(path).fit(sequence)
    for X, groups in (
        (sequence[:-1], None),
        (sequence, np.repeat([0, 1], 30)),
        (sequence[::-1], None),
    ):
        with pytest.raises(ValueError, match="it differs in X"):
            make_model(path).fit(X, groups=groups)


def test_files_of_other_chains(sequence, tmp_path):
    make_model(tmp_path, n_chains=2).fit(sequence)
    os.replace(tmp_path / "chain-1.npz", tmp_path / "chain-0.npz")
    with pytest.raises(ValueError, match="the number of the chain"):
        make_model(tmp_path, n_chains=2).fit(sequence)


def test_paths(sequence, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.npz").mkdir()
    for name, message in (
        ("file", "is a file whose name does not end in .npz"),
        ("folder.npz", "is a folder whose name ends in .npz"),
        ("nowhere/run.npz", "there is no folder"),
    ):
        with pytest.raises(ValueError, match=message):
            make_model(tmp_path / name).fit(sequence)
    make_model(str(tmp_path / "text.npz")).fit(sequence)
    assert (tmp_path / "text.npz").is_file()


def test_two_runs_with_one_file(sequence, path):
    # The second one goes on from the file while the first one is running.
    def run_another(report):
        if report.sweep == 12:
            with pytest.raises(ValueError, match="it differs in random_state"):
                make_model(path, random_state=8).fit(sequence)
            whole.append(make_model(path).fit(sequence))

    whole = []
    with pytest.raises(ValueError, match="changed by another process"):
        make_model(path, checkpoint_interval=1e6, callback=run_another).fit(sequence)
    assert_same(make_model(path).fit(sequence), whole[0])


def test_another_version(sequence, path, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(_chain_file, "__version__", "0.0.1")
        make_model(path, callback=EndsAt(20)).fit(sequence)
    with pytest.warns(UserWarning, match="written by skihmm 0.0.1"):
        make_model(path).fit(sequence)


def mutations(content):
    """Contents of a file that are wrong in one place each, with their names."""

    def visit(value, replace, name):
        if isinstance(value, dict):
            for key in value:
                yield from visit(
                    value[key], lambda new, key=key: replace({**value, key: new}), f"{name}.{key}"
                )
                without = {k: v for k, v in value.items() if k != key}
                yield f"{name} without {key}", replace(without)
        elif isinstance(value, list):
            for i in range(min(len(value), 2)):
                yield from visit(
                    value[i],
                    lambda new, i=i: replace([*value[:i], new, *value[i + 1 :]]),
                    f"{name}[{i}]",
                )
            yield f"{name} shorter", replace(value[:-1])
        elif isinstance(value, np.ndarray):
            for new in ("text", None, 1, [1, 2], {}, value.astype("M8[s]")):
                yield f"{name} = {new!r}", replace(new)
            yield f"{name} shorter", replace(value[:-1])
            yield f"{name} as text", replace(value.astype("U"))
            yield f"{name} as floats", replace(value + 0.5)
            yield f"{name} twice as deep", replace(np.stack([value, value]))
            if value.size:
                for new in (-1, 10**6, 2**31, 2**40):
                    changed = value.astype(np.int64)
                    changed[value.size // 2] = new
                    yield f"{name} with {new}", replace(changed)
        else:
            for new in ("text", None, -1, float("nan"), 2**70, [], {}):
                yield f"{name} = {new!r}", replace(new)

    yield from visit(content, lambda new: new, "")


def test_whatever_is_changed(sequence, path, tmp_path):
    make_model(path, n_draws=2, callback=EndsAt(14)).fit(sequence)
    content = load(path, "chain")
    broken = tmp_path / "broken.npz"
    n_refused = n_harmless = 0
    for name, changed in mutations(content):
        if not isinstance(changed, dict):
            continue
        save(broken, "chain", changed)
        before = broken.read_bytes()
        try:
            with quiet():
                model = make_model(broken, n_draws=2).fit(sequence)
        except ValueError as error:
            message = str(error)
        else:
            # Harmless (a number of seconds, say): what it holds can be used.
            assert np.isfinite(model.score(sequence)), name
            n_harmless += 1
            continue
        assert "broken.npz" in message, name
        assert broken.read_bytes() == before, name
        n_refused += 1
    assert n_refused > 5 * n_harmless > 0


def test_seconds_beyond_all_floats(sequence, path):
    make_model(path, n_draws=2, callback=EndsAt(14)).fit(sequence)
    content = load(path, "chain")
    content["history"]["seconds"] = 2**2000
    save(path, "chain", content)
    with pytest.raises(ValueError, match=r"does not hold a chain on this data: .* a number >= 0"):
        make_model(path, n_draws=2).fit(sequence)


def test_an_empty_path_is_refused(sequence):
    with pytest.raises(ValueError, match=r"checkpoint=''; expected the path .* current folder"):
        make_model("").fit(sequence)


# -- kill -9 --------------------------------------------------------------------------

KILLED = """
import itertools, json, os, random, signal, sys
import numpy as np
from skihmm import HCRPHMM
from skihmm._fitting import chain_file as _chain_file
from skihmm.datasets import make_automaton_sequence

_chain_file.PAUSE = 0  # always writing, so that many a kill comes while it does
folder, n_kills = sys.argv[1], int(sys.argv[2])
X, _ = make_automaton_sequence(300, random_state=0)

def fit(checkpoint):
    return HCRPHMM(
        n_burnin=100, n_draws=6 * n_kills, thin=2, n_chains=2, n_particles=20,
        random_state=1, checkpoint=checkpoint, checkpoint_interval=0,
    ).fit(X)

def die_after(n_calls):
    # Counted in calls, not seconds: the same moments on every machine, busy or not.
    left = itertools.count(n_calls, -1)
    def count(frame, event, argument):
        if next(left) <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(count)

rng = random.Random(2)
n_killed = 0
sizes, unfinished = set(), set()
while n_killed < n_kills:
    # The whole fit, 94 % of it writing, is about 28,000 * n_kills**2 calls.
    n_calls = rng.randrange(28_000 * n_kills)
    pid = os.fork()
    if pid == 0:
        die_after(n_calls)
        fit(folder)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        break
    n_killed += 1
    names = os.listdir(folder) if os.path.isdir(folder) else []
    unfinished.update(name for name in names if name.endswith(".unfinished"))
    sizes.add(sum(os.path.getsize(os.path.join(folder, name))
                  for name in names if name.endswith(".npz")))
resumed, whole = fit(folder), fit(None)
same = all(
    getattr(resumed.draws_, name).tobytes() == getattr(whole.draws_, name).tobytes()
    for name in ("lp", "n_states", "n_tables", "alpha", "gamma", "states",
                 "acceptance_rate", "split_merge_acceptance_rate")
)
print(json.dumps({
    "n_killed": n_killed, "same": same, "n_sizes": len(sizes),
    "n_unfinished": len(unfinished),
    "score": [resumed.score(X[:50]), whole.score(X[:50])],
    "files": sorted(os.listdir(folder)),
}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 50])
def test_killed_at_many_moments(n, tmp_path):
    folder = tmp_path / "run"
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(n)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n_killed"] == n
    # The kills came while the run was making progress, not before it had begun.
    assert found["n_sizes"] > n / 5
    assert found["n_unfinished"] > n / 5
    assert found["same"]
    assert found["score"][0] == found["score"][1]
    assert [Path(name).suffix for name in found["files"]][-2:] == [".npz", ".npz"]


# -- the main process is killed -------------------------------------------------------

MAIN = """
import os, sys, time
import joblib
from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence

X, _ = make_automaton_sequence(300, random_state=0)

def note(name):
    with open(name, "a") as file:
        file.write(f"{os.getpid()}\\n")

class Callback:
    # Its copy in a worker is made when the worker unpickles a task.
    def __init__(self, main, is_early):
        self.arguments = main, is_early

    def __reduce__(self):
        return unpickled, self.arguments

    def __call__(self, report):
        if report.sweep == 1:
            note("sweeping")

def unpickled(main, is_early):
    note("unpickling")
    while is_early and os.getppid() == main:
        time.sleep(0.01)
    return Callback(main, is_early)

what, when = sys.argv[1:]
callback = Callback(os.getpid(), when == "early")
model = HCRPHMM(n_burnin=10**7, n_chains=4, n_particles=10, random_state=1,
                callback=callback, checkpoint="run", checkpoint_interval=0)
if what == "chains":
    with joblib.parallel_config(backend="loky", n_jobs=2):
        model.fit(X)
else:
    model.set_params(n_chains=1, checkpoint=None)
    joblib.Parallel(2)(joblib.delayed(model.fit)(X) for _ in range(4))
"""


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
@pytest.mark.parametrize(
    ("what", "number", "when"),
    [
        pytest.param("chains", signal.SIGTERM, "late", marks=pytest.mark.slow),
        # While both workers unpickle their tasks.  Before they have them, only joblib's
        # code runs there, which waits for minutes.
        ("chains", signal.SIGKILL, "early"),
        pytest.param("fits", signal.SIGKILL, "late", marks=pytest.mark.slow),
    ],
)
def test_workers_end_with_the_main_process(tmp_path, what, number, when):
    script, temp = tmp_path / "main.py", tmp_path / "temp"
    script.write_text(MAIN)
    temp.mkdir()
    unpickling, sweeping = tmp_path / "unpickling", tmp_path / "sweeping"
    unpickling.touch()
    sweeping.touch()
    main = subprocess.Popen(
        [sys.executable, str(script), what, when],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temp)},
        stderr=subprocess.DEVNULL,
    )
    workers = []
    while len(workers) < 2:
        assert main.poll() is None
        time.sleep(0.05)
        noted = unpickling if when == "early" else sweeping
        workers = [int(pid) for pid in noted.read_text().split()]
    assert main.pid not in workers
    main.send_signal(number)
    # The main process is not waited for yet, so it is there as a zombie.
    try:
        end = time.monotonic() + 20
        while any(map(is_running, workers)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(map(is_running, workers))
    finally:
        for pid in filter(is_running, workers):
            os.kill(pid, signal.SIGKILL)
        main.wait()
    assert bool(sweeping.read_text()) == (when == "late")
    assert [name for name in os.listdir(temp) if name.startswith("skihmm")] == []
