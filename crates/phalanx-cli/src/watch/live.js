"use strict";
// Errors are counted where a test can read them.
let errors = 0, tag = "";
addEventListener("error", () => { document.body.dataset.errors = ++errors; });
document.body.dataset.errors = 0;
document.body.dataset.refreshed = 0;
const EVERY = 2000;
const main = document.getElementById("main");
const note = document.createElement("p");
note.setAttribute("role", "status");
main.before(note);

// Also counted: pictures that can be shown, of so many.
async function count(images) {
  const seen = await Promise.all(images.map((image) => image.decode().then(() => 1, () => 0)));
  document.body.dataset.figures = `${seen.reduce((a, b) => a + b, 0)}/${images.length}`;
}

count([...document.images]);

// The new page takes the old one's place when all its pictures can be shown; what was unfolded stays so.
async function show(text) {
  const next = document.createElement("main");
  next.id = "main";
  next.innerHTML = text;
  await count([...next.querySelectorAll("img")]);
  const old = document.getElementById("main");
  const open = [...old.querySelectorAll("details")].map((details) => details.open);
  next.querySelectorAll("details").forEach((details, k) => { details.open = Boolean(open[k]); });
  old.replaceWith(next);
  document.body.dataset.refreshed = Number(document.body.dataset.refreshed) + 1;
}

async function refresh() {
  try {
    const answer = await fetch("/main", { headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.ok) {
      tag = answer.headers.get("ETag") || "";
      await show(await answer.text());
    }
    // 304: the page is as it was.
    const isFine = answer.ok || answer.status === 304;
    say(isFine ? `Looked at ${new Date().toLocaleTimeString()}.` : `phalanx watch says: ${await answer.text()}`, isFine);
  } catch {
    say("phalanx watch does not answer any more. This page is as it was when it last did.", false);
  }
  setTimeout(refresh, EVERY);
}

function say(text, isFine) {
  note.textContent = text;
  note.className = isFine ? "source" : "warning";
}
refresh();
