//! What users, files and other programs wrote, made fit to be shown in one line.

/// Characters of a message that are shown at most.
const MOST_SHOWN: usize = 600;

/// And of a name in a table.
const MOST_OF_NAME: usize = 40;

/// One line for a terminal: control characters are shown, not sent, and of a long text the middle is left
/// out.
pub fn shown(text: &str) -> String {
    shortened(&visible(text))
}

/// A name in a table: as [`shown`], and short.
pub fn name(text: &str) -> String {
    let text = visible(text);
    if text.chars().count() <= MOST_OF_NAME {
        return text;
    }
    text.chars().take(MOST_OF_NAME - 1).chain(['…']).collect()
}

/// Text in a Markdown document: one line that is no cell's end, no tag and nothing else that ends a line.
pub fn markdown(text: &str) -> String {
    no_tags(&shown(text)).replace('|', "\\|")
}

/// Markdown without tags: what looks like one is shown as it is written.
pub fn no_tags(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let begins =
            characters.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next));
        if c == '<' && begins { safe += "&lt;" } else { safe.push(c) }
    }
    safe
}

fn visible(text: &str) -> String {
    // Marks that turn the direction of writing can make a line read as another one.
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().flat_map(|c| if is_hidden(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= MOST_SHOWN {
        return text.into();
    }
    let left_out = format!(" … ({count} characters) … ");
    let (first, last) = (2 * MOST_SHOWN / 3, MOST_SHOWN / 3 - left_out.chars().count());
    let end: String = text.chars().skip(count - last).collect();
    text.chars().take(first).collect::<String>() + &left_out + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines_and_short() {
        assert_eq!(shown("a\u{1b}[31m\nb κ"), "a\\u{1b}[31m\\nb κ");
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        let long = format!("key: {}: advice", "x".repeat(100_000));
        let short = shown(&long);
        assert!(short.chars().count() <= MOST_SHOWN && short.starts_with("key: xx"), "{short}");
        assert!(short.contains("(100013 characters)") && short.ends_with(": advice"), "{short}");
        assert!(name(&long).chars().count() == MOST_OF_NAME);
    }

    #[test]
    fn markdown_has_no_tags_and_no_new_cells() {
        assert_eq!(markdown("a|b <script>x</script>\n1 < 2"), "a\\|b &lt;script>x&lt;/script>\\n1 < 2");
    }
}
