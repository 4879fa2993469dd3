use super::*;

/// A folder that goes with its test, with a script and a `brunt.toml` in it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, file: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("brunt-inherited-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), file).unwrap();
        Self(folder)
    }

    /// What a line inherits; `SCRIPT` stands for the script.
    fn inherits(&self, line: &str, variables: &[(&str, &str)]) -> Result<Vec<String>> {
        let line = line.replace("SCRIPT", self.0.join("shop.lua").to_str().unwrap());
        let words: Vec<OsString> =
            shlex::split(&format!("brunt {line}")).unwrap().into_iter().map(Into::into).collect();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        let definitions = crate::parser::definitions(&crate::built_in())?;
        let inherited = Inherited::read(&definitions, &|| Ok(definitions.clone()), &words, &variables)?;
        let applied = inherited.applied(words.clone());
        Ok(applied.into_iter().filter(|word| !words.contains(word)).map(|word| word.into_string().unwrap()).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SHARED: &str = "timeout = \"2s\"\nthreshold = ['p99<50ms', 'error_rate<1%']\ninsecure = true\nlatency = false\n\
                      [run]\nscale = \"2x\"\nthreads = 1\n[bench]\nrate = 2_000\nthreads = 3\n";

#[test]
fn a_file_beside_the_script_gives_flags_by_command() {
    let folder = Folder::new("beside", SHARED);
    let common = ["--insecure", "--threshold=error_rate<1%", "--threshold=p99<50ms", "--timeout=2s"];
    let sorted = |line: &str| {
        let mut words = folder.inherits(line, &[]).unwrap();
        words.sort();
        words
    };
    assert_eq!(sorted("run SCRIPT"), [&common[..1], &["--scale=2x", "--threads=1"], &common[1..]].concat());
    assert_eq!(sorted("-s SCRIPT http://a/"), [&common[..1], &["--rate=2000", "--threads=3"], &common[1..]].concat());
    assert_eq!(sorted("find -s SCRIPT http://a/"), common);
    // A flood without a script has no file beside it, and other commands make no runs.
    assert_eq!(sorted("http://a/"), [""; 0]);
    assert_eq!(sorted("serve http"), [""; 0]);
}

#[test]
fn the_command_line_comes_before_the_environment_and_that_before_the_file() {
    let folder = Folder::new("order", SHARED);
    let from = |line: &str, variables: &[(&str, &str)], flag: &str| {
        let words = folder.inherits(line, variables).unwrap();
        words.into_iter().filter(|word| word.starts_with(flag)).collect::<Vec<_>>()
    };
    let variable = [("BRUNT_TIMEOUT", "3s")];
    assert_eq!(from("run SCRIPT", &[], "--timeout"), ["--timeout=2s"]);
    assert_eq!(from("run SCRIPT", &variable, "--timeout"), ["--timeout=3s"]);
    assert_eq!(from("run --timeout 4s SCRIPT", &variable, "--timeout"), [""; 0]);
    // What several values have is replaced whole.
    assert_eq!(from("run --threshold 'p50<1s' SCRIPT", &[], "--threshold"), [""; 0]);
    // A flag that cannot stand beside one of the command line gives way.
    assert_eq!(from("--plan a.json", &[("BRUNT_RATE", "5"), ("BRUNT_QUIET", "1")], "--"), ["--quiet"]);
    // Another file, or none.
    assert_eq!(from("run SCRIPT", &[("BRUNT_CONFIG", "")], "--"), [""; 0]);
    let named = folder.0.join(FILE).display().to_string();
    assert_eq!(from("http://a/", &[("BRUNT_CONFIG", &named)], "--rate"), ["--rate=2000"]);
}

#[test]
fn switches_of_the_environment_are_on_or_off() {
    let folder = Folder::new("switches", "");
    let with = |value| folder.inherits("http://a/", &[("BRUNT_RECONNECT", value)]);
    assert_eq!(with("1").unwrap(), ["--reconnect"]);
    assert_eq!(with("0").unwrap(), [""; 0]);
    assert_eq!(with("").unwrap(), [""; 0]);
    assert!(with("maybe").unwrap_err().to_string().contains("BRUNT_RECONNECT=1"));
    // Defaults are read where they are needed.
    assert_eq!(folder.inherits("http://a/", &[("BRUNT_NO_SAVE", "1"), ("BRUNT_SEEDS", "9")]).unwrap(), [""; 0]);
}

#[test]
fn what_is_wrong_in_the_file_is_told_with_its_place() {
    for (number, (file, expected)) in [
        ("timeout = ", "line 1, column"),
        ("\ndurration = \"1s\"", "line 2, column 1: durration is not a flag of a run; did you mean duration?"),
        ("colour = \"red\"", "line 1, column 1: colour is not a flag of a run: brunt --help-all"),
        ("[serve]\nport = 1", "line 1, column 2: [serve] is not a command that makes runs"),
        ("[run]\n scrip = 1", "line 2, column 2: scrip is not a flag"),
        ("script = \"a.lua\"", "script belongs on the command line"),
        ("timeout = true", "timeout takes a value"),
        ("timeout = [\"1s\", \"2s\"]", "timeout takes one value, not a list"),
        ("insecure = 1", "insecure is true or false"),
        ("timeout = 1979-05-27", "line 1, column 11: expected a text"),
        ("threshold = [[1]]", "line 1, column 14: expected a text"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new(&format!("wrong-{number}"), file);
        let error = format!("{:#}", folder.inherits("run SCRIPT", &[]).unwrap_err());
        assert!(error.contains(expected) && error.contains(FILE), "{file}: {error}");
    }
}
