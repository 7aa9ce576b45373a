"""The book's preparation on made-up texts; on the real one where there is one."""

import os
import urllib.error
from collections import Counter
from http.client import IncompleteRead
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from skihmm.datasets import _alice, fetch_alice


@pytest.fixture(autouse=True)
def _no_network(monkeypatch, tmp_path):
    """Refuse all downloads and hide the folders of the user."""

    def urlopen(*args, **kwargs):
        raise AssertionError("a test must not touch the network")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.delenv("SKIHMM_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn_home"))


def _answer(monkeypatch, content):
    """Let every download return `content`; return the list of requested addresses."""
    requested = []

    def urlopen(request, timeout=None):
        assert timeout is not None
        requested.append(request.full_url)
        return BytesIO(content)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return requested


def _folder_with(tmp_path, text, name="given"):
    folder = tmp_path / name
    folder.mkdir()
    content = text.encode() if isinstance(text, str) else text
    (folder / "alice.txt").write_bytes(content)
    return folder


def _words(tmp_path, text):
    """Return the words with every rare one kept, by doubling the text."""
    folder = _folder_with(tmp_path, f"{text}\n\n{text}\n")
    words = fetch_alice(folder, download_if_missing=False).words.tolist()
    half = len(words) // 2
    assert words[:half] == words[half:]
    return " ".join(words[:half])


# --------------------------------------------------------------------------------------
# Preparation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat, the Hat; sat.", "the cat the hat sat EOS"),
        ("One. Two! Three? Four", "one EOS two EOS three EOS four EOS"),
        # A stop inside a sentence goes on in lower case.
        ("`Oh!' said she. `Why?'", "oh said she EOS why EOS"),
        ("Stop!!! `...' No.", "stop EOS no EOS"),
        # Apostrophes between letters are of the word, quotation marks are not.
        ("`Don't 'see' it's the cats' hat,'", "don't see it's the cats hat EOS"),
        ("\u201cDon\u2019t,\u201d said the \u2018Cat\u2019.", "don't said the cat EOS"),
        ("a rabbit-hole--and _I_ fell\u2014down", "a rabbit hole and i fell down EOS"),
        ("a waistcoat-\n  pocket", "a waistcoat pocket EOS"),
        # Paragraphs and headings end a sentence; rules have no words and end none.
        ("CHAPTER II\n\n  Tears\n\n * * *\n\n", "chapter ii EOS tears EOS"),
        ("so she said:\n\n  a verse", "so she said EOS a verse EOS"),
        ("...\n\nYes... and no", "yes and no EOS"),
        ("42 cats. 7 hats", "42 cats EOS 7 hats EOS"),
    ],
)
def test_words_and_sentences(tmp_path, text, expected):
    assert _words(tmp_path, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "He said, `No! \"Me\" and Tom's hat.' So it was.",
        "He said, \u201cNo! \u2018Me\u2019 and Tom\u2019s hat.\u201d So it was.",
        "He said, \u2018No! Me and Tom\u2019s hat.\u2019 So it was.",
    ],
)
def test_speech_and_chapters(tmp_path, text):
    # The second speech is not closed in its paragraph.
    text = f"CHAPTER I\n\n{text}\n\n CHAPTER II. Tea\n\n{text[:-12]}\n\n{text}"
    alice = fetch_alice(_folder_with(tmp_path, text))
    told = "he said no EOS me and tom's hat EOS so it was EOS"
    spoken = [0, 0, *[1] * 7, 0, 0, 0, 0]
    first, second = alice.chapter == 1, alice.chapter == 2
    assert (first | second).all()
    assert " ".join(alice.words[first][3:]) == told
    np.testing.assert_array_equal(alice.spoken[first], [0, 0, 0, *spoken])
    assert " ".join(alice.words[second][-13:]) == told
    np.testing.assert_array_equal(alice.spoken[second], [0] * 7 + [1] * 7 + spoken)


def test_frame_is_left_out(tmp_path):
    text = (
        "\ufeffThe Project Gutenberg eBook, free to all\r\n\r\n"
        "*** START OF THE PROJECT GUTENBERG EBOOK ALICE ***\r\n\r\n"
        "A TITLE\r\n\r\n CHAPTER I.   Down\r\n CHAPTER II.  Up\r\n\r\n"
        "CHAPTER I.\r\nDown\r\n\r\n[Illustration]\r\n\r\nHere it is. CHAPTER I is "
        "short.\r\n\r\n            THE END\r\n\r\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK ALICE ***\r\n\r\nLicence text\r\n"
    )
    folder = _folder_with(tmp_path, text)
    alice = fetch_alice(folder)
    assert " ".join(alice.words) == ("chapter i EOS UNK EOS UNK UNK is EOS chapter i is UNK EOS")


def test_story_without_a_frame_is_left_alone(tmp_path):
    assert _words(tmp_path, "It was the end. Fine") == "it was the end EOS fine EOS"


def test_control_character_after_the_end_is_no_word(tmp_path):
    folder = _folder_with(tmp_path, "so so\n\n    THE END\r\n\x1a")
    assert fetch_alice(folder).words.tolist() == ["so", "so", "EOS"]


def test_encodings(tmp_path):
    utf8 = _folder_with(tmp_path, "caf\u00e9 caf\u00e9", "utf8")
    ansi = _folder_with(tmp_path, b"caf\xe9 caf\xe9", "ansi")
    for folder in (utf8, ansi):
        assert fetch_alice(folder).words.tolist() == ["caf\u00e9", "caf\u00e9", "EOS"]


def test_words_that_occur_once_become_unknown(tmp_path):
    folder = _folder_with(tmp_path, "a b a c. A d unk")
    alice = fetch_alice(folder)
    assert " ".join(alice.words) == "a UNK a UNK EOS a UNK UNK EOS"
    # The only end of a sentence is no rare word.
    folder = _folder_with(tmp_path, "eos eos", "single")
    assert fetch_alice(folder).words.tolist() == ["eos", "eos", "EOS"]


# --------------------------------------------------------------------------------------
# Result


def test_bunch_is_consistent(tmp_path):
    alice = fetch_alice(_folder_with(tmp_path, "c b. B a c! Once b d d, a c"))
    counts = Counter(alice.words.tolist())
    assert alice.vocabulary == ["EOS", "b", "c", "a", "d", "UNK"]
    assert [counts[word] for word in alice.vocabulary] == [3, 3, 3, 2, 2, 1]
    assert alice.data.shape == (len(alice.words), 1)
    assert alice.data.dtype == np.int64
    assert [alice.vocabulary[code] for code in alice.data[:, 0]] == list(alice.words)
    assert alice.target is None
    assert alice.feature_names == ["word"]
    assert alice.n_test == 1000
    assert "28,120" in alice.DESCR


def test_data_without_target(tmp_path):
    folder = _folder_with(tmp_path, "c b b a c")
    X, y = fetch_alice(folder, return_X_y=True)
    np.testing.assert_array_equal(X, fetch_alice(folder).data)
    assert y is None


def test_text_without_words(tmp_path):
    folder = _folder_with(tmp_path, "... * *\n")
    with pytest.raises(ValueError, match=r"alice\.txt has no words; .* Replace the file"):
        fetch_alice(folder)


# --------------------------------------------------------------------------------------
# Where the text is


def test_order_of_folders(tmp_path, monkeypatch):
    first = _folder_with(tmp_path, "one one", "first")
    second = _folder_with(tmp_path, "two two", "second")
    _folder_with(tmp_path, "three three", "sklearn_home")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert fetch_alice().words[0] == "three"
    monkeypatch.setenv("SKIHMM_DATA", str(second))
    assert fetch_alice().words[0] == "two"
    assert fetch_alice(first).words[0] == "one"
    assert fetch_alice(str(empty)).words[0] == "two"
    monkeypatch.setenv("SKIHMM_DATA", str(empty))
    assert fetch_alice().words[0] == "three"


def test_missing_text_without_download(tmp_path, monkeypatch):
    monkeypatch.setenv("SKIHMM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="looked for") as caught:
        fetch_alice(tmp_path / "given", download_if_missing=False)
    message = str(caught.value)
    assert str(tmp_path / "given" / "alice.txt") in message
    assert str(tmp_path / "nowhere" / "alice.txt") in message
    assert message.count("alice.txt") == 2
    assert "download_if_missing=True" in message
    with pytest.raises(OSError, match="sklearn_home"):
        fetch_alice(download_if_missing=False)


# --------------------------------------------------------------------------------------
# Download, with a fake answer

_BOOK = b"CHAPTER I\r\n\r\n" + b"down down. " * 12_000


@pytest.mark.parametrize("home", ["given", None])
def test_download_is_cached(tmp_path, monkeypatch, home):
    requested = _answer(monkeypatch, _BOOK)
    data_home = tmp_path / home if home else None
    alice = fetch_alice(data_home)
    assert alice.words[:5].tolist() == ["UNK", "UNK", "EOS", "down", "down"]
    assert requested == [_alice._URL]
    folder = tmp_path / (home or "sklearn_home")
    assert [path.name for path in folder.iterdir()] == ["alice.txt"]
    assert (folder / "alice.txt").read_bytes() == _BOOK
    np.testing.assert_array_equal(fetch_alice(data_home).data, alice.data)
    assert len(requested) == 1


def test_download_of_something_else_is_not_kept(tmp_path, monkeypatch):
    _answer(monkeypatch, b"<html>Please log in</html>")
    with pytest.raises(OSError, match=r"text of 5 words; expected at least"):
        fetch_alice(tmp_path / "given")
    assert list((tmp_path / "given").iterdir()) == []


@pytest.mark.parametrize(
    "error", [urllib.error.URLError("no route"), TimeoutError(), IncompleteRead(b"x")]
)
def test_failed_download(tmp_path, monkeypatch, error):
    def urlopen(*args, **kwargs):
        raise error

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    with pytest.raises(OSError, match=r"could not download .* or save it as"):
        fetch_alice(tmp_path / "given")
    assert list((tmp_path / "given").iterdir()) == []


def test_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def replace(source, target):
        raise PermissionError("read-only")

    _answer(monkeypatch, _BOOK)
    monkeypatch.setattr("os.replace", replace)
    with pytest.raises(PermissionError, match="read-only"):
        fetch_alice(tmp_path / "given")
    assert list((tmp_path / "given").iterdir()) == []


# --------------------------------------------------------------------------------------
# The real text

_REAL_FOLDER = os.environ.get("SKIHMM_DATA")


@pytest.mark.skipif(
    not _REAL_FOLDER or not Path(_REAL_FOLDER, "alice.txt").is_file(),
    reason="SKIHMM_DATA names no folder with alice.txt",
)
def test_counts_of_the_book():
    alice = fetch_alice(_REAL_FOLDER, download_if_missing=False)
    counts = Counter(alice.words.tolist())
    # Any edition: close to the paper's 28,120 samples and 1,487 symbols.
    assert abs(len(alice.words) - 28_120) < 600
    assert abs(len(alice.vocabulary) - 1_487) < 60
    assert min(counts.values()) >= 2
    assert alice.words[-1] == "EOS"
    assert "gutenberg" not in counts
    assert "edition" not in counts
    assert alice.chapter[0] == 1
    assert alice.chapter[-1] == 12
    assert 0.3 < alice.spoken.mean() < 0.5
    raw = Path(_REAL_FOLDER, "alice.txt").read_bytes()
    if b"MILLENNIUM FULCRUM EDITION 2.9" in raw:
        assert len(alice.words) == 28_106
        assert len(alice.vocabulary) == 1_488
        assert counts["EOS"] == 1_435
        assert counts["UNK"] == 1_145
        assert alice.vocabulary[:4] == ["the", "EOS", "UNK", "and"]
