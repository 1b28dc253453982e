"""Public methods are documented, by themselves or by what they override."""

import importlib
import inspect
import pkgutil

import snapshot_explorer


def public_classes():
    for module in pkgutil.walk_packages(snapshot_explorer.__path__, "snapshot_explorer."):
        if module.name.endswith("__main__"):
            continue
        for name, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if cls.__module__ == module.name and not name.startswith("_"):
                yield cls


def is_method(value):
    return inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)


def test_a_public_method_has_a_docstring_or_inherits_one():
    without = [
        f"{cls.__module__}.{cls.__name__}.{name}"
        for cls in public_classes()
        for name, value in vars(cls).items()
        if not name.startswith("_") and is_method(value)
        if not any(inspect.getdoc(vars(base)[name]) for base in cls.__mro__ if name in vars(base))
    ]

    assert without == []
