"use strict";
// Errors are counted where a test can read them.
let errors = 0;
addEventListener("error", () => { document.body.dataset.errors = ++errors; });
document.body.dataset.errors = 0;

// Claims by verdict.
const buttons = [...document.querySelectorAll("[data-filter]")];
const claims = [...document.querySelectorAll(".claim")];
function show(verdict) {
  for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.filter === verdict);
  let shown = 0;
  for (const claim of claims) {
    claim.hidden = verdict !== "all" && claim.dataset.verdict !== verdict;
    if (!claim.hidden) shown++;
  }
  for (const group of document.querySelectorAll(".group")) group.hidden = !group.querySelector(".claim:not([hidden])");
  document.querySelector(".shown").textContent = verdict === "all" ? "" : `${shown} of ${claims.length} claims`;
}
for (const button of buttons) button.addEventListener("click", () => show(button.dataset.filter));
// A link to a claim that is hidden shows all of them.
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.closest("[hidden]")) { show("all"); target.scrollIntoView(); }
});

// Where the reader is.
const links = [...document.querySelectorAll("nav a")];
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of links) link.classList.toggle("here", link.hash === "#" + entry.target.id);
  }
}, { rootMargin: "0px 0px -80% 0px" });
for (const link of links) {
  const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (target) seen.observe(target);
}

// Replays. Keys: the button and the slider have those of the browser; space plays and pauses on the slider, too.
const PAUSE_AT_END = 8;
const frames = [];
for (const replay of document.querySelectorAll(".replay")) {
  const steps = JSON.parse(replay.querySelector("script").textContent);
  const [picture, button, slider, output] =
    ["img", "button", "input", "output"].map((name) => replay.querySelector(name));
  let timer = 0, rest = 0;
  const to = (k) => {
    picture.src = steps[k - 1];
    slider.value = k;
    slider.setAttribute("aria-valuetext", `step ${k} of ${steps.length}`);
    output.textContent = `${k} / ${steps.length}`;
    replay.dataset.frame = k;
  };
  const pause = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = "▶";
    button.setAttribute("aria-label", "Play");
  };
  const play = () => {
    timer = setInterval(() => {
      const k = Number(slider.value);
      if (k < steps.length) to(k + 1);
      else if (++rest >= PAUSE_AT_END) { rest = 0; to(1); }
    }, 150);
    button.textContent = "❚❚";
    button.setAttribute("aria-label", "Pause");
  };
  const toggle = () => (timer ? pause() : play());
  button.addEventListener("click", toggle);
  slider.addEventListener("input", () => { pause(); to(Number(slider.value)); });
  slider.addEventListener("keydown", (event) => {
    if (event.key === " ") { event.preventDefault(); toggle(); }
  });
  for (const step of steps) {
    const image = new Image();
    image.src = step;
    frames.push(image);
  }
  if (location.hash === "#play") play();
}

// What was loaded, for tests.
const sum = (all) => all.reduce((a, b) => a + b, 0);
const loaded = (image) => new Promise((done) => {
  const check = () => done(image.naturalWidth > 0 ? 1 : 0);
  if (image.complete) return check();
  image.addEventListener("load", check, { once: true });
  image.addEventListener("error", check, { once: true });
});
Promise.all(frames.map(loaded)).then((all) => { document.body.dataset.frames = `${sum(all)}/${all.length}`; });
const figures = [...document.querySelectorAll("figure img")];
Promise.all(figures.map(loaded)).then((all) => { document.body.dataset.figures = `${sum(all)}/${all.length}`; });
