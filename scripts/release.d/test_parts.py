"""Rules that end a release, each with a case that breaks it. `make test` runs these; they compile and fetch nothing."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

import crates
import notices
import pack
import symbols


def package(folder, files, **fields):
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    plain = {"name": "a", "version": "1.0.0", "license": "MIT", "license_file": None, "authors": ["An Author <a@b>"]}
    return {**plain, "manifest_path": os.path.join(folder, "Cargo.toml"), **fields}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)


class Licences(Folder):
    def refused(self, files, pattern, **fields):
        with self.assertRaisesRegex(crates.Refused, pattern):
            crates.Rules().check(package(self.folder, files, **fields))

    def test_a_crate_without_a_licence_file_is_refused(self):
        self.refused({}, "a 1.0.0 carries no licence file")

    def test_a_crate_without_a_licence_is_refused(self):
        self.refused({"LICENSE": "text"}, "states no licence", license=None)

    def test_a_crate_under_an_unknown_licence_is_refused(self):
        for expression in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "SSPL-1.0/GPL-2.0", "Apache-2.0 AND (MIT OR X)"]:
            self.refused({"LICENSE": "text"}, "does not allow", license=expression)

    def test_one_allowed_licence_of_a_choice_is_enough(self):
        for expression in ["GPL-3.0-only OR MIT", "Unlicense/MIT", "Zlib AND MIT", "Apache-2.0 WITH LLVM-exception OR X"]:
            files, terms = crates.Rules().check(package(self.folder, {"LICENSE": "text"}, license=expression))
            self.assertEqual(([os.path.basename(path) for path in files], terms), (["LICENSE"], None))

    def test_terms_that_stand_in_are_one_of_the_choice(self):
        self.refused({}, "is not one of these", name="enum-map", license="MIT")

    def test_licences_of_code_that_a_crate_brings_along_are_found(self):
        files = {"LICENSE-MIT": "1", "vendor/COPYING": "2", "tests/LICENSE": "3", "src/license.rs": "4"}
        found = crates.licence_files(package(self.folder, files))
        self.assertEqual([os.path.relpath(path, self.folder) for path in found], ["LICENSE-MIT", "vendor/COPYING"])

    def test_empty_files_are_no_notice(self):
        with self.assertRaisesRegex(crates.Refused, "empty"):
            notices.notices([package(self.folder, {"LICENSE": " \n"})], crates.Rules())

    def test_a_text_that_stands_in_names_the_authors(self):
        rules = os.path.join(self.folder, "rules.toml")
        pathlib.Path(rules).write_text('allowed = ["MIT"]\nwithout-file = [{ crate = "b", terms = "MIT" }]\n')
        text = notices.notices([package(self.folder, {}, name="b", license="MIT")], crates.Rules(rules))
        self.assertIn("Copyright (c) An Author\n", text)
        self.assertNotIn("heaptoll authors", text)


class Closure(unittest.TestCase):
    def test_what_runs_while_compiling_is_not_linked(self):
        kinds = {"root": ["bin"], "lib": ["lib"], "macro": ["proc-macro"], "tool": ["lib"], "of-macro": ["lib"]}
        uses = {"root": [("lib", None), ("macro", None), ("tool", "build")], "macro": [("of-macro", None)]}
        found = {
            "packages": [{"id": name, "name": name, "targets": [{"kind": kind}]} for name, kind in kinds.items()],
            "workspace_members": ["root"],
            "resolve": {
                "nodes": [
                    {"id": name, "deps": [{"pkg": to, "dep_kinds": [{"kind": kind}]} for to, kind in uses.get(name, [])]}
                    for name in kinds
                ]
            },
        }
        self.assertEqual(sorted(each["name"] for each in crates.closure(found, ["root"])), ["lib", "root"])


class Symbols(Folder):
    def compiled(self, source, *flags):
        path = os.path.join(self.folder, "made.so")
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-o", path, "-", "-x", "none", *flags]
        subprocess.run(command, input=source, text=True, check=True)
        return path

    def test_a_symbol_of_a_later_glibc_is_a_fault(self):
        stub = os.path.join(self.folder, "libstub.so")
        script = os.path.join(self.folder, "map")
        with open(script, "w", encoding="utf-8") as file:
            file.write("GLIBC_2.99 { later; };")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-o", stub, "-", f"-Wl,--version-script={script},-soname,libc.so.6"],
            input="int later(void){return 1;}", text=True, check=True,
        )
        path = self.compiled("int later(void);int f(void){return later();}", stub)
        found, glibc = symbols.faults(path, "made.so")
        self.assertEqual((found, glibc), (["made.so: later is of GLIBC_2.99"], (2, 99)))

    def test_a_symbol_of_no_library_is_a_fault_unless_it_is_weak(self):
        path = self.compiled("int lost(void);__attribute__((weak)) int may(void);int f(void){return may ? may() : lost();}")
        self.assertEqual(symbols.faults(path, "a.so")[0], ["a.so: lost is in none of the libraries that it was linked with"])

    def test_a_library_that_a_system_may_lack_is_a_fault_unless_it_is_listed(self):
        stub = os.path.join(self.folder, "libsqlite3.so.0")
        subprocess.run(
            ["cc", "-shared", "-x", "c", "-o", stub, "-", "-Wl,-soname,libsqlite3.so.0"], input="int g(void){return 1;}", text=True, check=True
        )
        path = self.compiled("int f(void){return 1;}", "-Wl,--no-as-needed", stub)
        self.assertEqual(symbols.faults(path, "other.so")[0], ["other.so: needs libsqlite3.so.0, which a system may lack"])
        self.assertEqual(symbols.faults(path, "lib/heaptoll/programs/queries")[0], [])


class Packs(Folder):
    def tree(self):
        tree = os.path.join(self.folder, "tree")
        package(os.path.join(tree, "share/doc/heaptoll"), {"NOTICE.md": "n", "LICENSE-MIT": "m"})
        package(os.path.join(tree, "bin"), {"heaptoll": "#!/bin/sh\n"})
        os.chmod(os.path.join(tree, "bin/heaptoll"), 0o755)
        return tree

    def test_the_same_tree_gives_the_same_bytes(self):
        tree, sums = self.tree(), []
        for out in ["a", "b"]:
            os.mkdir(os.path.join(self.folder, out))
            os.utime(os.path.join(tree, "bin/heaptoll"), (len(sums), len(sums)))
            paths = [pack.tarball(tree, os.path.join(self.folder, out), "n", 86400 * 9000)]
            paths.append(pack.wheel(tree, "1.0", os.path.join(self.folder, out), 86400 * 9000))
            sums.append([hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() for path in paths])
        self.assertEqual(sums[0], sums[1])

    def test_programs_stay_programs_and_belong_to_root(self):
        path = pack.tarball(self.tree(), self.folder, "n", 0)
        with tarfile.open(path) as tar:
            members = {member.name: (oct(member.mode), member.uname) for member in tar}
        self.assertEqual(members["n/bin/heaptoll"], ("0o755", "root"))
        self.assertEqual(members["n/share/doc/heaptoll/NOTICE.md"], ("0o644", "root"))
        self.assertEqual(members["n"], ("0o755", "root"))

    def test_a_wheel_lists_its_files_with_their_digests(self):
        path = pack.wheel(self.tree(), "1.0", self.folder, 86400 * 9000)
        with zipfile.ZipFile(path) as archive:
            record = archive.read("heaptoll-1.0.dist-info/RECORD").decode().splitlines()
            self.assertEqual(sorted(line.split(",")[0] for line in record), sorted(archive.namelist()))
            self.assertEqual(archive.getinfo("heaptoll/installation/bin/heaptoll").external_attr >> 16, 0o100755)


class Staging(Folder):
    # `make tool` after `make lab` left these: an installation of the product alone had half a laboratory.
    def test_what_the_laboratory_staged_leaves_the_stage_and_managers_of_others_stay(self):
        kept = ["stage/lib/heaptoll/managers/mimalloc3.so", "stage/lib/heaptoll/managers/bdw-nofree.toml", "release/heaptoll"]
        gone = ["release/heaptoll-lab", "stage/lib/heaptoll/heaptoll-mmtk", "stage/lib/heaptoll/layers/oracle.toml"]
        gone += [f"stage/lib/heaptoll/managers/{name}" for name in ["lea.so", "lea.toml", "jvm-g1.toml"]]
        for inner in kept + gone:
            path = pathlib.Path(self.folder, inner)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        # Not with the variables of a make that runs this.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        tree = pathlib.Path(__file__).parents[2]
        subprocess.run(["make", "-s", "-C", tree, "without-lab", f"TARGET={self.folder}"], env=environment, check=True)
        there = [path.relative_to(self.folder).as_posix() for path in pathlib.Path(self.folder).rglob("*") if path.is_file()]
        self.assertEqual(sorted(there), sorted(kept))


if __name__ == "__main__":
    unittest.main()
