//! Texts of all pictures: what can be written, and how wide it is.

/// Labels are cut to this many characters, other texts to twice as many.
pub const LONGEST_LABEL: usize = 60;

/// Text without control characters (XML has no way to write them). Of a long text the middle is left out:
/// names of runs tend to differ at their ends.
pub fn shortened(content: &str, longest: usize) -> String {
    let clean = |c: char| if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') { ' ' } else { c };
    let text: Vec<char> = content.chars().map(clean).collect();
    if text.len() <= longest {
        return text.into_iter().collect();
    }
    let (head, tail) = (longest / 2, longest - longest / 2 - 1);
    text[..head].iter().chain(['…'].iter()).chain(&text[text.len() - tail..]).collect()
}

/// Text for a label, where the crate would take what is between two `$` for a formula.
pub fn plain(content: &str, longest: usize) -> String {
    shortened(content, longest).replace('$', "\\$")
}

/// About how wide a text is drawn: the crate does not tell.
pub fn text_width(content: &str, size: u32) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '\u{2009}' => 0.31,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '-' => 0.4,
        'c' | 's' | 'z' | 'k' | 'v' | 'x' | 'y' | '_' => 0.57,
        'm' | 'w' | 'M' | 'W' | '−' | '×' | '…' | '%' => 0.95,
        c if c.is_ascii() => 0.63,
        _ => 0.8,
    };
    f64::from(size) * content.chars().map(em).sum::<f64>()
}
