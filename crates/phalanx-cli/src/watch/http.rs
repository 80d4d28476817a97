//! As much of HTTP/1.1 as one page for one reader needs. Read-only; a request under another name than this
//! machine's is refused, so that pages from elsewhere cannot read this one through the browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// What a path comes to.
pub enum Answer {
    Page { text: Arc<str>, version: String },
    Unchanged,
    NotFound,
}

/// Longest head of a request.
const MOST_BYTES: usize = 8 << 10;
/// A browser that is slower than this is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nothing from anywhere, and nobody may put the page into a frame.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Answers one request and closes the connection. `page` gives the answer for a path and the version that the
/// browser has.
pub fn answer(stream: &TcpStream, port: u16, page: impl Fn(&str, Option<&str>) -> Answer) {
    let mut stream = stream;
    let ready = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    let Some(head) = ready.ok().and_then(|()| read_head(&mut stream)) else { return };
    // A reader who has gone away is no error.
    let _ = stream.write_all(&response(&head, port, page));
}

/// The request up to its empty line.
fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let count = stream.read(&mut part).ok().filter(|&count| count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        if bytes.len() > MOST_BYTES {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

fn response(head: &str, port: u16, page: impl Fn(&str, Option<&str>) -> Answer) -> Vec<u8> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let header = |name: &str| {
        let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    };
    if !header("Host").is_some_and(|host| is_ours(host, port)) {
        return message("403 Forbidden", "This page is for browsers on this machine.", "");
    }
    if !matches!(method, "GET" | "HEAD") {
        return message("405 Method Not Allowed", "This page can only be read.", "Allow: GET, HEAD\r\n");
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = match page(path, header("If-None-Match")) {
        Answer::Page { text, version } => {
            let extra = format!("ETag: {version}\r\n");
            with_head("200 OK", "text/html; charset=utf-8", &extra, text.as_bytes())
        }
        Answer::Unchanged => with_head("304 Not Modified", "text/html; charset=utf-8", "", b""),
        Answer::NotFound => message("404 Not Found", "There is nothing here.", ""),
    };
    if method == "HEAD" {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        bytes.truncate(end);
    }
    bytes
}

/// Whether a browser means this machine. It leaves out the port where that is HTTP's own.
fn is_ours(host: &str, port: u16) -> bool {
    const USUAL_PORT: u16 = 80;
    ["127.0.0.1", "localhost"]
        .iter()
        .any(|name| host == format!("{name}:{port}") || (port == USUAL_PORT && host == *name))
}

fn message(status: &str, text: &str, extra: &str) -> Vec<u8> {
    with_head(status, "text/plain; charset=utf-8", extra, format!("{text}\n").as_bytes())
}

fn with_head(status: &str, kind: &str, extra: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{extra}Content-Security-Policy: \
         {POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line and everything of an answer.
    fn asked(request: &str) -> (String, String) {
        let page = |path: &str, tag: Option<&str>| match (path, tag) {
            ("/", Some("\"1\"")) => Answer::Unchanged,
            ("/", _) => Answer::Page { text: "<p>page</p>".into(), version: "\"1\"".into() },
            _ => Answer::NotFound,
        };
        let text = String::from_utf8(response(request, 8000, page)).unwrap();
        (text.lines().next().unwrap().trim_start_matches("HTTP/1.1 ").into(), text)
    }

    #[test]
    fn the_page_is_given_to_browsers_of_this_machine_alone() {
        let (status, text) = asked("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
        assert_eq!(status, "200 OK");
        assert!(
            text.ends_with("\r\n\r\n<p>page</p>") && text.contains("\r\nContent-Length: 11\r\n"),
            "{text}"
        );
        assert_eq!(asked("GET /?x=1 HTTP/1.1\r\nhost: localhost:8000\r\n\r\n").0, "200 OK");
        for host in
            ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:80", "localhost:8000.evil.example"]
        {
            let (status, text) = asked(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(status, "403 Forbidden", "{host}");
            assert!(!text.contains("page</p>"));
        }
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n").0, "403 Forbidden");
    }

    #[test]
    fn browsers_leave_out_the_usual_port() {
        for host in ["127.0.0.1", "localhost", "127.0.0.1:80"] {
            assert!(is_ours(host, 80), "{host}");
        }
        assert!(
            !is_ours("127.0.0.1", 8080) && !is_ours("evil.example", 80) && !is_ours("127.0.0.1:8080", 80)
        );
    }

    #[test]
    fn it_can_only_be_read() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", ""] {
            let (status, _) = asked(&format!("{method} / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n"));
            assert_eq!(status, "405 Method Not Allowed");
        }
        let (status, text) = asked("HEAD / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
        assert!(status == "200 OK" && text.ends_with("\r\n\r\n"), "{text}");
        assert_eq!(asked("GET /../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n").0, "404 Not Found");
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let (status, text) = asked("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nIf-None-Match: \"1\"\r\n\r\n");
        assert!(status == "304 Not Modified" && !text.contains("page"), "{text}");
    }

    #[test]
    fn a_request_without_an_end_is_none() {
        assert!(read_head(&mut &b"GET / HTTP/1.1\r\n"[..]).is_none());
        assert!(read_head(&mut &*vec![b'a'; MOST_BYTES + 2000]).is_none());
        assert!(read_head(&mut &b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n"[..]).is_none());
        assert_eq!(read_head(&mut &b"GET /\r\n\r\n"[..]).unwrap(), "GET /\r\n\r\n");
    }
}
