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
note.className = "source";
main.before(note);

// The new page takes the old one's place when all its pictures can be shown; what was unfolded stays so.
async function show(text) {
  const next = document.createElement("main");
  next.id = "main";
  next.innerHTML = text;
  await Promise.all([...next.querySelectorAll("img")].map((image) => image.decode().catch(() => 0)));
  const old = document.getElementById("main");
  const open = [...old.querySelectorAll("details")].map((details) => details.open);
  next.querySelectorAll("details").forEach((details, k) => { details.open = Boolean(open[k]); });
  old.replaceWith(next);
  document.body.dataset.refreshed = Number(document.body.dataset.refreshed) + 1;
}

async function refresh() {
  try {
    const answer = await fetch("/main", { headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status === 200) {
      tag = answer.headers.get("ETag") || "";
      await show(await answer.text());
    }
    note.textContent = `Looked at ${new Date().toLocaleTimeString()}.`;
  } catch {
    note.textContent = "phalanx watch does not answer any more.";
  }
  setTimeout(refresh, EVERY);
}
refresh();
