"""Faster versions of computations in `model`: cpu/ without gradients and without torch, gpu/ by Triton.

`choice.fast` chooses between a Triton kernel and the plain function of the same signature.
"""
