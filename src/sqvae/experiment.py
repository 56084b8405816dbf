"""The former home of what is now in `config`, `modalities`, `tokenizers`, `runs`, `analysis`, `export` and `sweeps`.

Names are still found here for one release, with a warning that says where they are now.
"""

import warnings
from importlib import import_module

_ROOMS = ("config", "tokenizers", "modalities", "runs", "analysis", "export", "sweeps")


def __getattr__(name: str) -> object:
    for room in _ROOMS:
        home = import_module(f"sqvae.{room}")
        if name in home.__all__:
            warnings.warn(
                f"sqvae.experiment.{name} is now sqvae.{room}.{name}; the former name goes with the next release",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(home, name)
    raise AttributeError(f"module 'sqvae.experiment' has no attribute {name!r}; look in {', '.join(_ROOMS)}")
