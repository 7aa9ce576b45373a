"""Names of users in all displays: as they are, in one line, without formulas."""

from __future__ import annotations

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, NormalInverseGamma, ProductEmission
from skihmm.inspection import (
    DwellTimeDisplay,
    EmissionDisplay,
    ForecastDisplay,
    RegimeTreeDisplay,
    RegressionDisplay,
    ResidualDisplay,
    StateSequenceDisplay,
    SubjectDisplay,
    TransitionMatrixDisplay,
)

pd = pytest.importorskip("pandas")
SHORT = {"n_burnin": 3, "n_draws": 3, "random_state": 0}
# Names of three columns of one kind, as scikit-learn asks for.
LONG = "a$b$c <b>\n\t\x07 $\\frac$ and much longer than any axis has room for" * 3
NAMES = {
    "text": [LONG, "$x_$", "&amp;"],
    "number": [7, 8, 9],
    "tuple": [("a", 1), ("a", 2), ("b", 1)],
}
RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(2, 60))
Y += np.arange(60) // 15 % 2 * 5.0


def texts_of(figure):
    """Texts as they are drawn, none of them a formula."""
    from matplotlib.cbook import is_math_text
    from matplotlib.text import Text

    figure.canvas.draw()
    found = [each.get_text() for each in figure.findobj(Text) if each.get_visible()]
    assert not any(map(is_math_text, found))
    return [text.replace(r"\$", "$") for text in found]


def displays(names):
    """Figures in which the first name, or all of them, are."""
    # Symbols and ids of subjects have these names, too.
    words = np.array([str(name) for name in names], dtype=object)[np.arange(60) // 20]
    data = pd.DataFrame(dict(enumerate([Y, words, U])))
    data.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    emission = ProductEmission([("a", "gaussian", [0]), ("b", "hcrp", [1]), ("c", "gaussian", [2])])
    hmm = HCRPHMM(emission=emission, **SHORT).fit(data)
    yield EmissionDisplay.from_estimator(hmm).figure_, 3
    yield EmissionDisplay.from_estimator(hmm, columns=[1], kind="top").figure_, 1
    yield EmissionDisplay.from_estimator(hmm, columns=[0], kind="interval").figure_, 1
    yield StateSequenceDisplay.from_estimator(hmm, data).figure_, 3
    yield ForecastDisplay.from_estimator(hmm, data).figure_, 1
    yield ResidualDisplay.from_estimator(hmm, data, column=0).figure_, 1

    emission = AutoregressiveNormal(order=0, input_features=[0])
    numbers = data.set_axis([*data.columns], axis=1)
    numbers.isetitem(1, Y)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(numbers)
    yield RegressionDisplay.from_estimator(hmm).figure_, 1
    yield RegressionDisplay.from_estimator(hmm, feature=0).figure_, 1

    emission = NormalInverseGamma(subject_feature=1)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(data, groups=words)
    yield SubjectDisplay.from_estimator(hmm).figure_, 1


# Numbers become texts as tuples do.
@pytest.mark.parametrize("kind", ["text", pytest.param("number", marks=pytest.mark.slow), "tuple"])
def test_names(kind, pyplot):
    shown = [str(name) for name in NAMES[kind]]
    if kind == "text":
        # Cut in the middle; symbols are cut to twelve characters.
        shown[0] = "a$b$c"
    for figure, n in displays(NAMES[kind]):
        texts = texts_of(figure)
        for name in shown[:n]:
            assert any(name in text for text in texts), (name, texts)
        pyplot.close(figure)


# -- names of states --------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_states():
    """A fit of two states, with an input."""
    path = np.arange(60) // 15 % 2
    X = np.column_stack([Y, U])
    emission = AutoregressiveNormal(order=0, input_features=[1])
    return HCRPHMM(emission=emission, **SHORT).fit(X, states=path), X


OF_STATES = {
    "states": lambda fit, X, **kw: StateSequenceDisplay.from_estimator(fit, X, **kw),
    "draws": lambda fit, X, **kw: StateSequenceDisplay.from_draws(fit.draws_, X, **kw),
    "emissions": lambda fit, _, **kw: EmissionDisplay.from_estimator(fit, **kw),
    "heat map": lambda fit, _, **kw: TransitionMatrixDisplay.from_estimator(fit, **kw),
    "graph": lambda fit, _, **kw: TransitionMatrixDisplay.from_estimator(fit, kind="graph", **kw),
    "regression": lambda fit, _, **kw: RegressionDisplay.from_estimator(fit, **kw),
    "dwell times": lambda fit, X, **kw: DwellTimeDisplay.from_estimator(fit, X, **kw),
    "residuals": lambda fit, X, **kw: ResidualDisplay.from_estimator(fit, X, **kw),
    "regimes": lambda fit, _, **kw: RegimeTreeDisplay.from_estimator(fit, **kw),
}


@pytest.mark.parametrize("name", OF_STATES)
def test_states_have_the_names_of_a_call(name, two_states, pyplot):
    display = OF_STATES[name](*two_states, names={1: "cost $x$ of REM"})
    texts = texts_of(display.figure_)
    shown = [text.split(":")[0] for text in texts]
    assert "cost $x$ of REM" in shown
    # The other state keeps its number, and the next picture all numbers.
    number = "state 0" if name == "dwell times" else "0"
    assert number in shown
    texts = texts_of(display.plot().figure_)
    assert not any("REM" in text for text in texts)
    assert any(text.split(":")[0] == number.replace("0", "1") for text in texts)
    if name not in ("draws", "dwell times", "residuals"):
        # Where the number of all states is known.
        with pytest.raises(ValueError, match="names has the key 2, which is no state"):
            display.plot(names={2: "REM"})
    with pytest.raises(TypeError, match="expected names of states by number"):
        display.plot(names=["REM"])


def test_displays_of_states_are_those_that_take_names():
    import inspect

    from skihmm.inspection._display import Display

    found = {
        each.__name__
        for each in Display.__subclasses__()
        if "names" in inspect.signature(each.plot).parameters
    }
    without = {"ForecastDisplay", "SubjectDisplay", "TraceDisplay"}
    assert found == {each.__name__ for each in Display.__subclasses__()} - without


def test_long_names_of_states_are_cut_in_the_middle():
    display = StateSequenceDisplay(np.arange(60) // 20)
    display.plot(names={0: "a very long name of the first state", 7: "not shown"})
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "a very l…t state",
        "1",
        "2",
    ]
