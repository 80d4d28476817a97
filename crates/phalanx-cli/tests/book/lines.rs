//! Lines of pages and of programs: what they are, and how they are compared.

/// What stands between the fenced blocks of a page.
#[derive(Default)]
pub struct Prose {
    is_list: bool,
    is_code: bool,
    is_paragraph: bool,
}

impl Prose {
    /// Whether the next line is code by its indentation alone: four spaces behind an empty line, outside of
    /// a list.
    pub fn is_indented_code(&mut self, line: &str) -> bool {
        if line.trim().is_empty() {
            self.is_paragraph = false;
            return false;
        }
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        if !line.starts_with([' ', '\t']) {
            let is_number = |(number, _): (&str, &str)| number.chars().all(|c| c.is_ascii_digit());
            let is_item = line.starts_with("- ") || line.starts_with("* ");
            self.is_list = is_item || line.split_once(". ").is_some_and(is_number);
        }
        self.is_code = is_indented && !self.is_list && (self.is_code || !self.is_paragraph);
        self.is_paragraph = !self.is_code;
        self.is_code
    }
}

/// Whether this line is meant for a shell.
pub fn is_command(line: &str) -> bool {
    let programs = ["$", "phalanx", "cargo", "mpirun", "pip", "python", "python3", "apt-get"];
    line.split_once(' ').is_some_and(|(first, _)| programs.contains(&first))
}

/// Whether this line is one of a configuration or of a program.
pub fn is_code(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim();
    let is_table = line.starts_with('[') && line.ends_with(']') && !line.contains([' ', ',', '=']);
    is_table || ["import ", "from ", "#include ", "int ", "fn "].iter().any(|start| line.starts_with(start))
}

/// The lines `key = value` of a configuration, without comments, each behind its table.
pub fn settings(text: &str) -> Vec<(String, String)> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let line = squeeze(line.split(" #").next().unwrap_or_default());
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_string();
        } else if !line.is_empty() {
            found.push((table.clone(), line));
        }
    }
    found.sort();
    found
}

/// The line with single spaces.
pub fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line without its numbers and verdicts.
pub fn sketch(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '-' && rest.peek().is_some_and(char::is_ascii_digit) && !out.ends_with(char::is_alphanumeric)
        {
            continue;
        }
        if !c.is_ascii_digit() {
            out.push(c);
            continue;
        }
        while rest.next_if(|&c| c.is_ascii_digit() || c == '.').is_some() {}
        if rest.peek() == Some(&'e') {
            let mut ahead = rest.clone().skip(1).skip_while(|&c| c == '-').peekable();
            if ahead.peek().is_some_and(char::is_ascii_digit) {
                while rest.next_if(|&c| c.is_ascii_digit() || c == 'e' || c == '-').is_some() {}
            }
        }
        out.push('#');
    }
    out.replace("unsafe", "safe").replace("undecided", "safe")
}

/// Whether the pieces of `wanted` between `…` occur in `line`, in order.
pub fn matches(line: &str, wanted: &str) -> bool {
    let mut rest = line;
    wanted.split('…').map(str::trim).all(|piece| match rest.split_once(piece) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

#[test]
fn lines_are_compared_as_documented() {
    assert_eq!(sketch("a-1 -2.5e-7 to 3e5, 4 s."), "a-# # to #, # s.");
    assert_eq!(sketch("0.0066 undecided"), sketch("-0.0019 unsafe"));
    assert!(matches("error: /x/y.json: no", "error: …/y.json: no"));
    assert!(matches("anything", "…"));
    assert!(!matches("b a", "a…b"));
}

#[test]
fn code_is_known_by_its_lines() {
    let refused =
        ["$ ls", "phalanx train synthetic", "[world]", "[[constraint]] # one", "import numpy as np"];
    assert!(refused.into_iter().all(|line| is_command(line) || is_code(line)));
    let allowed = ["0 — 1 — 2", "error: rank 0", "transition[i] = [joint state][next state]", "# AGENT HOST"];
    assert!(!allowed.into_iter().any(|line| is_command(line) || is_code(line)));
    let is_code = |text: &str| {
        let mut prose = Prose::default();
        text.lines().any(|line| prose.is_indented_code(line))
    };
    assert!(is_code("Say:\n\n    phalanx train\n") && is_code("- a\n\nSay:\n\n    phalanx train\n"));
    assert!(!is_code("- a\n    goes on\n\n    and on\n") && !is_code("a line\n    goes on\n"));
}
