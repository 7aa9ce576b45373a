// Exceptions of Python on their way through C++.
#pragma once

namespace skihmm {

// A call has raised an exception, which is set in Python; Cython propagates it.
struct PythonError {};

}  // namespace skihmm
