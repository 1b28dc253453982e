"""The dispatch of `view`: every type that shows itself has a drawing, and a figure where it has a `picture`."""

import copy
import pickle
from importlib import import_module

import pytest

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.view import dispatch, drawing_of, picture_of
from tests.inner.core import Shown


def shown_types():
    def below(cls):
        return {cls, *(inner for sub in cls.__subclasses__() for inner in below(sub))}

    for name in snapshot_explorer.__all__:
        getattr(snapshot_explorer, name)
    for name in ("lake", "jupyter", "view.plotly_figure"):
        import_module(f"snapshot_explorer.{name}")
    return below(Shown)


def is_of_package(cls):
    return cls.__module__.startswith("snapshot_explorer")


@pytest.mark.parametrize("name", dispatch.MODULES)
def test_a_type_in_the_table_has_a_drawing_and_a_figure_if_it_has_a_picture(name):
    module, _, cls_name = name.rpartition(".")
    cls = getattr(import_module(f"snapshot_explorer.{module}"), cls_name)

    dispatch._import_modules(cls)

    assert cls in dispatch.draw.registry
    assert (dispatch.depict.dispatch(cls) is not dispatch.depict.dispatch(object)) == hasattr(cls, "picture")
    assert issubclass(cls, Shown)


def test_every_type_that_shows_itself_is_in_the_table():
    names = {f"{cls.__module__.removeprefix('snapshot_explorer.')}.{cls.__qualname__}": cls for cls in shown_types()}

    missing = {
        name
        for name, cls in names.items()
        if is_of_package(cls) and not any(known in dispatch.MODULES for known in names_of_bases(cls))
    }

    assert missing == {"core.shown.Shown", "results.frame_result.FrameResult"}


def names_of_bases(cls):
    return [f"{base.__module__.removeprefix('snapshot_explorer.')}.{base.__qualname__}" for base in cls.__mro__]


def test_a_frame_without_a_figure_says_which_have_one():
    with pytest.raises(UnsupportedFeatureError, match="There is no figure of 'Lake .*orders'"):
        snapshot_explorer.open_lake(samples.path("orders")).overview().picture()


def test_other_objects_have_neither():
    with pytest.raises(TypeError, match="int has no drawing"):
        drawing_of(1)
    with pytest.raises(TypeError, match="int has no figure"):
        picture_of(1)


def test_a_copy_of_a_figure_has_its_table():
    figure = open_table(samples.path("orders")).history(limit=3).picture(y="files")

    for other in (pickle.loads(pickle.dumps(figure)), copy.deepcopy(figure)):
        assert other.to_json() == figure.to_json()
        assert repr(other) == repr(figure) == str(figure)
        assert repr(other).startswith("History of orders")
