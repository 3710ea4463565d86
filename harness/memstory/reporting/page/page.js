"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const table = byId("matrix"), body = table.tBodies[0], rows = [...body.rows];
  const columns = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);

  // Filters. Cells are read once; a filter only sets `hidden`. Thousands of rows take seconds to lay out.
  const MOST = 1000;
  let limit = MOST;
  const facts = rows.map((row) => ({
    text: (row.cells[0].textContent + " " + row.dataset.t).toLowerCase(),
    groups: row.dataset.g.split(" "),
    outcomes: [...row.cells].slice(1).map((cell) => cell.className.slice(2)),
  }));
  const sheet = document.styleSheets[0], own = sheet.cssRules.length;
  const filter = () => {
    const words = byId("f-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const group = byId("f-group").value, outcome = byId("f-outcome").value, harm = byId("f-harm").value;
    const differ = byId("f-differ").checked, folds = byId("f-alike") && !byId("f-alike").checked;
    const shown = [...document.getElementsByName("column")].filter((box) => box.checked).map((box) => +box.value);
    let count = 0, folded = 0;
    rows.forEach((row, at) => {
      const fact = facts[at], found = shown.map((column) => fact.outcomes[column]).filter(Boolean);
      let fits = found.length > 0 && words.every((word) => fact.text.includes(word))
        && (!group || fact.groups.includes(group)) && (!harm || row.dataset.h === harm)
        && (!outcome || found.includes(outcome)) && (!differ || new Set(found).size > 1);
      if (fits && folds && found.every((one) => one === "passed")) { fits = false; folded += 1; }
      count += fits;
      row.hidden = !fits || count > limit;
    });
    while (sheet.cssRules.length > own) sheet.deleteRule(own);
    columns.forEach((_, column) => {
      if (!shown.includes(column)) sheet.insertRule(`#matrix tr>:nth-child(${column + 2}){display:none}`, own);
    });
    byId("f-count").textContent = (count === 1 ? "1 story" : `${count} stories`) + (count > limit ? `, the first ${limit} shown` : "")
      + (folded ? `, and ${folded} that all pass, folded` : "");
    byId("f-more").hidden = count <= limit;
  };
  byId("f-more").addEventListener("click", () => { limit = Infinity; filter(); });
  if (rows.length > MOST || byId("f-alike")) filter();
  byId("filters").addEventListener("input", filter);
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());

  // Plots: a target has one colour in all of them, and the bars at a label share its room among those that are picked.
  const picks = [...document.getElementsByName("drawn")], COLOURS = 12;
  const draw = () => {
    const picked = picks.filter((box) => box.checked).map((box) => box.value);
    for (const box of picks) {
      box.disabled = !box.checked && picked.length >= COLOURS;
      box.parentElement.querySelector(".key").className = box.checked ? `key color-${picked.indexOf(box.value)}` : "key";
    }
    for (const plot of document.querySelectorAll(".plot")) {
      const series = [...plot.querySelectorAll("[data-column]")], drawn = series.filter((one) => picked.includes(one.dataset.column));
      for (const one of series) one.style.display = drawn.includes(one) ? "" : "none";
      drawn.forEach((one, at) => {
        one.setAttribute("class", `color-${picked.indexOf(one.dataset.column)}`);
        for (const bar of one.querySelectorAll("[data-room]")) {
          const width = bar.dataset.room / drawn.length;
          bar.setAttribute("transform", `translate(${+bar.dataset.x + width * at}) scale(${width} 1)`);
        }
      });
    }
  };
  if (picks.length) {
    byId("picks").addEventListener("input", draw);
    draw();
  }

  // Keyboard: one cell can be reached by Tab, the arrow keys move from there.
  let current = null;
  const isCell = (cell) => cell && cell.classList.contains("o") && body.contains(cell);
  const focusOn = (cell) => {
    if (current) current.tabIndex = -1;
    current = cell;
    cell.tabIndex = 0;
    const row = cell.parentElement;
    cell.ariaLabel = `${row.cells[0].textContent} on ${columns[cell.cellIndex - 1]}: ${cell.className.slice(2)}`;
    cell.focus();
  };
  const next = (cell, down, right) => {
    let row = cell.parentElement, at = cell.cellIndex;
    for (;;) {
      if (down) { row = down > 0 ? row.nextElementSibling : row.previousElementSibling; } else { at += right; }
      const found = row && row.cells[at];
      if (!found || at < 1) return null;
      if (isCell(found) && !row.hidden && found.offsetParent) return found;
    }
  };
  const first = body.querySelector("td.o");
  if (first) { current = first; first.tabIndex = 0; }
  table.addEventListener("keydown", (event) => {
    if (!isCell(event.target)) return;
    const way = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (way) {
      event.preventDefault();
      const found = next(event.target, ...way);
      if (found) focusOn(found);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      openCell(event.target);
    }
  });
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (isCell(cell)) { focusOn(cell); openCell(cell); }
  });

  // Details: read when they are asked for. Their HTML was made with every text escaped.
  const unpack = async (at) => {
    // Several stories are packed together, under the number of the first.
    let first = at;
    while (!byId("d" + first)) first -= 1;
    const bytes = Uint8Array.from(atob(byId("d" + first).textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text())[at - first];
  };
  const steps = (box) => [...box.querySelectorAll("section")].map((step) => {
    const told = [...step.children].filter((part) => !part.classList.contains("note"));
    return [step, step.firstElementChild.textContent, told.map((part) => part.textContent).join("\n")];
  });
  const shown = (html) => {
    const box = make("div", "shown");
    box.innerHTML = html;
    return box;
  };
  const markDifferences = (box, other) => {
    const told = new Map(steps(other).map(([, title, text]) => [title, text]));
    for (const [step, title, text] of steps(box)) step.classList.toggle("differs", told.get(title) !== text);
  };

  const dialog = byId("case");
  const show = async (at, column) => {
    const row = rows[at], story = await unpack(at), names = Object.keys(story.cases);
    const own = story.cases[column], others = names.filter((name) => name !== column);
    byId("c-title").replaceChildren(...row.cells[0].cloneNode(true).childNodes);
    const inner = byId("c-body");
    inner.textContent = "";
    inner.append(make("p", "note", story.about));
    if (story.lines.length) {
      const source = make("details"), box = make("pre");
      source.open = own.outcome !== "passed";
      source.append(make("summary", "", "The story"));
      story.lines.forEach((text, number) => {
        const line = make("div", own.bad.includes(story.first + number) ? "line bad" : "line");
        line.append(make("b", "", story.first + number), make("span", "", text));
        box.append(line);
      });
      source.append(box);
      inner.append(source);
    } else {
      inner.append(make("p", "note", "The lines of the story are not shown: its file was not at hand, has changed, or its texts were redacted."));
    }
    const sides = make("div", "sides"), left = make("div", "side"), right = make("div", "side"), choice = make("select");
    choice.ariaLabel = "Compare with";
    choice.append(new Option("nothing", ""));
    if (own.last) choice.append(new Option("the last run of " + column, " last"));
    others.forEach((name) => choice.append(new Option(name, name)));
    left.append(make("h3", "", column));
    if (own.same) left.append(make("p", "note", "The last run did the same."));
    sides.append(left, right);
    right.append(make("h3", "", "Compared with"), choice);
    const fill = () => {
      const other = choice.value === " last" ? own.last : story.cases[choice.value]?.html;
      sides.querySelectorAll(".shown").forEach((box) => box.remove());
      const mine = shown(own.html);
      left.append(mine);
      if (other) {
        const theirs = shown(other);
        right.append(theirs);
        markDifferences(mine, theirs);
        markDifferences(theirs, mine);
      }
    };
    choice.addEventListener("input", fill);
    if (own.last) choice.value = " last";
    fill();
    inner.append(sides);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  const fail = (error) => {
    byId("c-title").textContent = "This case cannot be shown";
    byId("c-body").replaceChildren(make("pre", "", String(error)));
    if (!dialog.open) dialog.showModal();
  };
  const nameOf = (row) => row.cells[0].firstElementChild.textContent;
  const openCell = (cell) => {
    const row = cell.parentElement, column = columns[cell.cellIndex - 1];
    history.replaceState(null, "", "#case=" + encodeURIComponent(`${nameOf(row)}@${column}`));
    show(rows.indexOf(row), column).catch(fail);
  };
  const openHash = () => {
    if (!location.hash.startsWith("#case=")) return;
    const wanted = decodeURIComponent(location.hash.slice(6));
    for (const [at, row] of rows.entries()) {
      for (const [place, column] of columns.entries()) {
        if (facts[at].outcomes[place] && wanted === `${nameOf(row)}@${column}`) { show(at, column).catch(fail); return; }
      }
    }
  };
  byId("c-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    history.replaceState(null, "", "#stories");
  });
  window.addEventListener("hashchange", openHash);
  openHash();
})();
