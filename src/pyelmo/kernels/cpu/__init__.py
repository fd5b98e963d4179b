"""The computation of embeddings on a CPU, without gradients: float32 or int8.

compiled.py          the functions of cpu.c, called through ctypes
cpu.c, cpu_*.h       their C source, compiled for several instruction sets
plain.py             the same names and arguments in numpy: the reference, and the fallback without a compiler
state.py             the state of an LSTM between two runs
quantise.py          weights as int8 with a scale for each row
"""
