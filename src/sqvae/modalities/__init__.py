"""One package for each kind of data. It contains how such data is found, modelled, evaluated, displayed and exported.

`sqvae.modality` defines the interface of these packages and lists them.
"""
