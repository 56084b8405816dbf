"""``python -m sqvae`` is the command ``sqvae``."""

from sqvae.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
