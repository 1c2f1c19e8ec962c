"""The build hook behind `make wheel`: compiles with mypyc what pyproject.toml lists, for the platform wheel.

The sources stay in the wheel beside their compiled modules, so that HEADRACE_PURE=1 can choose them. Every module becomes a C
file of its own: as one file they are too much for a compiler. What has been compiled is kept in build/mypyc, and a module whose C file has
not changed is not compiled again.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GROUP = "headrace"
"""The shared library is `headrace__mypyc`; a module's own file only points into it."""


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg]
    """Off by default: HATCH_BUILD_HOOK_ENABLE_CUSTOM=true turns it on, and without it the wheel is the pure one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        source = Path(self.root, "src")
        modules = [
            path
            for pattern in self.config["modules"]
            for path in sorted(source.glob(pattern))
            if path.name != "__init__.py"
        ]
        tag = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
        built = Builder(source, Path(self.root, "build", "mypyc", tag)).build(modules)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for file in built.rglob(f"*{_SUFFIX}"):
            build_data["force_include"][str(file)] = str(file.relative_to(built))


_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


class Builder:
    def __init__(self, source: Path, work: Path) -> None:
        self._source = source
        self._work = work
        self._level = os.environ.get("HEADRACE_OPT_LEVEL", "2")

    def build(self, modules: list[Path]) -> Path:
        """The directory that has one extension module for each module, and the library they share."""
        generated, built = self._work / "c", self._work / "lib"
        extensions = self._generate([str(path.relative_to(self._source)) for path in modules], generated)
        expected = {built / (extension.name.replace(".", "/") + _SUFFIX) for extension in extensions}
        for stale in set(built.rglob(f"*{_SUFFIX}")) - expected:
            stale.unlink()
        headers = max((path.stat().st_mtime for path in generated.rglob("*.h")), default=0.0)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for extension in extensions:
                self._compile(extension, headers, built, pool)
        return built

    def _generate(self, modules: list[str], into: Path) -> list[Any]:
        """C files for the modules, each of which imports the others by its name below `src`."""
        import setuptools  # noqa: F401  # mypyc looks whether it is there
        from mypyc.build import mypycify

        into.mkdir(parents=True, exist_ok=True)
        os.chdir(self._source)
        return mypycify(
            # Strict types are `make types`; here the extras need not be installed.
            ["--config-file=", f"--cache-dir={self._work / 'types'}", "--ignore-missing-imports", *modules],
            multi_file=True,
            group_name=GROUP,
            target_dir=str(into),
            opt_level=self._level,
            debug_level="0",
        )

    def _compile(self, extension: Any, headers: float, built: Path, pool: ThreadPoolExecutor) -> None:
        from setuptools._distutils.ccompiler import new_compiler
        from setuptools._distutils.sysconfig import customize_compiler

        compiler = new_compiler()
        customize_compiler(compiler)
        include = [*extension.include_dirs, sysconfig.get_path("include")]
        objects = self._work / f"o{self._level}"

        def compiled(file: str) -> str:
            name = str(Path(file).relative_to(self._work).with_suffix(".o"))
            made = objects / name
            if not made.exists() or made.stat().st_mtime < max(Path(file).stat().st_mtime, headers):
                print(f"compiling {Path(file).name}", flush=True)
                command = [
                    *compiler.compiler_so,
                    *extension.extra_compile_args,
                    *(f"-I{path}" for path in include),
                ]
                made.parent.mkdir(parents=True, exist_ok=True)
                compiler.spawn([*command, "-c", file, "-o", f"{made}.new"])
                os.replace(f"{made}.new", made)
            return str(made)

        parts = list(pool.map(compiled, extension.sources))
        target = built / (extension.name.replace(".", "/") + _SUFFIX)
        newest = max(Path(part).stat().st_mtime for part in parts)
        if not target.exists() or target.stat().st_mtime < newest:
            target.parent.mkdir(parents=True, exist_ok=True)
            compiler.spawn([*compiler.linker_so, *parts, "-o", str(target)])
