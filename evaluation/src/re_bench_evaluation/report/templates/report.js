"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Return the number at the start of a cell, or NaN for text and times such as 1:02:03, which are sorted as text.
  const number = (text) => /^-?\$?\d[\d,.]*(e[-+]?\d+)?(?![\d:])/.test(text) ? parseFloat(text.replace(/[$,]/g, "")) : NaN;

  function compare(left, right, sign) {
    if (left === "-" || right === "-") return (left === "-") - (right === "-"); // unknown values last
    const difference = number(left) - number(right);
    return sign * (Number.isNaN(difference) ? left.localeCompare(right, "en", { numeric: true }) : difference);
  }

  function sort(table, header) {
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const bodies = [...table.tBodies];
    const ofRuns = table.id === "runs-table"; // one tbody per run
    const keyed = (ofRuns ? bodies : [...bodies[0].rows]).map((item) => {
      const row = ofRuns ? item.rows[0] : item;
      return [row.cells[header.cellIndex].textContent.trim(), item];
    });
    keyed.sort((left, right) => compare(left[0], right[0], sign));
    (ofRuns ? table : bodies[0]).append(...keyed.map((pair) => pair[1]));
  }

  for (const table of all("table.sortable")) {
    for (const header of all("th", table.tHead)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, header));
      header.append(button);
    }
  }

  const filter = document.getElementById("filter");
  filter.parentElement.hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    const runs = all("#runs-table > tbody");
    for (const run of runs) {
      const text = run.rows[0].textContent.toLowerCase();
      run.hidden = !words.every((word) => text.includes(word));
    }
    document.getElementById("shown").textContent = `${runs.filter((run) => !run.hidden).length} of ${runs.length} shown`;
  });

  const seconds = Number(document.documentElement.dataset.refresh);
  const reading = () => filter.value || document.querySelector("details[open]");
  if (seconds) setInterval(() => reading() || location.reload(), seconds * 1000);
})();
