"use strict";
// Counted where a test can read them.
let errors = 0;
addEventListener("error", () => { document.body.dataset.errors = ++errors; });
document.body.dataset.errors = 0;
const images = [...document.images];
Promise.all(images.map((image) => image.decode().then(() => 1, () => 0))).then((seen) => {
  document.body.dataset.figures = `${seen.reduce((a, b) => a + b, 0)}/${images.length}`;
});
