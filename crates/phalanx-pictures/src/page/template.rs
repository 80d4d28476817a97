//! Text with places for values, a small part of Mustache.
//!
//! `{{name}}` is a value, `{{name|filter}}` one that went through another filter than the usual.
//! `{{#name}}…{{/name}}` is there once for every entry of a list, with `|text` after the name between them;
//! of what is no list, unless it is empty. Inside, names are those of the entry first, and `{{.}}` is the
//! entry itself. `{{?name}}…{{/?name}}` is there unless a list is empty, `{{^name}}…{{/^name}}` if it is.
//! Sections of one name are not inside one another.

use phalanx::base::text::no_tags;
use serde_json::Value;

/// Fills a template. `scopes`: where names are looked for, the last one first.
pub fn fill(template: &str, scopes: &[&Value], filter: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, begun)) = rest.split_once("{{")
        && let Some((tag, after)) = begun.split_once("}}")
    {
        text += before;
        rest = after;
        let (name, option) = tag.split_once('|').map_or((tag, None), |(name, option)| (name, Some(option)));
        let Some(list) = name.strip_prefix(['#', '?', '^']) else {
            text += &filtered(find(scopes, name), option.unwrap_or(filter));
            continue;
        };
        let end = format!("{{{{/{}}}}}", name.trim_start_matches('#'));
        let (section, after) = after.split_once(&end).unwrap_or((after, ""));
        rest = after;
        let entries = entries(find(scopes, list));
        let inside = |entry: Option<&Value>| {
            let scopes: Vec<&Value> = scopes.iter().copied().chain(entry).collect();
            fill(section, &scopes, filter)
        };
        text += &match name.as_bytes()[0] {
            b'#' => {
                entries.iter().map(|entry| inside(Some(entry))).collect::<Vec<_>>().join(option.unwrap_or(""))
            }
            b'?' if !entries.is_empty() => inside(None),
            b'^' if entries.is_empty() => inside(None),
            _ => String::new(),
        };
    }
    text + rest
}

fn find<'a>(scopes: &[&'a Value], name: &str) -> &'a Value {
    let mut scopes = scopes.iter().rev();
    let found = if name == "." { scopes.next().copied() } else { scopes.find_map(|scope| scope.get(name)) };
    found.unwrap_or(&Value::Null)
}

/// Of a list; what is none is its own entry, or nothing if it is empty.
fn entries(value: &Value) -> &[Value] {
    match value {
        Value::Array(entries) => entries,
        Value::Null | Value::Bool(false) => &[],
        Value::String(text) if text.is_empty() => &[],
        value if *value == 0 => &[],
        value => std::slice::from_ref(value),
    }
}

/// `html`: for text and attributes; for Markdown `text`, `line` (without line breaks) and `cell` (of a
/// table); else as it is.
fn filtered(value: &Value, filter: &str) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), String::from);
    let line = || no_tags(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match filter {
        "html" => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        "text" => no_tags(&text),
        "line" => line(),
        // A cell must not end itself.
        "cell" => line().replace('|', "\\|"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_values_and_what_is_empty() {
        let list = json!([{ "a": 1 }, { "a": "<2>" }]);
        let model =
            json!({ "list": list, "none": [], "text": "x |\n y", "tag": "<b>x</b>", "rows": [["1", "2"]] });
        let filled = |template: &str| fill(template, &[&model], "html");
        assert_eq!(filled("{{#list|, }}{{a}} {{text|cell}}{{/list}}."), "1 x \\| y, &lt;2&gt; x \\| y.");
        assert_eq!(
            filled("{{?list}}some {{#list}}{{a|raw}}{{/list}}{{/?list}}{{^list}}no{{/^list}}"),
            "some 1<2>"
        );
        assert_eq!(filled("{{?none}}some{{/?none}}{{^none}}no{{/^none}}{{#other}}x{{/other}}"), "no");
        assert_eq!(
            fill("{{#list|, }}{{a}}{{/list}} {{tag|cell}}", &[&model], "text"),
            "1, <2> &lt;b>x&lt;/b>"
        );
        assert_eq!(filled("{{#rows}}{{#.|;}}{{.}}{{/.}}{{/rows}} {{text|line}}"), "1;2 x | y");
    }
}
