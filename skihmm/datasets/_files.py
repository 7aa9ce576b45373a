"""Files of data sets: looked for in folders of the user, otherwise downloaded."""

from __future__ import annotations

import os
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

FOLDER_VARIABLE = "SKIHMM_DATA"
_TIMEOUT = 60  # seconds without an answer


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set.

    Attributes
    ----------
    what : str
        What the file holds, with an article.
    url : str
    name : str
        Path of the file in its folder.
    check : callable
        Description of wrong contents, None if they are right: a download that is an error
        page must not get into the cache.
    """

    what: str
    url: str
    name: str
    check: Callable[[bytes], str | None]

    def find(self, data_home: str | os.PathLike[str] | None, download_if_missing: bool) -> Path:
        """Return the path of the file, after a download if it is missing and allowed.

        Without a file, or after a failed download, it raises an OSError.
        """
        folders = []
        if data_home is not None:
            folders.append(Path(data_home).expanduser())
        if os.environ.get(FOLDER_VARIABLE):
            folders.append(Path(os.environ[FOLDER_VARIABLE]).expanduser())
        for folder in folders:
            if (folder / self.name).is_file():
                return folder / self.name

        # Imported late: it loads every dataset of scikit-learn.  It creates the folder.
        from sklearn.datasets import get_data_home

        cached = Path(get_data_home(data_home)) / self.name
        if cached.is_file():
            return cached
        if not download_if_missing:
            looked_for = dict.fromkeys([*(f / self.name for f in folders), cached])
            raise OSError(
                f"{self.what} is not there; looked for "
                f"{', '.join(str(path) for path in looked_for)}. Save it under one of "
                f"these names, name its folder by data_home or the environment variable "
                f"{FOLDER_VARIABLE}, or pass download_if_missing=True."
            )
        self._download(cached)
        return cached

    def _download(self, path: Path) -> None:
        """Store the file at `path`, completely or not at all."""
        # Project Gutenberg requires automatic readers to identify themselves.
        request = urllib.request.Request(self.url, headers={"User-Agent": "skihmm"})
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
                raw = response.read()
        except (OSError, HTTPException) as error:
            raise OSError(
                f"could not download {self.what} from {self.url} ({error}). Check the "
                f"network connection, or save it as {path}."
            ) from error
        problem = self.check(raw)
        if problem is not None:
            raise OSError(
                f"{self.url} answered with {problem}, and it was not kept. Save "
                f"{self.what} as {path}."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another process must never see half a file: write aside, then rename.  A folder
        # rather than mkstemp, whose files only their owner may read.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".skihmm") as folder:
            temporary = Path(folder, path.name)
            temporary.write_bytes(raw)
            os.replace(temporary, path)
