// Keeps the list of campaigns up to date: when told that it has changed, takes what is new from the page itself.
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

  async function refresh() {
    const answer = await fetch("/");
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = id => page.getElementById(id);
    const rows = next("campaigns");
    if (!rows) return;
    renew(document.getElementById("campaigns"), rows);
    for (const id of ["a", "b"]) renewChoice(document.getElementById(id), next(id));
    document.getElementById("none").hidden = next("none").hidden;
  }

  const events = new EventSource("/events");
  events.addEventListener("changed", () => refresh().catch(() => {}));
  events.addEventListener("open", () => { connection.textContent = ""; });
  events.addEventListener("error", () => { connection.textContent = "lanebench does not answer; trying again"; });
})();
