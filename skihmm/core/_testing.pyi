from typing import Any

# Test access: nothing here is part of an interface.
def __getattr__(name: str) -> Any: ...
