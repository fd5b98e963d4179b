"""Only the compiled part, without which the package installs all the same; the rest is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "pyelmo.kernels.cpu._cpu",
            ["src/pyelmo/kernels/cpu/cpu.c"],
            depends=["src/pyelmo/kernels/cpu/cpu_isa.h"],
            # Neither flag changes a result: they let the compiler use vectors where it need not set errno or trap.
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"],
            optional=True,
        )
    ]
)
