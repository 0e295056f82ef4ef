//! Repositories that would have git run a program.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// Every setting of git-config(1) that names a program, each with PROGRAM for it.
const SETTINGS: &str = "
[alias] checkout = !PROGRAM
[browser \"x\"] cmd = PROGRAM
[core] fsmonitor = PROGRAM
[core] hooksPath = HOOKS
[core] sshCommand = PROGRAM
[core] gitProxy = PROGRAM
[core] pager = PROGRAM
[core] editor = PROGRAM
[core] askPass = PROGRAM
[core] alternateRefsCommand = PROGRAM
[core] attributesFile = ATTRIBUTES
[credential] helper = !PROGRAM
[diff] external = PROGRAM
[diff \"x\"] command = PROGRAM
[diff \"x\"] textconv = PROGRAM
[filter \"x\"] smudge = PROGRAM
[filter \"x\"] clean = PROGRAM
[filter \"x\"] required = true
[filter \"y\"] process = PROGRAM
[gpg] program = PROGRAM
[gpg \"ssh\"] program = PROGRAM
[gpg \"ssh\"] defaultKeyCommand = PROGRAM
[guitool \"x\"] cmd = PROGRAM
[imap] tunnel = PROGRAM
[init] templateDir = HOOKS
[interactive] diffFilter = PROGRAM
[man \"x\"] cmd = PROGRAM
[merge \"x\"] driver = PROGRAM
[mergetool \"x\"] cmd = PROGRAM
[difftool \"x\"] cmd = PROGRAM
[pager] checkout = PROGRAM
[remote \"origin\"] url = ext::PROGRAM
[remote \"origin\"] promisor = true
[remote \"origin\"] partialCloneFilter = blob:none
[remote \"origin\"] uploadpack = PROGRAM
[remote \"origin\"] receivepack = PROGRAM
[remote \"origin\"] vcs = PROGRAM
[sendemail] sendmailCmd = PROGRAM
[sequence] editor = PROGRAM
[submodule \"x\"] update = !PROGRAM
[tar \"x\"] command = PROGRAM
[trailer \"x\"] command = PROGRAM
[trailer \"x\"] cmd = PROGRAM
[uploadpack] packObjectsHook = PROGRAM
[url \"ext::PROGRAM\"] insteadOf = /
[protocol \"ext\"] allow = always
[include] path = INCLUDED
";
const HOOKS: [&str; 8] = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "fsmonitor-watchman",
    "pre-auto-gc",
    "sendemail-validate",
    "post-merge",
    "pre-commit",
];

/// A bare repository in `folder` that has one file, `a.c`, and its commit.
fn repository(folder: &Path) -> (PathBuf, String) {
    let work = folder.join("work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("a.c"), "int a;\n").unwrap();
    fs::write(work.join(".gitattributes"), "*.c filter=x diff=x merge=x\n.gitattributes filter=y\n").unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").current_dir(&work);
        let output =
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    (folder.join("bare.git"), git(&["rev-parse", "HEAD"]))
}

/// Has the repository run a program wherever git would; the program makes the file that is returned.
fn set_traps(folder: &Path, repository: &Path) -> PathBuf {
    let ran = folder.join("ran");
    let program = folder.join("program");
    let executable = |path: &Path, text: &str| {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    };
    executable(&program, &format!("#!/bin/sh\necho \"$0 $*\" >>{}\ncat\n", ran.display()));
    for hook in HOOKS {
        executable(&repository.join("hooks").join(hook), &fs::read_to_string(&program).unwrap());
    }
    let attributes = repository.join("info/attributes");
    fs::write(&attributes, "* filter=x diff=x\n").unwrap();
    let settings = SETTINGS
        .replace("PROGRAM", program.to_str().unwrap())
        .replace("HOOKS", repository.join("hooks").to_str().unwrap())
        .replace("ATTRIBUTES", attributes.to_str().unwrap())
        .replace("INCLUDED", repository.join("more").to_str().unwrap());
    fs::write(repository.join("more"), settings.replace("[include]", "[included]")).unwrap();
    let config = repository.join("config");
    let before = fs::read_to_string(&config).unwrap();
    fs::write(config, before + &settings).unwrap();
    ran
}

fn wanted(commit: &str) -> Wanted<'_> {
    Wanted { name: "made-up", url: "file:///nowhere", commit, paths: vec!["a.c"] }
}

/// Found by an attack: hook, monitor and filter of another user's repository ran as root, before any digest was compared.
#[test]
fn a_repository_runs_nothing_while_its_files_are_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, commit) = repository(folder.path());
    let ran = set_traps(folder.path(), &repository);
    // The traps work.
    let checkout =
        ["--work-tree", folder.path().to_str().unwrap(), "checkout", "--quiet", "HEAD", "--", "a.c"];
    let status = Command::new("git").arg("--git-dir").arg(&repository).args(checkout).output().unwrap();
    assert!(ran.exists(), "{status:?}");
    fs::remove_file(&ran).unwrap();

    for (at, commit) in [commit.as_str(), "0123456789012345678901234567890123456789"].iter().enumerate() {
        let scratch = folder.path().join(format!("scratch-{at}"));
        fs::create_dir(&scratch).unwrap();
        let tree = scratch.join("tree");
        let found = fetch(&wanted(commit), repository.to_str(), &tree, &scratch).unwrap();
        assert_eq!(fs::read_to_string(found.join("a.c")).unwrap(), "int a;\n");
        assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    }
}

#[test]
fn a_repository_of_another_user_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, commit) = repository(folder.path());
    let others = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534));
    if others(&repository).is_err() {
        return eprintln!("not root: a repository of another user cannot be made here");
    }
    let tree = folder.path().join("tree");
    fetch(&wanted(&commit), repository.to_str(), &tree, folder.path()).unwrap();
    assert!(tree.join("a.c").is_file());
}

#[test]
fn a_repository_that_takes_objects_from_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, commit) = repository(folder.path());
    fs::write(repository.join("objects/info/alternates"), "/elsewhere\n").unwrap();
    let error = fetch(&wanted(&commit), repository.to_str(), &folder.path().join("tree"), folder.path());
    assert!(matches!(error, Err(OriginalsError::Borrowed { .. })), "{error:?}");
}

#[test]
fn the_head_of_a_repository_is_read_without_git() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, commit) = repository(folder.path());
    assert_eq!(head_of(&repository), Some(commit.clone()));
    let branch = fs::read_to_string(repository.join("HEAD")).unwrap();
    let branch = branch.trim().strip_prefix("ref: ").unwrap();
    let _ = fs::remove_file(repository.join("packed-refs"));
    fs::create_dir_all(repository.join(branch).parent().unwrap()).unwrap();
    fs::write(repository.join(branch), format!("{commit}\n")).unwrap();
    assert_eq!(head_of(&repository), Some(commit.clone()));
    fs::write(repository.join("HEAD"), format!("{commit}\n")).unwrap();
    assert_eq!(head_of(&repository), Some(commit));
    fs::write(repository.join("HEAD"), "ref: ../../secret\n").unwrap();
    assert_eq!(head_of(&repository), None);
}
