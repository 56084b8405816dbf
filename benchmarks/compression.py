"""What digits cost as compressed files, on real files: with a learned prior, and without one.

sqvae reproduce generation --only sq-vae-1 --runs RUNS    trains the model and its prior, MNIST, an hour or so
python -m benchmarks.compression --runs RUNS              prints the table
python -m benchmarks.compression --runs RUNS --out FILE.md   writes it as well
"""

import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.side_by_side import Result, arguments, report
from sqvae.codec import Adaptive, CompressedFile, CompressedWriter, Expectation, Learned
from sqvae.paper import ARTEFACTS, SCALES, plan
from sqvae.runs import Generator, load_generator, prepare
from sqvae.sweeps import Planned

DIGITS = 1000
BATCH = 64
METHOD = "sq-vae-1"


def planned_model(scale: str) -> Planned:
    """The model with its prior that is measured."""
    stages = plan(ARTEFACTS["generation"], SCALES[scale], [0])
    return next(one for one in stages if one.sequel is not None and one.tags["method"] == METHOD)


def generator_of(planned: Planned, runs: Path) -> Generator:
    """The same as `sqvae reproduce generation` has left it."""
    assert planned.sequel is not None
    run = runs / planned.model.name
    if not run.exists():
        raise SystemExit(f"there is no {run}: run `sqvae reproduce generation --runs {runs}` first")
    return load_generator(run, run / f"prior-{planned.sequel.prior_key}")


def written(path: Path, expectation: Expectation, codes: Tensor, fingerprint: str) -> int:  # (n, h, w)
    """Compress codes, and return the bytes of the file."""
    with CompressedWriter(path, expectation, fingerprint=fingerprint, names=False) as writer:
        writer.write([""] * len(codes), codes)
    return path.stat().st_size


def read(path: Path, expectation: Expectation, fingerprint: str) -> Tensor:  # -> (n, h, w)
    """The codes of a file."""
    return torch.cat([codes for _, codes in CompressedFile.open(path, expectation, fingerprint=fingerprint).batches()])


def measured(generator: Generator, codes: Tensor, folder: Path) -> list[Result]:
    """All rows, of the codes of some pictures: (n, h, w)."""
    tokenizer, number = generator.tokenizer, len(codes)
    learned = Learned(generator.prior, batch_size=BATCH)
    plain = codes[0].numel() * math.log2(tokenizer.codebook_size) / 8
    alone = [written(folder / "one.sqz", learned, own, tokenizer.fingerprint) for own in codes.split(1)]
    start = time.perf_counter()
    together = written(folder / "all.sqz", learned, codes, tokenizer.fingerprint)
    middle = time.perf_counter()
    again = read(folder / "all.sqz", learned, tokenizer.fingerprint)
    seconds = middle - start, time.perf_counter() - middle
    adaptive = written(folder / "plain.sqz", Adaptive(tokenizer.codebook_size), codes, tokenizer.fingerprint)
    changed, smaller = int((again != codes).sum()), sum(size < plain for size in alone)
    share, lost = smaller / number, changed / codes.numel()
    once, back = (f"{number / spent:.0f} a second" for spent in seconds)
    one, each = f"a digit in a file of its own, mean of {number:,}", f"{number:,} digits in one file, each"
    return [
        smaller_than(f"{one} / log2 K a code", statistics.fmean(alone), plain),
        Result(
            "such files that are smaller / all", f"{smaller:,}", f"{number:,}", f"{share:.3f}", "> 0.5", share > 0.5
        ),
        smaller_than(f"{each}: with the prior / log2 K a code", together / number, plain),
        smaller_than(f"{each}: with the prior / with the codes before", together / number, adaptive / number),
        Result(
            "codes that came back otherwise / all", f"{changed:,}", f"{codes.numel():,}", f"{lost:g}", "0", lost == 0
        ),
        Result("speed: compressed / decompressed", once, back, f"{seconds[1] / seconds[0]:.2f}", "none", True),
    ]


def smaller_than(what: str, first: float, second: float) -> Result:
    """A row of sizes in bytes, the first of which is to be smaller."""
    ratio = first / second
    return Result(what, f"{first:.1f} bytes", f"{second:.1f} bytes", f"{ratio:.2f}", "< 1", ratio < 1)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv, runs="the folder of the runs that `sqvae reproduce generation` has trained")
    torch.set_num_threads(1)
    planned = planned_model("smoke" if options.quick else "short")
    generator = generator_of(planned, options.runs)
    tokenizer = generator.tokenizer
    pictures = prepare(tokenizer.experiment, announce=lambda text: None).part("test").spread(DIGITS)
    parts = torch.arange(len(pictures)).split(BATCH)
    codes = torch.cat([tokenizer.encode(pictures.take(part)) for part in parts]).cpu()
    with tempfile.TemporaryDirectory() as folder:
        results = measured(generator, codes, Path(folder))
    height, width = codes.shape[1:]
    model, prior = tokenizer.experiment, generator.experiment
    setting = (
        f"{len(codes):,} pictures of the test set of {Path(model.data.source).name}, {height}x{width} codes each, K = "
        f"{tokenizer.codebook_size}, seed {model.seed}. The prior is a {prior.prior.name} of {prior.training.epochs} "
        f"epochs. Sizes are those of files on the disk, without names of pictures."
    )
    report("Benchmarks of compression", setting, results, options.out, by="python -m benchmarks.compression")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
