"""The manifest of a search, as it grows: a variant for each candidate that is measured, a repeat for each round."""

from __future__ import annotations

from pathlib import Path

from dnsrig.analysis.bisection.record import Candidate, Search
from dnsrig.analysis.bisection.trials import position_of
from dnsrig.experiment import model, preparation, trial_specs
from dnsrig.experiment.bisection import candidates
from dnsrig.rundir import Extension, Manifest, TrialKey, trial_dir


def begun(search: Search, experiment: str, scale: str, note: preparation.Note) -> Manifest:
    """The manifest of a new search: the good end alone, and no trials."""
    made = _of(search, search.candidates[0], experiment, scale, note)
    return made.model_copy(update={"order": [], "repeats": 1, "order_seed": search.seed + 1})


def with_candidate(manifest: Manifest, search: Search, position: int, note: preparation.Note) -> Manifest:
    """``manifest`` with the candidate at ``position``, which is built or installed. Raises what that raises."""
    candidate = search.candidates[position]
    if any(variant.parameters[_label(manifest)] == candidate.name for variant in manifest.variants):
        return manifest
    one = _of(search, candidate, manifest.experiment, manifest.scale, note)
    (variant,) = one.variants
    spec = one.specs[variant.id].model_copy(update={"run": manifest.run})
    known = {each.name: number for number, each in enumerate(search.candidates)}
    label = _label(manifest)
    variants = sorted([*manifest.variants, variant], key=lambda each: known[str(each.parameters[label])])
    changes = {
        "specs": {**manifest.specs, variant.id: spec},
        "servers": {**manifest.servers, **one.servers},
        "variants": variants,
        "axes": {label: [each.parameters[label] for each in variants]},
    }
    return manifest.model_copy(update=changes)


def with_round(manifest: Manifest, search: Search, positions: tuple[int, ...]) -> Manifest:
    """``manifest`` with one more trial of each candidate at ``positions``, in random order."""
    number = max((key.repeat for key in manifest.order), default=0) + 1
    of_candidate = {str(v.parameters[_label(manifest)]): v.id for v in manifest.variants}
    chosen = [of_candidate[search.candidates[position].name] for position in positions]
    seed = search.seed + number
    extension = Extension(first_repeat=number, order_seed=seed)
    changes = {
        "order": [*manifest.order, *trial_specs.order(chosen, number, seed, first=number)],
        "repeats": number,
        "extensions": [*manifest.extensions, *([extension] if number > 1 else [])],
    }
    return manifest.model_copy(update=changes)


def without_failed(manifest: Manifest, search: Search, directory: Path) -> Manifest:
    """``manifest`` without the unfinished trials of candidates that failed."""
    positions = position_of(manifest, search)

    def stays(key: TrialKey) -> bool:
        there = (trial_dir(directory, key.variant, key.repeat) / "trial.json").exists()
        return there or positions[key.variant] not in search.failed

    return manifest.model_copy(update={"order": [key for key in manifest.order if stays(key)]})


def _label(manifest: Manifest) -> str:
    (label,) = manifest.axes
    return label


def _of(search: Search, candidate: Candidate, experiment: str, scale: str, note: preparation.Note) -> Manifest:
    document = model.validate(search.document, "the experiment of the search")
    point = candidates.point(document, search.path, candidate)
    varied = document.model_copy(update={"matrix": {search.path: [candidate.value]}, "baseline": {}})
    made = preparation.assemble(experiment, scale, varied, [point], 1, search.seed, note)
    label = next(iter(made.axes))
    return made.model_copy(update={"axes": {label: [candidate.name]}, "baseline": {label: search.candidates[0].name}})
