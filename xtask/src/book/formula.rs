//! Formulas between dollar signs, as GitHub reads them, made MathML, which browsers show without a script.

use anyhow::{Result, bail, ensure};
use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};

/// The text of a page, outside its fenced blocks, with MathML in place of `$…$` and `$$…$$`.
///
/// A formula of its own begins a line with `$$` and ends one with it. Code between backticks is left alone.
pub fn replace(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(place) = rest.find(['`', '$']) {
        out += &rest[..place];
        rest = &rest[place..];
        if rest.starts_with('`') {
            // As many backticks end code as began it.
            let ticks = &rest[..rest.len() - rest.trim_start_matches('`').len()];
            let inside = &rest[ticks.len()..];
            let end = inside.find(ticks).map_or(ticks.len(), |end| end + 2 * ticks.len());
            out += &rest[..end];
            rest = &rest[end..];
            continue;
        }
        let is_display = rest.starts_with("$$");
        let mark = if is_display { "$$" } else { "$" };
        let inside = &rest[mark.len()..];
        let Some(end) = inside.find(mark) else { bail!("a formula is not closed: {}", line(rest)) };
        let formula = &inside[..end];
        ensure!(!formula.contains("\n\n"), "a formula is not closed: {}", line(rest));
        if is_display {
            let is_alone = out.is_empty() || out.ends_with('\n');
            ensure!(is_alone, "`$$` within a line, where GitHub shows no formula: {}", line(rest));
            out += &format!("<div class=\"formula\">{}</div>", mathml(formula, DisplayMode::Block)?);
        } else {
            let is_tight =
                !formula.starts_with(char::is_whitespace) && !formula.ends_with(char::is_whitespace);
            ensure!(is_tight && !formula.is_empty(), "no formula for GitHub, write `\\$`?: {}", line(rest));
            out += &mathml(formula, DisplayMode::Inline)?;
        }
        rest = &inside[end + mark.len()..];
    }
    Ok(out + rest)
}

fn line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A formula on one line, in characters that mean nothing to Markdown.
fn mathml(formula: &str, display_mode: DisplayMode) -> Result<String> {
    let storage = Storage::new();
    if let Some(Err(error)) = Parser::new(formula, &storage).find(Result::is_err) {
        bail!("the formula {}: {error}", formula.trim());
    }
    let mut found = String::new();
    let storage = Storage::new();
    push_mathml(
        &mut found,
        Parser::new(formula, &storage),
        RenderConfig { display_mode, ..Default::default() },
    )?;
    // What the crate gets wrong: no space before an attribute, spaces as text, the micro sign for μ.
    let found = found.replace("\"minsize", "\" minsize").replace("&amp;nbsp;", "\u{a0}").replace('µ', "μ");
    let mut out = String::new();
    let mut is_tag = false;
    for c in found.replace('\n', " ").chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ => {}
        }
        match c {
            '*' | '_' | '[' | ']' | '|' | '\\' | '`' | '~' | '!' | '^' | '(' | ')' | '#' if !is_tag => {
                out += &format!("&#{};", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_outside_code_are_formulas() {
        let made = replace("a `$x$` and $\\mu_i$, ``b ` $`` c\n\n$$\nx^2\n$$\n").unwrap();
        assert!(
            made.starts_with("a `$x$` and <math")
                && made.contains(", ``b ` $`` c\n\n<div class=\"formula\">")
        );
        assert!(made.contains("μ") && !made.contains('\\'));
    }

    #[test]
    fn markdown_does_not_read_formulas() {
        let made = replace("$a * b_{[c]} | d$").unwrap();
        let text: String =
            made.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
        assert!(!text.contains(['*', '_', '[', '|']), "{made}");
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        for wrong in ["it costs 5 $ or so", "$ x$", "$x", "$\\nosuchthing$", "in $$x$$ a line", "$\\frac{1}$"]
        {
            assert!(replace(wrong).is_err(), "{wrong}");
        }
    }
}
