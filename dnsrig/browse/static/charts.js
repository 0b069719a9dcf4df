"use strict";
// Draws the charts of a page, each when it comes into sight. Whatever is in their data is text: it is never markup.

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("role", "tooltip");
document.body.append(tip);

function tell(handler, event, item, value) {
  if (value === null || value === undefined || value === "") {
    tip.hidden = true;
    return;
  }
  const table = document.createElement("table");
  const facts = typeof value === "object" ? Object.entries(value) : [["", value]];
  for (const [name, fact] of facts) {
    const row = table.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    row.append(head);
    row.insertCell().textContent = String(fact);
  }
  tip.replaceChildren(table);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
  const below = event.clientY + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${below + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 10) : below}px`;
}

// Nothing is fetched for a chart, and its links lead to trials of ours only.
const loader = {
  load: () => Promise.reject(new Error("charts load nothing")),
  sanitize: (uri) =>
    /^\/run\/[\w.%~-]+\/trial\/[\w./%-]+$/.test(uri)
      ? Promise.resolve({ href: uri, target: "_self" })
      : Promise.reject(new Error("a link that is not ours")),
};

async function embed(place, spec, title) {
  const result = await window.vegaEmbed(place, spec, {
    actions: false,
    ast: true,
    defaultStyle: false,
    loader,
    renderer: "svg",
    tooltip: tell,
  });
  const svg = place.querySelector("svg");
  if (svg) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", title);
  }
  place.view = result.view;
  return result.view;
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

async function asked(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error || `status ${answer.status}`);
  return said;
}

function source(place) {
  const address = new URL(place.dataset.chart, location.href);
  if (place.dataset.scale) address.searchParams.set("scale", place.dataset.scale);
  for (const end of ["from", "to"]) if (place.dataset[end]) address.searchParams.set(end, place.dataset[end]);
  return address;
}

function scaleButton(place, logarithmic) {
  const tools = element("div", "tools");
  const button = element("button", "", logarithmic ? "Linear" : "Logarithmic");
  button.type = "button";
  button.addEventListener("click", () => {
    place.dataset.scale = logarithmic ? "linear" : "log";
    draw(place).then(() => place.querySelector(".tools button")?.focus());
  });
  tools.append(button);
  return tools;
}

async function draw(place) {
  try {
    const drawings = await asked(source(place));
    const made = document.createDocumentFragment();
    const waiting = [];
    const groups = new Map();
    const switchable = drawings.find((drawing) => drawing.switchable);
    if (switchable) made.append(scaleButton(place, switchable.logarithmic));
    for (const drawing of drawings) {
      const figure = element("figure");
      if (drawing.title) figure.append(element("figcaption", "", drawing.title));
      const picture = element("div", "picture");
      picture.tabIndex = 0;
      figure.append(picture);
      const title = [place.dataset.title, drawing.group, drawing.title].filter(Boolean).join(": ");
      if (!drawing.group) {
        made.append(figure);
        waiting.push([picture, drawing.spec, title]);
        continue;
      }
      let folder = groups.get(drawing.group);
      if (!folder) {
        folder = element("details");
        folder.append(element("summary", "", drawing.group));
        folder.open = drawing.open;
        groups.set(drawing.group, folder);
        made.append(folder);
      }
      folder.append(figure);
      if (drawing.open) waiting.push([picture, drawing.spec, title]);
      else folder.addEventListener("toggle", () => embed(picture, drawing.spec, title), { once: true });
    }
    place.replaceChildren(made);
    for (const [picture, spec, title] of waiting) await embed(picture, spec, title);
    place.classList.remove("pending");
    place.dataset.drawn = "yes";
    if (place.dataset.axis) follow(place);
  } catch (error) {
    place.replaceChildren(element("p", "beside", `This chart cannot be drawn: ${error.message}`));
    place.dataset.drawn = "failed";
  }
}

// Panels on one axis of time: what is in sight is in the address, and is drawn again with all that fits its width.
function follow(place) {
  const view = place.querySelector(".picture").view;
  let waiting = 0;
  const look = (name, seen) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => show(place, seen), 500);
  };
  view.addSignalListener("zoom_0_time_s", look);
  const tools = place.querySelector(".tools") ?? place.insertBefore(element("div", "tools"), place.firstChild);
  for (const [text, from, to] of [["Measured part", "", ""], ["Whole trial", "-1e8", "1e8"]]) {
    const button = element("button", "", text);
    button.type = "button";
    button.addEventListener("click", () => show(place, [from, to]));
    tools.append(button);
  }
}

function show(place, seen) {
  const [from, to] = seen ?? ["", ""];
  const address = new URL(location.href);
  for (const [name, value] of [["from", from], ["to", to]]) {
    const text = typeof value === "number" ? value.toPrecision(7) : value;
    place.dataset[name] = text;
    if (text) address.searchParams.set(name, text);
    else address.searchParams.delete(name);
  }
  history.replaceState(null, "", address);
  draw(place);
}

const places = [...document.querySelectorAll("[data-chart]")];
const watcher = new IntersectionObserver(
  (seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      draw(target);
    }
  },
  { rootMargin: "300px" },
);
for (const place of places) {
  place.classList.add("pending");
  watcher.observe(place);
}
// Paper shows all of a page.
addEventListener("beforeprint", () => places.filter((place) => !place.dataset.drawn).forEach(draw));
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
