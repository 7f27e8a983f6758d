"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const value = (row, column) => {
    const cell = (row.tBodies ? row.rows[0] : row.matches("tbody") ? row.rows[0] : row).cells[column];
    return cell.dataset.v ?? cell.textContent.trim();
  };

  // Numbers by their size, the rest as text; cells without a value are last either way.
  function compare(left, right, sign) {
    if (left === "" || right === "") return (left === "") - (right === "");
    const numbers = [Number(left), Number(right)];
    if (!numbers.some(Number.isNaN)) return sign * (numbers[0] - numbers[1]);
    return sign * left.localeCompare(right, "en", { numeric: true });
  }

  function sort(table, header) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    all("th[aria-sort]", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const bodies = [...table.tBodies];
    const groups = table.classList.contains("rows") ? [...bodies[0].rows] : bodies;
    const keyed = groups.map((group) => [value(group, header.cellIndex), group]);
    keyed.sort((left, right) => compare(left[0], right[0], descending ? -1 : 1));
    (table.classList.contains("rows") ? bodies[0] : table).append(...keyed.map((pair) => pair[1]));
  }

  function makeSortable(table) {
    for (const header of all("th[data-sort]", table.tHead)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, header));
      header.append(button);
    }
  }

  async function inflate(base64) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }

  // A run's attempts stand in the page as text until somebody wants to see them, which keeps a page of thousands quick.
  async function unpack(cell) {
    const packed = cell.querySelector(":scope > script, :scope > noscript");
    if (packed === null) return;
    const text = packed.textContent;
    const parsed = parse(packed.matches("script") ? await inflate(text) : text);
    if (packed.isConnected) {
      all(":scope > script, :scope > noscript", cell).forEach((element) => element.remove());
      cell.append(...parsed);
    }
  }

  // Scripts in what DOMParser makes never run, and the page's policy allows none besides.
  const parse = (html) => new DOMParser().parseFromString(html, "text/html").body.childNodes;

  function watchRun(body) {
    const details = body.querySelector("tr.run details");
    details?.addEventListener("toggle", () => {
      if (details.open) unpack(body.querySelector("tr.attempts > td"));
    });
  }

  function makeFilter(input) {
    const table = document.getElementById(input.getAttribute("aria-controls"));
    const shown = document.getElementById("runs-shown");
    input.closest("[hidden]").hidden = false;
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/);
      let count = 0;
      for (const body of table.tBodies) {
        const text = body.rows[0].textContent.toLowerCase();
        body.hidden = !words.every((word) => text.includes(word));
        count += !body.hidden;
      }
      shown.textContent = `${count} of ${table.tBodies.length} shown`;
    };
    input.addEventListener("input", apply);
    apply();
  }

  function follow() {
    const notice = document.getElementById("live");
    const table = document.getElementById("runs-table");
    const events = new EventSource(`events?after=${document.documentElement.dataset.live}`);
    let added = 0;
    const count = () => `${added} new attempt${added === 1 ? "" : "s"}`;
    const say = (text) => { notice.querySelector("output").textContent = text; };
    events.onopen = () => say(added ? count() : "Waiting for attempts");
    events.onerror = () => say("The connection is lost; trying again");
    events.addEventListener("run", (event) => {
      const { run, attempts, html } = JSON.parse(event.data);
      const [fresh] = parse(`<table>${html}</table>`)[0].tBodies;
      const old = document.getElementById(run);
      if (old?.querySelector("details[open]")) fresh.querySelector("details").open = true;
      if (old) old.replaceWith(fresh);
      else table.append(fresh);
      watchRun(fresh);
      if (fresh.querySelector("details[open]")) unpack(fresh.querySelector("tr.attempts > td"));
      fresh.rows[0].classList.add("fresh");
      added += attempts;
      say(count());
      notice.querySelector("a").hidden = false;
    });
  }

  all("table.sortable").forEach(makeSortable);
  all("#runs-table > tbody").forEach(watchRun);
  all("input[type=search]").forEach(makeFilter);
  if (document.documentElement.hasAttribute("data-live")) follow();
  document.documentElement.dataset.ready = "";
})();
