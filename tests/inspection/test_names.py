"""Names of users in all displays: as they are, in one line, without formulas."""

from __future__ import annotations

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, NormalInverseGamma, ProductEmission
from skihmm.inspection import (
    EmissionDisplay,
    ForecastDisplay,
    RegressionDisplay,
    ResidualDisplay,
    StateSequenceDisplay,
    SubjectDisplay,
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
        # In one line, and cut; symbols are cut to twelve characters.
        shown[0] = r"a$b$c <b>\n"
    for figure, n in displays(NAMES[kind]):
        texts = texts_of(figure)
        for name in shown[:n]:
            assert any(name in text for text in texts), (name, texts)
        pyplot.close(figure)
