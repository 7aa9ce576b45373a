"""Build the one extension module."""

from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

import skihmm

native = Extension(
    "skihmm_extra._native",
    ["skihmm_extra/_native.pyx"],
    language="c++",
    include_dirs=["skihmm_extra", *skihmm.get_include(), numpy.get_include()],
    # Numbers that do not depend on the machine, as in skihmm itself.
    extra_compile_args=["-std=c++17", "-O2", "-ffp-contract=off"],
    # For NumPy's random variates.
    library_dirs=[str(Path(numpy.__file__).parent / "random" / "lib")],
    libraries=["npyrandom"],
)
setup(packages=["skihmm_extra"], ext_modules=cythonize([native], language_level=3))
