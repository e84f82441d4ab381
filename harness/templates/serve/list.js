// Keeps the list of campaigns up to date: every change comes as the whole page, of which what is new is taken.
"use strict";
(() => {
  const connection = document.getElementById("connection");

  // Rows that are as they were stay, with the reader's place in them.
  function renew(now, next) {
    const known = new Map([...now.children].map(row => [row.dataset.name, row]));
    const rows = [...next.children].map(row => {
      const old = known.get(row.dataset.name);
      return old && old.outerHTML === row.outerHTML ? old : document.importNode(row, true);
    });
    now.replaceChildren(...rows);
  }

  function renewChoice(now, next) {
    if (now.innerHTML === next.innerHTML) return;
    const chosen = now.value;
    now.replaceChildren(...[...next.children].map(option => document.importNode(option, true)));
    if ([...now.options].some(option => option.value === chosen)) now.value = chosen;
  }

  function show(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const next = id => page.getElementById(id);
    renew(document.getElementById("campaigns"), next("campaigns"));
    for (const id of ["a", "b"]) renewChoice(document.getElementById(id), next(id));
    document.getElementById("none").hidden = next("none").hidden;
  }

  const events = new EventSource("/events");
  events.addEventListener("changed", event => show(JSON.parse(event.data)));
  events.addEventListener("open", () => { connection.textContent = ""; });
  events.addEventListener("error", () => { connection.textContent = "lanebench does not answer; trying again"; });
})();
