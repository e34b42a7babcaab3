"""What questions answer: a class per result and per part of one, made from what the results say of their fields."""
import html
import json
import os
import shutil
import weakref

from . import _core

# Figures of a notebook cell, and rows of its tables; beyond that the page is for `report`.
_MOST_MARKUP, _MOST_ROWS = 3_000_000, 20
# Within the cell, however narrow.
_CELL_STYLE = (".normscope figure{margin:0} .normscope svg{max-width:100%;height:auto} "
               ".normscope table{display:block;overflow-x:auto;font-size:85%}")


def _short(value, most=60):
    if isinstance(value, list):
        return f"[{len(value)} × {type(value[0]).__name__}]" if value and isinstance(value[0], Fields) else _cut(value, most)
    if isinstance(value, Fields):
        return f"{type(value).__name__}(…)"
    if hasattr(value, "shape"):
        return f"array of {' × '.join(map(str, value.shape))}" if value.size > 6 else _cut(value.tolist(), most)
    return _cut(value, most)


def _cut(value, most):
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(value):
    """As JSON has it, but for NaN and infinity, which stay."""
    if isinstance(value, Fields):
        return {name: _plain(each) for name, each in value._items()}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


class Fields:
    """A part of a result: its fields are attributes; lists of numbers are NumPy arrays.

    >>> import normscope
    >>> cell = normscope.heatmap(n=4, d=3, draws=5).cells[0]
    >>> (cell.n, cell.to_dict()["d"])
    (4, 3)
    """

    _fields = ()
    _result = False

    def _items(self):
        return [(name, self.__dict__[name]) for name in self._fields if name in self.__dict__]

    def to_dict(self):
        """The fields that are there, as dicts, lists and numbers."""
        return _plain(self)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self._fields))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={_short(value)}' for name, value in self._items())})"


def _remove(directory, process):
    if os.getpid() == process:  # not a child of it, which has a copy of the result
        shutil.rmtree(directory, ignore_errors=True)


class Result(Fields):
    """What a question answers. Fields are attributes, read when the first is asked for.

    >>> import json, normscope
    >>> result = normscope.heatmap(n="4:8:4", d=3, draws=5)
    >>> (result.command, result.draws, json.loads(result.to_json())["draws"])
    ('heatmap', 5, 5)
    >>> [row["n"] for row in result.table(library="none")]
    [4, 8]
    >>> result.save("heatmap")
    >>> normscope.load_run("heatmap").cells[1].n
    8
    >>> result.report("heatmap.html")
    """

    _result = True

    def __init__(self, answer, temporary=None):
        self._answer, self._temporary = answer, temporary
        if temporary is not None:  # its files last as long as the result
            weakref.finalize(self, _remove, temporary, os.getpid())

    def __getattr__(self, name):
        # Only what is not there yet comes here.
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"'{type(self).__name__}' has no field '{name}'; it has {', '.join(self._fields)}")
        self._read()
        return self.__dict__[name]

    def __getstate__(self):
        raise TypeError("a result cannot be pickled; keep it with save(directory), and read it with load_run(directory)")

    def _read(self):
        found = self._answer.fields(_made).__dict__
        self.__dict__.update({name: found.get(name) for name in self._fields})
        self._there = [name for name in self._fields if name in found]

    def _items(self):
        if "_there" not in self.__dict__:
            self._read()
        return [(name, self.__dict__[name]) for name in self._there]

    @property
    def command(self):
        """The command of the program that answers the same."""
        return self._answer.command

    @property
    def directory(self):
        """Where the files of the run are, if it has any beside what is in memory; None otherwise."""
        return None if self._temporary else self._answer.directory

    def to_json(self, indent=None):
        """What the program prints with --json. indent: spaces a level; None: all in one line."""
        return self._answer.json(-1 if indent is None else indent).rstrip("\n")

    def table(self, part=None, library=None):
        """A row for each of the things that were asked about: keys of sets, heads of layers of windows, curves, claims.

        part      another list of the result: "sets" in place of "sets.keys", "windows.layers"
        library   "pandas", "polars" or "none" (a list of dicts); by default the first that is installed
        """
        return _frame(_rows(self, part), library)

    def save(self, directory):
        """The files that the program's --out writes. The directory is new, empty, or an earlier run that is replaced."""
        directory = os.fspath(directory)
        if not self._answer.save(directory):
            _copy_run(self._answer.directory, directory)

    def report(self, path):
        """The page of the run: one HTML file with its figures and data."""
        self._answer.report(os.fspath(path))

    def _repr_html_(self):
        verdict, paragraphs, before, figures, after = self._answer.shown()
        parts, size = [f"<p><b>{html.escape(verdict)}</b></p>"] if verdict else [], 0
        parts += [f"<p>{html.escape(each)}</p>" for each in paragraphs[:1]]
        parts += [_table_markup(*each) for each in before]
        for title, caption, markup in figures:
            size += len(markup)
            if size > _MOST_MARKUP:
                parts.append("<p>More figures are in the page that report(path) writes.</p>")
                break
            parts.append(f"<figure><h4>{html.escape(title)}</h4>{markup}<figcaption>{html.escape(caption)}</figcaption></figure>")
        parts += [_table_markup(*each) for each in after]
        return f'<div class="normscope"><style>{_CELL_STYLE}</style>' + "".join(parts) + "</div>"


def _table_markup(title, note, rows):
    """Its first rows."""
    def row(cells, kind):
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    shown = rows[1:1 + _MOST_ROWS]
    markup = f"<h4>{html.escape(title)}</h4>" if title else ""
    markup += f"<p>{html.escape(note)}</p>" if note else ""
    markup += f"<table><thead>{row(rows[0], 'th')}</thead><tbody>{''.join(row(each, 'td') for each in shown)}</tbody></table>"
    if len(shown) < len(rows) - 1:
        markup += f"<p>{len(shown)} of {len(rows) - 1} rows; the page that report(path) writes has all.</p>"
    return markup


def _copy_run(source, target):
    if os.path.exists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise ValueError(f"'{target}' is there already and not an empty directory; name a new one.")
    shutil.copytree(source, target, dirs_exist_ok=True)


# ---- tables

def _is_rows(value):
    return isinstance(value, list) and bool(value) and isinstance(value[0], Fields)


def _scalars(value, prefix=""):
    for name, each in value._items():
        if isinstance(each, Fields):
            yield from _scalars(each, f"{prefix}{name}.")
        elif each is None or isinstance(each, (bool, int, float, str)):
            yield prefix + name, each
        elif isinstance(each, dict):
            for entry, part in each.items():
                if isinstance(part, Fields):
                    yield from _scalars(part, f"{prefix}{name}.{entry}.")
                elif part is None or isinstance(part, (bool, int, float, str)):
                    yield f"{prefix}{name}.{entry}", part


# What a row of table() is, by default.
_ROWS = {
    "KeysResult": "sets.keys", "ScanResult": "windows.layers.heads", "VocabResult": "never_alone", "AblateResult": "rows",
    "HeatmapResult": "cells", "MasksResult": "masks", "CollapseResult": "curves", "EquilibriaResult": "weights",
    "MajorityResult": "runs", "TextResult": "runs", "PaperResult": "claims", "DoctorResult": "parts",
}
# Of what lies around a row, beside its place.
_AROUND = ("batch", "head", "layer", "name")


def _listed(value):
    return [name for name, each in value._items() if _is_rows(each)]


def _descend(value, path, before, rows, strict):
    name, inner = path[0], path[1:]
    found = value.__dict__.get(name)
    if not isinstance(found, list) or found and not isinstance(found[0], Fields):
        if strict or not before:
            raise ValueError(f"there is no list '{name}' of things with fields in {type(value).__name__}; "
                             f"lists: {', '.join(_listed(value)) or 'none'}")
        rows.append({**before, **dict(_scalars(value))})
        return
    word = name[:-1] if name.endswith("s") else name
    for index, each in enumerate(found):
        named = any(getattr(each, key, None) is not None for key in ("index", word, "where", "norm", "id", *_AROUND))
        place = {**before, **({} if named else {word: index})}
        if inner:
            place.update({key: entry for key, entry in _scalars(each) if key in _AROUND})
            _descend(each, inner, place, rows, strict)
        else:
            rows.append({**place, **dict(_scalars(each))})


def _rows(result, part):
    if part is not None and not isinstance(part, str):
        raise TypeError(f"part takes the name of a list, such as 'sets.keys', not {type(part).__name__}")
    result._items()
    rows = []
    _descend(result, (part or _ROWS[type(result).__name__]).split("."), {}, rows, part is not None)
    names = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return [{name: row.get(name) for name in names} for row in rows]


def _frame(rows, library):
    known = ("pandas", "polars", "none")
    if library not in (None, *known):
        raise ValueError(f"library takes {' or '.join(known)}, not {library!r}")
    for name in ("pandas", "polars") if library is None else (library,):
        if name == "none":
            break
        try:
            module = __import__(name)
        except ImportError:
            if library is not None:
                raise ImportError(f"table(library={name!r}) needs {name}, which is not installed; library='none' gives a list of dicts") from None
            continue
        # polars takes the types of columns from the first hundred rows, if it is not told otherwise.
        return module.DataFrame(rows, infer_schema_length=None) if name == "polars" else module.DataFrame(rows)
    return rows


# ---- classes

def _made(name, fields):
    """For the compiled part: an object of the class, or what a result is filled from."""
    made = object.__new__(_CLASSES[name] if not _CLASSES[name]._result else Fields)
    made.__dict__.update(fields)
    return made


def _class_of(name, fields, base):
    width = max((len(each[0]) for each in fields), default=0)
    lines = [f"{field:{width}}  {sentence}" + ("; None: it is not there" if sometimes else "")
             for field, _, sentence, sometimes in fields]
    members = {"__doc__": "\n".join(lines), "__module__": __name__, "_fields": tuple(each[0] for each in fields)}
    # A field that some have and others do not is None where it is not.
    if base is Fields:
        members.update({field: None for field, _, _, sometimes in fields if sometimes})
    return type(name, (base,), members)


_BY_COMMAND = {**{name.replace(".", " "): result for name, _, result in _core.questions()}, "doctor": "DoctorResult"}
_ANSWERS = set(_BY_COMMAND.values())
_CLASSES = {name: _class_of(name, fields, Result if name in _ANSWERS else Fields) for name, fields in _core.classes()}


class _MasksResult(_CLASSES["MasksResult"]):
    """Of one mask, what it is as a graph can also be had by name, as a dict has it: mask("causal", 8)["allowed"]."""

    _legacy = None

    def _graph(self):
        if self._legacy is None or "_known" in self.__dict__:
            return self.__dict__.get("_known", {})
        self._known = _core.mask_graph(*self._legacy[:2], seed=self._legacy[2], dense=self._legacy[3])
        return self._known

    def __getitem__(self, name):
        return self._graph()[name]

    def __contains__(self, name):
        return name in self._graph()

    def __iter__(self):
        return iter(self._graph())

    def keys(self):
        return self._graph().keys()


_MasksResult.__name__ = _MasksResult.__qualname__ = "MasksResult"
_MasksResult.__doc__ = f"{_CLASSES['MasksResult'].__doc__}\n\n{_MasksResult.__doc__}"
_CLASSES["MasksResult"] = _MasksResult
globals().update(_CLASSES)
__all__ = sorted(_CLASSES) + ["Fields", "Result", "load_run"]


def _result_of(answer, temporary=None):
    return _CLASSES[_BY_COMMAND[answer.command]](answer, temporary)


def load_run(directory):
    """A run that `out=`, `save` or the program's --out kept, as the result it was.

    >>> import normscope
    >>> normscope.heatmap(n="3:5", d=3, draws=2).save("kept")
    >>> normscope.load_run("kept").draws
    2
    """
    return _result_of(_core.load(os.fspath(directory)))
