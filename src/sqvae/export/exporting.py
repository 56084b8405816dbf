"""Tokenizers as files that run without this package: ONNX, and programs of torch.export."""

import contextlib
import importlib.util
import json
import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from sqvae.distributions.precision import without_float64
from sqvae.export.agreement import Agreement, agreement
from sqvae.export.description import described
from sqvae.export.exportable import Exportable, encoder_and_decoder
from sqvae.files import folder_within
from sqvae.tokenizers import Tokenizer
from sqvae.training import write_json

DESCRIPTION = "export.json"


class ExportError(Exception):
    """A tokenizer can't be exported; the message says why, and what to do."""


@dataclass(frozen=True)
class Format:
    """A kind of file. To add one: a line in :data:`FORMATS`."""

    ending: str
    needs: tuple[str, ...]
    """Packages that write it,"""
    runner: str
    """and the one that runs it."""
    save: Callable[[Exportable, ExportedProgram, Path, Mapping[str, Any]], None]
    open: Callable[[Path], Callable[..., Tensor]]
    any_length: bool = True
    """Whether it can hold recurrent layers for sequences of any length."""

    def file_of(self, half: str) -> str:
        """The name of the file that holds a half."""
        return f"{half}{self.ending}"


Plan: TypeAlias = Sequence[tuple[Format, Exportable]]
"""Which halves to write in which formats."""


@dataclass(frozen=True)
class Written:
    """A file, and how it compares with the library."""

    name: str
    bytes: int
    half: Exportable
    runner: str
    """What it was to be run by."""
    agreement: Agreement | None
    """None: that is not installed, so nothing was compared."""

    @property
    def signature(self) -> str:
        """What the program takes and gives, by names and shapes."""
        half = self.half
        given = ", ".join(f"{slot.name} ({', '.join(map(str, slot.shape))})" for slot in half.inputs)
        return f"{given} to {half.output.name} ({', '.join(map(str, half.output.shape))})"

    @property
    def comparison(self) -> str | None:
        """How it compares with the library, in words; None where nothing was compared."""
        found, half = self.agreement, self.half
        if found is None:
            return None
        shapes = ", ".join("x".join(map(str, shape)) for shape in found.shapes)
        if half.name == "decoder":
            result = f"all {found.outputs:,} values within {found.error:.1g}"
            if found.ties:
                result += f", but for {found.ties:,} pixels whose class is another, of two that are as likely"
        elif found.ties:
            result = f"{found.ties:,} of {found.outputs:,} codes are others, each on the border of two"
        else:
            result = f"all {found.outputs:,} codes are the same"
        return f"{self.name} in {self.runner} against the library, on {half.inputs[0].name} of {shapes}: {result}"


@dataclass(frozen=True)
class Exported:
    """What was written, and what could not be."""

    files: tuple[Written, ...]
    left_out: tuple[str, ...]
    """Sentences."""


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without what the exporter has to say about its own parts, and packages that are not needed here."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def export(tokenizer: Tokenizer, folder: str | Path, formats: Collection[str], *, overwrite: bool = False) -> Exported:
    """Write encoder and decoder in each format, and a description of them, to a folder.

    Every program is compared with the library before its file gets its name: nothing that differs is left behind.

    Arguments:
        formats: of :data:`FORMATS`.
        overwrite: whether files of the same names may be replaced.
    """
    tokenizer.check_one_level("programs give and take")
    chosen = [FORMATS[name] for name in formats]
    halves = encoder_and_decoder(tokenizer)
    for form in chosen:
        _check_installed(form)
    plan = [(form, half) for form in chosen for half in halves if form.any_length or half.for_onnx is None]
    folder = Path(folder)
    _check_free(folder, [*(form.file_of(half.name) for form, half in plan), DESCRIPTION], overwrite)
    description = described(tokenizer, halves) | {"files": _files(plan)}
    with folder_within(folder, "export") as aside:
        files = tuple(_written(aside, plan, description))
        for path in sorted(aside.iterdir()):
            path.replace(folder / path.name)
    left_out = [form.file_of(half.name) for form in chosen for half in halves if (form, half) not in plan]
    return Exported(files, tuple(f"{name} is left out: {TOO_LONG}" for name in left_out))


def _written(folder: Path, plan: Plan, description: Mapping[str, Any]) -> Iterator[Written]:
    programs: dict[str, ExportedProgram] = {}
    for form, half in plan:
        path = folder / form.file_of(half.name)
        if half.name not in programs:
            programs[half.name] = traced(half)
        form.save(half, programs[half.name], path, description)
        yield Written(path.name, path.stat().st_size, half, form.runner, _compared(form, half, path))
    write_json(folder / DESCRIPTION, description)


TOO_LONG = (
    "torch.export would fix the length of the decoder's recurrent layers to that of one example. As ONNX it takes any "
    "length"
)


@_quietly()
def traced(half: Exportable) -> ExportedProgram:
    """A half as torch exports it, for inputs of any size."""
    sizes = {**half.sizes, "batch": Dim("batch", min=1)}
    dynamic = tuple(
        {axis: sizes[word] for axis, word in enumerate(slot.shape) if isinstance(word, str)} for slot in half.inputs
    )
    with torch.no_grad(), without_float64():
        program: ExportedProgram = torch.export.export(
            half.for_onnx or half.module, half.examples[0], dynamic_shapes=dynamic
        )
        program = program.run_decompositions({})  # blocks without autocast become what is in them
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)  # it names folders of this machine
    return program


def _compared(form: Format, half: Exportable, path: Path) -> Agreement | None:
    if importlib.util.find_spec(form.runner) is None:
        return None
    return agreement(half, form.open(path))


def _check_installed(form: Format) -> None:
    missing = [name for name in form.needs if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(
            f"this needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            f"installed: pip install -e '.[export]'"
        )


def _check_free(folder: Path, names: Collection[str], overwrite: bool) -> None:
    taken = [name for name in names if (folder / name).exists()]
    if taken and not overwrite:
        raise ExportError(
            f"{', '.join(taken)} in {folder} {'is' if len(taken) == 1 else 'are'} there already, and left as "
            f"{'it is' if len(taken) == 1 else 'they are'}. Choose another folder, or pass `overwrite=True`"
        )


def _files(plan: Plan) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for form, half in plan:
        names.setdefault(half.name, []).append(form.file_of(half.name))
    return names


@_quietly()
def _save_onnx(half: Exportable, program: ExportedProgram, path: Path, description: Mapping[str, Any]) -> None:
    import onnx_ir

    inputs, outputs = [slot.name for slot in half.inputs], [half.output.name]
    converted = torch.onnx.export(program, dynamo=True, verbose=False, input_names=inputs, output_names=outputs)
    assert converted is not None
    model = converted.model
    for value, slot in zip((*model.graph.inputs, *model.graph.outputs), (*half.inputs, half.output), strict=True):
        value.shape = onnx_ir.Shape(slot.shape)
        value.doc_string = slot.meaning
    for node in model.graph.all_nodes():
        node.metadata_props.clear()  # where in the code it comes from, with folders of this machine
    model.producer_name, model.producer_version = "sqvae", description["sqvae"]
    model.metadata_props.update({f"sqvae.{key}": _text(value) for key, value in description.items()})
    converted.save(path, external_data=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _open_onnx(path: Path) -> Callable[..., Tensor]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [slot.name for slot in session.get_inputs()]

    def run(*inputs: Tensor) -> Tensor:
        given = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
        return torch.from_numpy(session.run(None, given)[0])

    return run


@_quietly()
def _save_torch(half: Exportable, program: ExportedProgram, path: Path, description: Mapping[str, Any]) -> None:
    torch.export.save(program, path, extra_files={DESCRIPTION: json.dumps(description)})


def _open_torch(path: Path) -> Callable[..., Tensor]:
    module = torch.export.load(path).module()

    def run(*inputs: Tensor) -> Tensor:
        with torch.inference_mode():
            output: Tensor = module(*inputs)
            return output

    return run


FORMATS: Mapping[str, Format] = {
    "onnx": Format(".onnx", ("onnx", "onnxscript"), "onnxruntime", _save_onnx, _open_onnx),
    "torch": Format(".pt2", (), "torch", _save_torch, _open_torch, any_length=False),
}
"""Every kind of file by name."""
