"""One package for each kind of data: how it is found, modelled, judged, shown and exported.

`sqvae.modality` says what each of them answers for, and lists them.
"""
