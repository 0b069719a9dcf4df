"use strict";
// Asks how a run goes on, and shows it. All that comes is text.

const EVERY_MS = 2000;
const place = document.getElementById("live");
const part = (name) => place.querySelector(`[data-live="${name}"]`);

function line(text, small, className) {
  const made = document.createElement("li");
  made.textContent = text;
  if (className) made.className = className;
  if (small) made.append(" ", Object.assign(document.createElement("small"), { textContent: small }));
  return made;
}

function result(each) {
  const row = document.createElement("tr");
  row.className = `outcome-${each.outcome}`;
  const link = Object.assign(document.createElement("a"), { textContent: each.what });
  if (each.where.startsWith("/run/")) link.href = each.where;
  row.insertCell().append(link);
  row.insertCell().textContent = each.outcome;
  const figure = row.insertCell();
  figure.className = "n";
  figure.textContent = each.result;
  row.insertCell().textContent = each.reason;
  return row;
}

function show(now) {
  part("state").textContent = now.complete ? "complete" : now.executing ? "executing" : "not executing here";
  part("finished").textContent = now.finished;
  part("left").textContent = now.left ? `, about ${now.left} left` : "";
  place.querySelector("progress").value = now.finished;
  document.title = document.title.replace(/^\d+/, now.finished);
  part("now").replaceChildren(...(now.now.length ? now.now.map((each) => line(each.what, each.since)) : [line("no trial", "", "note")]));
  part("last").replaceChildren(...now.last.map(result));
  const failures = Object.entries(now.not_done).map(([outcome, count]) => line(`${outcome}: ${count} trial${count === 1 ? "" : "s"}`));
  failures.push(...now.aborted.map((text) => line(`failed by a fault of dnsrig or the machine: ${text}`)));
  part("failures").replaceChildren(...(failures.length ? failures : [line("none", "", "note")]));
}

async function ask() {
  let complete = false;
  try {
    const answer = await fetch(place.dataset.source);
    if (!answer.ok) throw new Error(String(answer.status));
    const now = await answer.json();
    show(now);
    complete = now.complete;
    part("lost").hidden = true;
  } catch {
    part("lost").hidden = false;
  }
  if (!complete) setTimeout(ask, EVERY_MS);
}

setTimeout(ask, EVERY_MS);
