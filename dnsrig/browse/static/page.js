"use strict";
// Small help on every page; each works without it, too.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector(".filters input[type=search]");
  if (event.key === "/" && field && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    field.focus();
  }
});
