"""One kustomization file: what it gathers, and the steps that it then takes, in kustomize's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from renderer.bases import contents, paths
from renderer.bases.files import NAMES, Files, explained
from renderer.bases.steps import Marking, Opaque, Renaming
from renderer.bases.values import BaseProblem, Step, pinned
from renderer.model import Body, Document, Origin, Position, TreeError
from renderer.values import Value, replace

OPERATORS = frozenset({"HyperConverged", "KubeVirt"})
"""The kinds that are followed."""

MAX_STEPS = 2_000

_API = {"Kustomization": "kustomize.config.k8s.io/v1beta1", "Component": "kustomize.config.k8s.io/v1alpha1"}
_FOLLOWED = (
    *("resources", "bases", "components", "patches", "patchesStrategicMerge", "patchesJson6902"),
    *("namespace", "namePrefix", "nameSuffix", "labels", "commonLabels", "commonAnnotations"),
)
_HARMLESS = (  # they touch other kinds, the order, or nothing but kustomize's own notes
    *("apiVersion", "kind", "metadata", "configMapGenerator", "secretGenerator", "generatorOptions", "helmGlobals"),
    *("images", "imageTags", "replicas", "sortOptions", "buildMetadata", "validators"),
)
_CREATING = ("generators", "helmCharts", "helmChartInflationGenerator")
_CHANGING = ("replacements", "vars", "transformers")
_PERVASIVE = ("crds", "openapi", "configurations")  # what one folder sets, its parents go by: MergeAccumulator
_KNOWN = {name.lower(): name for name in (*_FOLLOWED, *_HARMLESS, *_CREATING, *_CHANGING, *_PERVASIVE)}


class Reference(Value, frozen=True):
    """A path or address that a kustomization lists."""

    text: str
    origin: Origin


@dataclass(slots=True)
class Kustomization:
    """What one kustomization file says; filled while it is read, not changed afterwards."""

    origin: Origin
    component: bool = False
    resources: list[Reference] = field(default_factory=list)
    components: list[Reference] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    creating: list[BaseProblem] = field(default_factory=list)
    pervasive: list[BaseProblem] = field(default_factory=list)
    problems: list[BaseProblem] = field(default_factory=list)


class Kustomizations:
    """The kustomizations of a tree, each read once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, Kustomization] = {}

    def load(self, folder: str, origin: Origin | None) -> Kustomization | list[BaseProblem]:
        """The kustomization of a folder; `origin` is what refers to the folder."""
        if folder in self._known:
            return self._known[folder]
        try:
            found = self._document(folder)
        except TreeError as error:
            return [explained(error, folder or ".", origin)]
        if isinstance(found, list):
            return [replace(each, origin=each.origin or origin) for each in found]
        self._known[folder] = _Reading(self._files, folder, found).kustomization
        return self._known[folder]

    def _document(self, folder: str) -> Document | list[BaseProblem]:
        names = self._files.names(folder)
        found = [name for name in NAMES if name in names]
        if not found:
            message = f"{folder or '.'} has no kustomization.yaml" if names else f"the folder {folder} does not exist"
            return [BaseProblem("base/missing", message, "Correct the path, or commit the file.")]
        path = f"{folder}/{found[0]}" if folder else found[0]
        if len(found) > 1:
            message = f"{folder or '.'} has several kustomization files: {', '.join(found)}"
            return [BaseProblem("base/unreadable", message, "Keep one: kustomize refuses several.", _top(path))]
        parsed = self._files.documents(path)
        if parsed.problems:
            return list(parsed.problems)
        if not parsed.documents:
            return [BaseProblem("base/unreadable", "the kustomization is empty", "List resources in it.", _top(path))]
        return parsed.documents[0]


class _Reading:
    """One pass over the fields of a kustomization."""

    def __init__(self, files: Files, folder: str, document: Document) -> None:
        self._files = files
        self._folder = folder
        self._root = Origin(document)
        self._fields: dict[str, tuple[Origin, Any]] = {}
        self.kustomization = Kustomization(self._root)
        self._sort_fields(document.data)
        self._check_kind(document.data)
        self._gather()
        self._transform()
        self._set_apart()

    def _sort_fields(self, data: Body) -> None:
        for key, value in data.items():
            name = _KNOWN.get(key.lower())  # kustomize takes names of fields in any case
            if name is None:
                message = f"kustomize knows no field {key}"
                self._problem(message, "Correct its name, or remove it.", Origin(self._root.document, (key,), key=True))
            elif value not in (None, [], {}, ""):
                self._fields[name] = (self._root.below(key), value)

    def _check_kind(self, data: Body) -> None:
        kind = data.get("kind") or "Kustomization"
        self.kustomization.component = kind == "Component"
        if not isinstance(kind, str) or kind not in _API:
            message = f"kind is {kind}" if isinstance(kind, str) else "kind is not a text: is this a template?"
            self._problem(message, "It must be Kustomization or Component.", self._root.below("kind"))
        elif data.get("apiVersion") not in (None, "", _API[kind]):
            self._problem(f"apiVersion is not that of a {kind}", f"Write {_API[kind]}.", self._root.below("apiVersion"))

    def _gather(self) -> None:
        for name in ("resources", "bases"):
            self.kustomization.resources += [Reference(text, origin) for text, origin in self._texts(name)]
        self.kustomization.components += [Reference(text, origin) for text, origin in self._texts("components")]

    def _transform(self) -> None:
        """The order is kustomize's own: api/internal/target/kusttarget_configplugin.go."""
        steps = self.kustomization.steps
        for text, origin in self._texts("patchesStrategicMerge"):
            steps += contents.strategic_steps(self._files, self._folder, text, origin)
        for entry, origin in self._mappings("patches"):
            steps += contents.patch_steps(self._files, self._folder, entry, origin)
        for name, key in (("namespace", "namespace"), ("namePrefix", "prefix"), ("nameSuffix", "suffix")):
            for text, origin in self._text(name):
                steps.append(Renaming(origin, **{key: text}))
        for entry, origin in self._mappings("labels"):
            steps += self._labels(entry, origin)
        for name, field_name in (("commonLabels", "labels"), ("commonAnnotations", "annotations")):
            steps += [self._marking(value, origin, field_name) for value, origin in self._given(name)]
        for entry, origin in self._mappings("patchesJson6902"):
            steps += contents.patch_steps(self._files, self._folder, entry, origin, legacy=True)
        if len(steps) > MAX_STEPS:
            self._problem(f"more than {MAX_STEPS} patches in one kustomization", "Split it up.", self._root)
            steps.clear()

    def _labels(self, entry: Body, origin: Origin) -> list[Step]:
        if entry.get("fields") or entry.get("fieldSpecs"):
            message = "labels with fields of their own may change this object"
            help = "Leave out fields: metadata.labels is always labelled."
            return [Opaque(BaseProblem("base/unreadable", message, help, origin))]
        pairs = entry.get("pairs")
        return [self._marking(pairs, origin.below("pairs"), "labels")] if pairs else []

    def _marking(self, pairs: object, origin: Origin, name: str) -> Step:
        if isinstance(pairs, dict) and all(isinstance(text, str) for text in pairs.values()):
            return Marking(name, pairs)
        return Opaque(BaseProblem("base/unreadable", f"{name} must be texts", "Quote the values.", origin))

    def _set_apart(self) -> None:
        """What only kustomize can follow, by what it could do to the object."""
        for name in _CHANGING:
            self.kustomization.steps += [Opaque(_opaque(name, "may change", origin)) for _, origin in self._given(name)]
        for name in _CREATING:
            self.kustomization.creating += [_opaque(name, "may create", origin) for _, origin in self._given(name)]
        for name in ("crds", "openapi"):
            self.kustomization.pervasive += [_opaque(name, "may change", origin) for _, origin in self._given(name)]
        for text, origin in self._texts("configurations"):
            if not self._spares_operators(text):
                self.kustomization.pervasive.append(_opaque(f"the configuration {text}", "may change", origin))

    def _spares_operators(self, reference: str) -> bool:
        path = paths.resolve(self._folder, reference)
        if path is None or paths.remote(reference):
            return False
        try:
            parsed = self._files.documents(path)
        except TreeError:
            return False
        return not parsed.problems and not any(_reaches(each.data) for each in parsed.documents)

    def _given(self, name: str) -> Iterator[tuple[Any, Origin]]:
        if name in self._fields:
            origin, value = self._fields[name]
            yield value, origin

    def _text(self, name: str) -> Iterator[tuple[str, Origin]]:
        for value, origin in self._given(name):
            if isinstance(value, str):
                yield value, origin
            else:
                self._problem(f"{name} must be a text", "Quote it.", origin)

    def _texts(self, name: str) -> Iterator[tuple[str, Origin]]:
        for value, origin in self._items(name):
            if isinstance(value, str) and value:
                yield value, origin
            else:
                self._problem(f"{name} is a list of texts", "Write each path as an item of its own.", origin)

    def _mappings(self, name: str) -> Iterator[tuple[Body, Origin]]:
        for value, origin in self._items(name):
            if isinstance(value, dict):
                yield value, origin
            else:
                self._problem(f"{name} is a list of mappings", "Write each entry as an item of its own.", origin)

    def _items(self, name: str) -> Iterator[tuple[Any, Origin]]:
        for value, origin in self._given(name):
            if not isinstance(value, list):
                self._problem(f"{name} must be a list", "Begin each item with a dash.", origin)
                continue
            for index, item in enumerate(value):
                yield item, origin.below(index)

    def _problem(self, message: str, help: str, origin: Origin) -> None:
        self.kustomization.problems.append(BaseProblem("base/unreadable", message, help, origin))


def _top(path: str) -> Origin:
    return pinned(Position(path))


def _opaque(what: str, does: str, origin: Origin) -> BaseProblem:
    message = f"{what} {does} the object, which cannot be told without running kustomize"
    help = "Declare the object in a plain file, and change it by patches."
    return BaseProblem("base/unreadable", message, help, Origin(origin.document, origin.path, key=True))


def _reaches(data: Any) -> bool:
    """Whether a transformer configuration names a field of every kind, or of one that is followed."""
    if isinstance(data, list):
        return any(_reaches(item) for item in data)
    if not isinstance(data, dict):
        return False
    if "path" in data:
        return data.get("kind") in (None, "", *OPERATORS)
    return any(_reaches(value) for value in data.values())
