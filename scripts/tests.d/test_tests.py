"""Rules of how tests are run and counted, each with a case that breaks it."""

import contextlib
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import tempfile
import unittest

import binaries
import fast
import slow

OK = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n"
BAD = "test a ... FAILED\ntest result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n"


class Counts(unittest.TestCase):
    def test_the_result_line_counts(self):
        self.assertEqual(binaries.counts(OK, 0), (3, 0))
        self.assertEqual(binaries.counts(BAD, 101), (3, 2))

    def test_a_test_without_a_harness_is_one(self):
        self.assertEqual(binaries.counts("fine\n", 0), (1, 0))
        self.assertEqual(binaries.counts("not fine\n", 1), (0, 1))

    def test_what_is_killed_has_failed_whatever_it_printed(self):
        self.assertEqual(binaries.counts("test a ... ok\n", -11), (0, 1))
        self.assertEqual(binaries.counts(OK, -6), (3, 1))


def script(case, text):
    """A test binary that is a script, as long as the case runs."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    path = os.path.join(folder.name, "some-0123")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, stat.S_IRWXU)
    return binaries.Binary("testing/lint", "some", path)


class Runs(unittest.TestCase):
    def test_it_runs_in_its_packages_folder(self):
        done = binaries.run(script(self, 'pwd; echo "$CARGO_MANIFEST_DIR $RUST_TEST_THREADS $*"'), ["--exact"], threads=2)
        folder = str(binaries.ROOT / "testing/lint")
        self.assertEqual(done.output, f"{folder}\n{folder} 2 --exact\n")
        self.assertEqual((done.passed, done.failed), (1, 0))

    def test_a_signal_is_named(self):
        done = binaries.run(script(self, "kill -9 $$"))
        self.assertEqual((done.passed, done.failed), (0, 1))
        self.assertIn("testing/lint some was ended by signal 9", done.output)

    def test_what_children_use_is_counted(self):
        done = binaries.run(script(self, "(i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done)"))
        self.assertGreater(done.cpu, 0.001)

    def test_a_list_has_the_tests_alone(self):
        def message(**fields):
            plain = {"reason": "compiler-artifact", "manifest_path": str(binaries.ROOT / "testing/lint/Cargo.toml")}
            return json.dumps({**plain, "profile": {"test": True}, **fields})

        file = tempfile.NamedTemporaryFile("w", encoding="utf-8")
        self.addCleanup(file.close)
        kind = lambda kind: {"name": "rules", "kind": [kind]}
        print(message(executable="/a", target=kind("test")), file=file)
        print(message(executable="/b", target=kind("lib")), file=file)
        print(message(executable=None, target=kind("lib")), file=file)
        print(message(executable="/c", target=kind("bin"), profile={"test": False}), file=file)
        print(json.dumps({"reason": "build-finished", "success": True}), file=file, flush=True)
        self.assertEqual([str(binary) for binary in binaries.listed(file.name)], ["testing/lint rules", "testing/lint unit-tests"])


class Halves(unittest.TestCase):
    def test_the_laboratorys_folders_and_what_depends_on_it_are_its_half(self):
        half = lambda package: binaries.half(binaries.Binary(package, "unit-tests", "/a"))
        for package in ("lab/cli", "preload/historic", "shm/oracle-file", "testing/benches"):
            self.assertEqual(half(package), "lab")
        for package in ("crates/cli", "preload/roots", "testing/lint"):
            self.assertEqual(half(package), "product")


class Failures(unittest.TestCase):
    def test_lines_of_what_passed_are_left_out(self):
        output = "test a ... ok\ntest b ... FAILED\ntest c ... ignored, slow: x\n---- b stdout ----\nwhy\n"
        self.assertEqual(fast.failures(output), "test b ... FAILED\n---- b stdout ----\nwhy")


class Again(unittest.TestCase):
    END = "\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"

    def failed(self, text, output="\nfailures:\n    a::b\n" + END):
        return binaries.Run(script(self, text), 1, 1, 0.0, 0.0, output)

    def test_a_test_that_passes_alone_is_named(self):
        done = self.failed('[ "$*" = "--exact a::b" ] || exit 1; echo "test result: ok. 1 passed; 0 failed; 0 ignored"')
        self.assertEqual(fast.by_chance([done]), [(done.binary, "a::b")])

    def test_a_test_that_fails_again_or_does_not_run_has_failed(self):
        self.assertEqual(fast.by_chance([self.failed("exit 101")]), [])
        none = 'echo "test result: ok. 0 passed; 0 failed; 0 ignored"'
        self.assertEqual(fast.by_chance([self.failed(none)]), [])

    def test_a_binary_that_died_and_many_failures_are_not_run_again(self):
        self.assertEqual(fast.by_chance([self.failed("exit 0", "ended by signal 11")]), [])
        self.assertEqual(fast.by_chance([self.failed("exit 0")] * 4), [])


class Slow(unittest.TestCase):
    LIST = """# Why.
[[part]]
name = "one"
tests = ["testing/lint rules slow::"]
inputs = ["a/**", "b.rs"]
passed = ""

[[part]]
name = "two"
tests = ["testing/lint rules"]
inputs = ["c/*"]
passed = ""
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.file = self.root / "slow.toml"
        self.write("slow.toml", self.LIST)
        for name in ("a/x/y.rs", "b.rs", "c/z.rs", "d.rs"):
            self.write(name, name)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def pass_all(self):
        for name, part in slow.parts(self.file).items():
            slow.note(self.file, name, slow.digest(part, self.root))

    def test_a_part_that_never_passed_is_due(self):
        self.assertEqual(slow.due(self.file, self.root), ["one", "two"])

    def test_a_part_that_passed_is_due_when_an_input_changes_comes_or_goes(self):
        self.pass_all()
        self.assertEqual(slow.due(self.file, self.root), [])
        self.write("d.rs", "no input")
        self.assertEqual(slow.due(self.file, self.root), [])
        self.write("a/x/y.rs", "changed")
        self.assertEqual(slow.due(self.file, self.root), ["one"])
        self.pass_all()
        self.write("c/new.rs", "")
        self.assertEqual(slow.due(self.file, self.root), ["two"])
        self.pass_all()
        (self.root / "b.rs").unlink()
        self.assertEqual(slow.due(self.file, self.root), ["one"])

    def test_a_part_that_passed_is_due_when_it_gets_other_tests(self):
        self.pass_all()
        self.write("slow.toml", self.file.read_text(encoding="utf-8").replace("slow::", "slow::more"))
        self.assertEqual(slow.due(self.file, self.root), ["one"])

    def test_noting_a_digest_leaves_the_rest_of_the_file(self):
        slow.note(self.file, "two", "0123")
        self.assertEqual(self.file.read_text(encoding="utf-8"), '0123"'.join(self.LIST.rsplit('"', 1)))

    def test_a_binary_that_is_not_there_is_refused_and_patterns_select_its_tests(self):
        built = [binaries.Binary("testing/lint", "rules", "/a")]
        self.assertEqual(slow.binary_of("testing/lint rules slow::", built), (built, ["slow::"]))
        with self.assertRaisesRegex(slow.Refused, "no test binary 'testing/lint other'"):
            slow.binary_of("testing/lint other", built)

    def test_a_part_that_is_not_there_never_passes(self):
        self.assertEqual(slow.main(["check", "no-such"]), 1)

    def test_without_a_pattern_all_tests_of_a_binary_run(self):
        binary = script(self, 'echo "test result: ok. 2 passed; 0 failed; 0 ignored"; test $# = 0')
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertTrue(slow.run_part({"tests": ["testing/lint some"]}, [binary]))
            self.assertFalse(slow.run_part({"tests": ["testing/lint some a::"]}, [binary]))

    def test_words_for_make_are_run_as_they_stand(self):
        self.assertTrue(slow.run_part({"tests": ["make -s -f /dev/null --eval=all:"]}, []))
        self.assertFalse(slow.run_part({"tests": ["make -q -f /dev/null --eval=all:;@false"]}, []))

    def test_what_make_test_runs_itself_is_checked_by_its_name_alone(self):
        self.assertFalse(slow.is_asked("laboratory", []))
        self.assertTrue(slow.is_asked("laboratory", ["laboratory"]))
        self.assertTrue(slow.is_asked("tracer", []))
        self.assertFalse(slow.is_asked("tracer", ["laboratory"]))

    def test_each_part_of_the_list_has_inputs_and_ignored_tests(self):
        for name, part in slow.parts(slow.FILE).items():
            self.assertEqual(sorted(part), ["inputs", "name", "passed", "tests"], name)
            for pattern in part["inputs"]:
                found = subprocess.run(
                    ["git", "ls-files", f":(glob){pattern}"], cwd=binaries.ROOT, check=True, stdout=subprocess.PIPE
                )
                self.assertTrue(found.stdout, f"{name}: no file is {pattern}")


def has_an_example(text):
    """Whether a fence opens in a documentation comment whose text rustdoc compiles, run or not."""
    fences = re.findall(r"^ *//[/!] ```(\w*)", text, re.MULTILINE)
    return any(kind in ("", "rust", "no_run", "should_panic", "compile_fail") for kind in fences[::2])


class Documented(unittest.TestCase):
    def test_every_package_with_an_example_is_named_in_the_makefile(self):
        makefile = (binaries.ROOT / "Makefile").read_text(encoding="utf-8")
        named = re.search(r"^DOCUMENTED := (.*)$", makefile, re.MULTILINE)[1].replace("-p heaptoll-", "").split()
        files = subprocess.run(["git", "ls-files", "*.rs"], cwd=binaries.ROOT, check=True, stdout=subprocess.PIPE)
        sources = [path for path in map(binaries.ROOT.joinpath, files.stdout.decode().split()) if path.is_file()]
        found = {path for path in sources if has_an_example(path.read_text(encoding="utf-8"))}
        folders = {path.relative_to(binaries.ROOT).as_posix().split("/src/")[0].split("/")[-1] for path in found}
        self.assertEqual(sorted(folder.removeprefix("heaptoll-") for folder in folders), sorted(named))


class Staged(unittest.TestCase):
    def test_only_the_laboratory_brings_the_collectors_of_java_and_those_that_move(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        for target, has_them in (("tool", False), ("lab", True)):
            words = ["make", "-n", target, "TRACER=", "MMTK=Makefile"]
            done = subprocess.run(words, cwd=binaries.ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            self.assertEqual("lab/laboratory/managers/" in done.stdout, has_them, target)
            self.assertEqual("install -m 755 Makefile" in done.stdout, has_them, target)


class Linted(unittest.TestCase):
    def compiler(self, manifest, *arguments):
        """What compiles a target of a package: the compiler's own name, and `-Dwarnings` for one that only warns."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("rustc", "clippy-driver"):
                path = pathlib.Path(folder, name)
                path.write_text('#!/bin/bash\nenv | grep ^CARGO_BIN_EXE && echo "${0##*/} $*"\n', encoding="utf-8")
                path.chmod(0o755)
            pathlib.Path(folder, "Cargo.toml").write_text(manifest, encoding="utf-8")
            command = [binaries.ROOT / "scripts/linted", f"{folder}/rustc", "--crate-name", "a", *arguments]
            environment = {**os.environ, "CARGO_MANIFEST_DIR": folder, "CARGO_BIN_EXE_a-b": "c"}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            self.assertIn("CARGO_BIN_EXE_a-b=c\n", done.stdout)
            words = done.stdout.splitlines()[-1].split()
            return words[0] + (" -Dwarnings" if words[-1] == "-Dwarnings" else "")

    def test_a_library_with_unit_tests_is_linted_with_them_alone_and_all_else_where_it_is_compiled(self):
        untested = "[lib]\ntest = false\n"
        self.assertEqual(self.compiler("", "--crate-type", "lib"), "rustc -Dwarnings")
        self.assertEqual(self.compiler(untested, "--crate-type", "lib"), "clippy-driver")
        for others in (["--test"], ["--crate-type", "bin"], ["--crate-type", "cdylib"], ["--crate-type", "proc-macro"]):
            self.assertEqual(self.compiler("", *others), "clippy-driver")


if __name__ == "__main__":
    unittest.main()
