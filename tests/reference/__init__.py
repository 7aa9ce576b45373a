"""Slow and obvious oracles against which the compiled code is tested.

Nothing in this folder imports the package under test.
"""
