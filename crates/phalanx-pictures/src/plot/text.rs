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
    let (head, tail) = (longest / 2, (longest - longest / 2).saturating_sub(1));
    text[..head].iter().chain(['…'].iter()).chain(&text[text.len() - tail..]).collect()
}

/// Text for a label, where the crate would take what is between two `$` for a formula.
pub fn plain(content: &str, longest: usize) -> String {
    shortened(content, longest).replace('$', "\\$")
}

/// Text in lines that are `width` wide at most: at least one. Of a text longer than `longest` characters, and
/// of words wider than a line, the middle is left out.
pub fn wrapped(content: &str, longest: usize, size: u32, width: f64) -> Vec<String> {
    let text = shortened(content, longest);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = if text_width(word, size) <= width {
            word.to_string()
        } else {
            shortened(word, (width / f64::from(size)) as usize)
        };
        let last = lines.len() - 1;
        let longer = if lines[last].is_empty() { word.clone() } else { format!("{} {word}", lines[last]) };
        if lines[last].is_empty() || text_width(&longer, size) <= width {
            lines[last] = longer;
        } else {
            lines.push(word);
        }
    }
    lines
}

/// About how wide a text is drawn: the crate does not tell.
pub fn text_width(content: &str, size: u32) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '\u{a0}' | '\u{2009}' => 0.31,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '-' => 0.4,
        'c' | 's' | 'z' | 'k' | 'v' | 'x' | 'y' | '_' => 0.57,
        'm' | 'w' | 'M' | 'W' | '−' | '×' | '…' | '%' => 0.95,
        c if c.is_ascii() => 0.63,
        _ => 0.8,
    };
    f64::from(size) * content.chars().map(em).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("a-rather-long-name-seed7", 11), "a-rat…seed7");
    }

    #[test]
    fn lines_break_between_words_and_lose_none() {
        let words = "held fixed: n = 10, H = 125, B = 5 ".repeat(12);
        let lines = wrapped(words.trim_end(), 600, 13, 300.0);
        assert!(lines.len() > 3 && lines.iter().all(|line| text_width(line, 13) <= 300.0), "{lines:?}");
        assert_eq!(lines.join(" "), words.trim_end());
        assert_eq!(wrapped("", 10, 13, 300.0), [""]);
        let long = wrapped(&format!("a {} b", "W".repeat(90)), 600, 13, 300.0);
        assert!(long[0].contains('…') && long.iter().all(|line| text_width(line, 13) <= 300.0), "{long:?}");
    }
}
