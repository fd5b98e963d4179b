"""Only the compiled part, without which the package installs all the same; the rest is in pyproject.toml."""

import glob
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Two flags let the compiler use vectors where it need not set errno or trap. They change no result, but contracting
# products and sums does: with it, as GCC's default, all compilers give the same bits.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-Wno-psabi"]
# The C code calls nothing of Python, so one file serves every Python. Those without a global lock refuse the tag abi3.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildExt(build_ext):
    """On Windows, compile with clang-cl: cl.exe lacks the vector types of the C code."""

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            self.compiler.initialize()
            self.compiler.cc = "clang-cl"
            ext.extra_compile_args = [f"/clang:{flag}" for flag in FLAGS]
        super().build_extension(ext)


setup(
    ext_modules=[
        Extension(
            "pyelmo.kernels.cpu._cpu",
            ["src/pyelmo/kernels/cpu/cpu.c"],
            depends=glob.glob("src/pyelmo/kernels/cpu/*.h"),
            extra_compile_args=FLAGS,
            py_limited_api=ABI3,
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildExt},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
)
