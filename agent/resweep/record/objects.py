"""Objects, wrapped in place: the same object back, with recording methods and still of its class.

The object's class is swapped for a subclass made for it, which says it is the original wherever asked
(`__class__`, `isinstance`, `repr`, pickle). Where a class cannot be swapped (classes of C, strict slots), a
transparent proxy stands in front.
"""

from __future__ import annotations

import operator
import types
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from resweep.record.attributes import class_attribute
from resweep.record.watching import Site, Watch
from resweep.record.wrap import Wrapper, wrap

_CLASS: Any = object.__dict__["__class__"]  # the real one, also where a subclass hides it
_FORWARDED = (
    "__len__",
    "__iter__",
    "__next__",
    "__getitem__",
    "__contains__",
    "__bool__",
    "__enter__",
    "__exit__",
    "__aenter__",
    "__aexit__",
    "__or__",
    "__ror__",
    "__call__",
)


def watch_of(obj: object) -> Watch | None:
    """Return the watch on an object, or None."""
    found = getattr(type(obj), "__resweep_watch__", None)
    if found is None:
        site = getattr(obj, "__dict__", {}).get("__resweep_site__")
        found = site.watch if isinstance(site, Site) else None
    return found if isinstance(found, Watch) else None


def watch_methods(obj: Any, names: Iterable[str], watch: Watch) -> Any:
    """Make methods of an object recording and return the object, or a proxy where it cannot be changed."""
    wrappers = {name: made for name in names if (made := _wrapper(obj, name, watch)) is not None}
    watched = replace_methods(obj, wrappers, {"__resweep_watch__": watch}, watch.undo)
    return _proxy(obj, wrappers, watch) if watched is None else watched


def replace_methods(
    obj: Any,
    wrappers: Mapping[str, Any],
    marks: Mapping[str, object],
    undo: list[Callable[[], None]],
) -> Any | None:
    """Swap an object's class for one with these methods; None where that cannot be done.

    What takes it back is added to `undo`.
    """
    origin = type(obj)
    own = _instance_methods(obj, wrappers)
    try:
        twin = _twin(origin, {name: w for name, w in wrappers.items() if name not in own}, marks)
        _CLASS.__set__(obj, twin)
    except Exception:  # noqa: BLE001 - a class may refuse to have subclasses, or its layout may not fit
        return None
    before = {name: obj.__dict__[name] for name in own}
    obj.__dict__.update({name: wrappers[name] for name in own})

    def back() -> None:
        if type(obj) is twin:
            _CLASS.__set__(obj, origin)
        obj.__dict__.update(before) if before else None

    undo.append(back)
    return obj


def _instance_methods(obj: Any, names: Iterable[str]) -> list[str]:
    """Functions that an object carries itself: they hide those of its class."""
    own = getattr(obj, "__dict__", {})
    return [name for name in names if name in own]


def _twin(origin: type, methods: Mapping[str, Any], marks: Mapping[str, object]) -> type:
    """A subclass that is its parent in all but the given methods."""
    shown = getattr(origin, "__resweep_origin__", origin)
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": origin.__module__,
        "__qualname__": origin.__qualname__,
        "__doc__": origin.__doc__,
        "__class__": property(lambda _: shown, _CLASS.__set__),
        "__resweep_origin__": shown,
        "__reduce_ex__": _reduce,
        **marks,
        **methods,
    }
    meta = type(origin)
    if issubclass(meta, ABCMeta) and meta.__module__.startswith("pydantic"):
        # A model's fields and validators are all inherited: there is nothing to build again.
        return ABCMeta.__new__(meta, origin.__name__, (origin,), namespace)
    return meta(origin.__name__, (origin,), namespace)


def _reduce(self: Any, protocol: Any) -> Any:
    """Pickle as the original: who loads it need not have resweep, and records nothing."""
    twin: Any = type(self)
    origin = twin.__resweep_origin__
    reduced = super(_lowest(twin, origin), self).__reduce_ex__(protocol)
    if not isinstance(reduced, tuple):
        return reduced

    def plain(part: Any) -> Any:
        if part is twin:
            return origin
        return tuple(plain(inner) for inner in part) if type(part) is tuple else part

    return (plain(reduced[0]), plain(reduced[1]), *reduced[2:])


def _lowest(twin: Any, origin: type) -> Any:
    """The twin right above the original: a twin may have been made of a twin."""
    return twin.__mro__[twin.__mro__.index(origin) - 1]


def _wrapper(obj: Any, name: str, watch: Watch) -> Any | None:
    """The recording twin of one method; None where there is no method of that name."""
    own = getattr(obj, "__dict__", {})
    if name in own:
        return wrap(own[name], Site(watch, own[name])) if callable(own[name]) else None
    found = class_attribute(type(obj), name)
    if isinstance(found, staticmethod | classmethod):
        function = getattr(obj, name)
        return staticmethod(wrap(function, Site(watch, function)))
    if callable(found):
        return wrap(found, Site(watch, found, skip=1), bound=1)
    return None


def _proxy(obj: Any, wrappers: Mapping[str, Wrapper], watch: Watch) -> Any:
    """An object in front of one that cannot be changed; it forwards everything but the given methods."""
    origin = type(obj)
    namespace: dict[str, Any] = {
        "__slots__": ("__weakref__",),
        "__resweep_watch__": watch,
        "__resweep_object__": obj,
        "__class__": property(lambda _: origin),
        "__getattr__": lambda _, name: getattr(obj, name),
        "__setattr__": lambda _, name, value: setattr(obj, name, value),
        "__delattr__": lambda _, name: delattr(obj, name),
        "__repr__": lambda _: repr(obj),
        "__str__": lambda _: str(obj),
        "__hash__": lambda _: hash(obj),
        "__eq__": lambda _, other: obj == getattr(type(other), "__resweep_object__", other),
        "__dir__": lambda _: dir(obj),
        "__reduce_ex__": lambda _, protocol: obj.__reduce_ex__(protocol),
    }
    for name in _FORWARDED:
        if class_attribute(origin, name) is not None:
            namespace[name] = _forward(obj, name)
    for name, wrapper in wrappers.items():
        bound = getattr(wrapper, "__resweep_bound__", 0)
        namespace[name] = staticmethod(types.MethodType(wrapper, obj) if bound else _function(wrapper))
    return type(origin.__name__, (), namespace)()


def _function(wrapper: Any) -> Any:
    return wrapper.__func__ if isinstance(wrapper, staticmethod) else wrapper


def _forward(obj: Any, name: str) -> Any:
    method = operator.attrgetter(name)
    return lambda _, *args, **kwargs: method(obj)(*args, **kwargs)


def unwatch_object(obj: Any) -> Any:
    """Return the object as it was before it was watched."""
    watch = watch_of(obj)
    if watch is None:
        return obj
    watch.end()
    return getattr(type(obj), "__resweep_object__", obj)
