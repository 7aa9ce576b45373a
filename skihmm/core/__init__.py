"""Shared mechanism of all samplers, compiled.

The ``.pxd`` files of this folder are a public native interface: other packages may
``cimport`` the names that ``skihmm/core/__init__.pxd`` lists and build samplers on them.
Python code outside skihmm has no business here.
"""
