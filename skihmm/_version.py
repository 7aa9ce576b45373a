"""The one place that knows the version; meson.build reads it."""

__version__ = "0.1.0.dev0"
