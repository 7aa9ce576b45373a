"""Compiled core of all samplers.

The ``.pxd`` files of this folder are a public native interface: other packages may
``cimport`` the names that ``skihmm/core/__init__.pxd`` lists and build samplers on them.
For Python code outside of skihmm it is private.
"""
