"""Words of Alice's Adventures in Wonderland as a sequence of symbols."""

import os
import re
from collections import Counter
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skihmm._data.validation import check_flag
from skihmm.datasets._files import RemoteFile

__all__ = ["fetch_alice"]

_URL = "https://www.gutenberg.org/cache/epub/11/pg11.txt"
# The book has about 26,700 words.  A much shorter download is an error page and must not
# get into the cache.
_MIN_DOWNLOADED_WORDS = 20_000

# Upper case, which no word of the lower-cased text has.
_END_OF_SENTENCE = "EOS"
_UNKNOWN = "UNK"
_N_TEST = 1000

# Apostrophes belong to a word between two letters only: elsewhere the plain-text
# editions use the same character as a quotation mark.  Underscores mark italics.
_WORD = r"[^\W_]+(?:'[^\W_]+)*"
# What opens direct speech and what closes it, outermost marks first; an apostrophe only
# where no letter follows, and of an edition those that it has first.
_SPEECH_MARKS = (
    ("\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"),
    ("`", "'"),
    ("\N{LEFT SINGLE QUOTATION MARK}", "'"),
)
_CHAPTER = re.compile(r"\s*CHAPTER [IVXLC]+\b")
_PARAGRAPH_BREAK = re.compile(r"\n\s*\n")
# The last match starts the story, as some editions have a table of contents.
_FIRST_CHAPTER = re.compile(r"^[ \t]*CHAPTER I\b.*$", re.MULTILINE)
_CLOSING_LINE = re.compile(r"\bTHE END\W*\Z")
_GUTENBERG_START = re.compile(r"^\*\*\* ?START OF TH(?:E|IS) PROJECT GUTENBERG.*$", re.MULTILINE)
_GUTENBERG_END = re.compile(
    r"^(?:\*\*\* ?END OF TH(?:E|IS) PROJECT GUTENBERG"
    r"|End of (?:the )?Project Gutenberg)",
    re.MULTILINE,
)


def _decode(raw: bytes) -> str:
    """Return the text of a file, with plain apostrophes and line ends."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _strip_frame(text: str) -> str:
    """Remove licence, title page, contents and closing line, as far as there are any."""
    start = _GUTENBERG_START.search(text)
    if start:
        text = text[start.end() :]
    end = _GUTENBERG_END.search(text)
    if end:
        text = text[: end.start()]
    chapters = list(_FIRST_CHAPTER.finditer(text))
    if chapters:
        text = text[chapters[-1].start() :]
    text = text.replace("[Illustration]", "\n\n")
    return _CLOSING_LINE.sub("", text)


def _tokenize(story: str) -> tuple[list[str], list[bool], list[int]]:
    """Return the lower-case words, with a token at the end of each sentence.

    Beside them, whether each is in direct speech, and its chapter.
    """
    opening, closing = next((m for m in _SPEECH_MARKS if m[0] in story), ("`", "'"))
    close = rf"{closing}(?![^\W_])"
    piece = re.compile(rf"{_WORD}|[.!?]+|{opening}|{close}")
    tokens: list[str] = []
    spoken: list[bool] = []
    chapters: list[int] = []
    chapter = 0
    for paragraph in _PARAGRAPH_BREAK.split(story):
        chapter += bool(_CHAPTER.match(paragraph))
        has_words = stop_seen = speaks = spoke = False
        for token in piece.findall(paragraph):
            if token in (opening, closing):
                speaks = token == opening
            elif token[0] in ".!?":
                stop_seen = has_words
            else:
                # An exclamation mark inside a sentence is followed by lower case.
                if stop_seen and not token[0].islower():
                    tokens.append(_END_OF_SENTENCE)
                    spoken.append(spoke)
                tokens.append(token.lower())
                spoken.append(speaks)
                spoke, has_words, stop_seen = speaks, True, False
        if has_words:
            tokens.append(_END_OF_SENTENCE)
            spoken.append(spoke)
        chapters += [chapter] * (len(tokens) - len(chapters))
    return tokens, spoken, chapters


def _replace_rare_words(tokens: list[str]) -> list[str]:
    """Return the tokens with every word that occurs once replaced."""
    counts = Counter(tokens)
    return [
        _UNKNOWN if counts[token] == 1 and token != _END_OF_SENTENCE else token for token in tokens
    ]


def _check_download(raw: bytes) -> str | None:
    n_words = len(re.findall(_WORD, _strip_frame(_decode(raw))))
    if n_words < _MIN_DOWNLOADED_WORDS:
        return (
            f"a text of {n_words} words; expected at least {_MIN_DOWNLOADED_WORDS}, so "
            "this is not the book"
        )
    return None


_BOOK = RemoteFile(
    what="the text of the book",
    url=_URL,
    name="alice.txt",
    check=_check_download,
)


def fetch_alice(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.int64], None]:
    """Load the words of Alice's Adventures in Wonderland as a sequence of codes.

    This is the text experiment of [1]_.  The book is read from a file if there is one,
    otherwise downloaded from Project Gutenberg [2]_ and stored.  The text is prepared as
    in the paper: lower case, no punctuation, a symbol EOS at the end of each sentence,
    and UNK in place of words that occur once.

    =================   =============================================
    Samples             28106 (paper: 28120)
    Symbols             1488 with EOS and UNK (paper: 1487)
    Features            1 (a word, as a code)
    Held out            the last 1000 samples, as in the paper
    =================   =============================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the file ``alice.txt``.  The search goes through this folder, the folder
        of the environment variable ``SKIHMM_DATA``, and scikit-learn's data folder
        (:func:`sklearn.datasets.get_data_home`).  A download is stored in `data_home`, or
        in scikit-learn's data folder if this is None.
    download_if_missing : bool, default=True
        If False, raise an OSError if there is no file instead of downloading it.
    return_X_y : bool, default=False
        Return ``(data, None)`` instead of a Bunch.  There is no target.

    Returns
    -------
    alice : :class:`~sklearn.utils.Bunch`
        With the attributes

        data : ndarray of shape (n_samples, 1), dtype int64
            The words as codes.
        target : None
            There is no target.
        feature_names : list of str
            ``["word"]``.
        words : ndarray of shape (n_samples,) of str
            The same words as text: ``words[t] == vocabulary[data[t, 0]]``.
        spoken : ndarray of shape (n_samples,) of bool
            Whether the word is in direct speech (the end of a sentence: as the word
            before it).
        chapter : ndarray of shape (n_samples,) of int
            Chapters count from 1.  Words before the first chapter have 0.
        vocabulary : list of str
            The symbol of each code, by decreasing frequency, then in alphabetical order.
        n_test : int
            Number of samples at the end that the paper holds out, 1000.
        DESCR : str
            The description of the data.

    (data, None) : tuple
        Only if `return_X_y=True`.

    Raises
    ------
    OSError
        If there is no file and `download_if_missing` is False, or the download fails.
    ValueError
        If the file has no words.

    See Also
    --------
    fetch_mocap6 : Sequences of numbers with annotated states.
    skihmm.emissions.HCRPCategorical : Emission of symbols.

    Notes
    -----
    The paper does not specify the edition or the rules for words and sentences.  Counts
    agree with the paper to within 14 samples and one symbol.  The counts above are for
    the Millennium Fulcrum edition 2.9.  Further editions differ a little.  ``DESCR`` has
    the rules.

    Rare words are rare in the whole text, as in the paper.  The held-out part therefore
    has no symbol outside of the vocabulary, but symbols that the first part does not
    have.  An emission fitted to the first part needs
    ``categories=[np.arange(len(alice.vocabulary))]``.

    References
    ----------
    .. [1] T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw:
       Accurate Sampling for Hierarchical Chinese Restaurant Process Hidden Markov
       Models", arXiv:1106.0474, 2011.
    .. [2] L. Carroll, "Alice's Adventures in Wonderland", 1865. Project Gutenberg
       ebook 11, https://www.gutenberg.org/ebooks/11.

    Examples
    --------
    Any text will do in place of the book:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from skihmm.datasets import fetch_alice
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "alice.txt")
    ...     _ = path.write_text("The cat sat. The cat, however, sat!")
    ...     alice = fetch_alice(folder)
    >>> alice.words.tolist()
    ['the', 'cat', 'sat', 'EOS', 'the', 'cat', 'UNK', 'sat', 'EOS']
    >>> alice.vocabulary
    ['EOS', 'cat', 'sat', 'the', 'UNK']
    >>> alice.data[:4, 0]
    array([3, 1, 2, 0])
    """
    check_flag("download_if_missing", download_if_missing)
    check_flag("return_X_y", return_X_y)
    path = _BOOK.find(data_home, download_if_missing)
    story = _strip_frame(_decode(path.read_bytes()))
    tokens, spoken, chapters = _tokenize(story)
    words = _replace_rare_words(tokens)
    if not words:
        raise ValueError(
            f"{path} has no words; expected the plain text of the book. Replace the "
            f"file, or delete it to have the text downloaded."
        )
    counts = Counter(words)
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word))
    code_of_word = {word: code for code, word in enumerate(vocabulary)}
    data = np.array([[code_of_word[word]] for word in words], dtype=np.int64)
    if return_X_y:
        return data, None
    description = resources.files("skihmm.datasets") / "descr" / "alice.rst"
    return Bunch(
        data=data,
        target=None,
        feature_names=["word"],
        words=np.array(words),
        spoken=np.array(spoken),
        chapter=np.array(chapters),
        vocabulary=vocabulary,
        n_test=_N_TEST,
        DESCR=description.read_text(encoding="utf-8"),
    )
