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
    const differ = byId("f-differ").checked;
    const shown = [...document.getElementsByName("column")].filter((box) => box.checked).map((box) => +box.value);
    let count = 0;
    rows.forEach((row, at) => {
      const fact = facts[at], found = shown.map((column) => fact.outcomes[column]).filter(Boolean);
      const fits = found.length > 0 && words.every((word) => fact.text.includes(word))
        && (!group || fact.groups.includes(group)) && (!harm || row.dataset.h === harm)
        && (!outcome || found.includes(outcome)) && (!differ || new Set(found).size > 1);
      count += fits;
      row.hidden = !fits || count > limit;
    });
    while (sheet.cssRules.length > own) sheet.deleteRule(own);
    columns.forEach((_, column) => {
      if (!shown.includes(column)) sheet.insertRule(`#matrix tr>:nth-child(${column + 2}){display:none}`, own);
    });
    byId("f-count").textContent = (count === 1 ? "1 story" : `${count} stories`) + (count > limit ? `, the first ${limit} shown` : "");
    byId("f-more").hidden = count <= limit;
  };
  byId("f-more").addEventListener("click", () => { limit = Infinity; filter(); });
  if (rows.length > MOST) filter();
  byId("filters").addEventListener("input", filter);
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());

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

  // Details: read when they are asked for. Everything is put in as text, never as markup.
  const unpack = async (at) => {
    const bytes = Uint8Array.from(atob(byId("d" + at).textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };
  const pre = (text) => make("pre", "", typeof text === "string" ? text : JSON.stringify(text, null, 1));
  const isHit = (one) => one && typeof one === "object" && typeof one.text === "string";
  const grid = (header, lines) => {
    const wide = make("div", "wide"), made = make("table"), head = make("tr");
    header.forEach((text) => head.append(make("th", "", text)));
    made.append(head);
    for (const line of lines) {
      const row = make("tr");
      line.forEach((text) => row.append(make("td", "", text ?? "")));
      made.append(row);
    }
    wide.append(made);
    return wide;
  };
  const calls = (list) => (list || []).map((call) =>
    call && call.name ? pre(`${call.name}(${JSON.stringify(call.args || {})})\n→ ${call.error ? "error: " + call.error : JSON.stringify(call.result ?? null)}`) : pre(call));
  const result = (value) => {
    if (Array.isArray(value) && value.some(isHit)) {
      return [grid(["#", "score", "text", "key or id"], value.map((hit, at) => isHit(hit)
        ? [at + 1, typeof hit.score === "number" ? hit.score.toFixed(3) : hit.score, hit.text, hit.key || hit.id] : ["", "", hit, ""]))];
    }
    if (value && typeof value === "object" && ("answer" in value || value.tool_calls)) {
      return [...calls(value.tool_calls), pre("answered: " + (value.answer || "(nothing)"))];
    }
    if (value && typeof value === "object" && Array.isArray(value.items) && value.items.some((item) => item && item.outcome)) {
      return [grid(["outcome", "text", "key or id", "reason"], value.items.map((item) => [item.outcome, item.text, item.key || item.id, item.reason]))];
    }
    if (value && typeof value === "object" && value.name && value.args) return calls([value]);
    return [pre(value)];
  };
  const check = (one) => {
    if (one.passed) return make("div", "check ok", "✓ " + one.reason);
    const made = make("div", "check bad");
    made.append(make("div", "", "✗ " + one.where + ": " + one.reason));
    if (one.expected !== undefined || one.actual !== undefined) {
      const pair = make("div", "pair");
      for (const name of ["expected", "actual"]) {
        const side = make("div");
        side.append(make("b", "", name), pre(one[name] ?? "(nothing)"));
        pair.append(side);
      }
      made.append(pair);
    }
    if (one.difference) made.append(make("b", "", "difference"), pre(one.difference));
    return made;
  };
  // What is only texts is shown as texts; anything else as JSON.
  const plainly = (said, args) => {
    if (said.length === 1 && typeof args.text === "string") return args.text;
    const items = said.length === 1 && Array.isArray(args.items) ? args.items : [];
    const alone = (one) => one && typeof one.text === "string" && Object.keys(one).length === 1;
    return items.length && items.every(alone) ? items.map((one) => one.text).join("\n") : args;
  };
  const inWords = (value) => Array.isArray(value) ? value.map(inWords).join("; ")
    : value && typeof value === "object" ? Object.entries(value).map(([name, inner]) => `${name} ${inWords(inner)}`).join(", ") : String(value);
  const bare = (step) => step && JSON.stringify([step.op, step.args, step.error, step.result]);
  const block = (title, ...inner) => {
    const made = make("div", "block");
    made.append(make("h4", "", title), ...inner);
    return made;
  };
  const side = (found, other) => {
    const made = make("div");
    const line = make("p");
    line.append(make("span", "o " + found.outcome, found.outcome), found.seconds ? ` ${found.seconds} s` : "");
    for (const name of ["trial", "rate"]) if (found[name]) line.append(", " + found[name]);
    made.append(line);
    if (found.reason) made.append(pre(found.reason));
    for (const name of ["options", "about", "warnings", "redacted"]) {
      if (found[name]) made.append(make("p", "note", `${name}: ${inWords(found[name])}`));
    }
    const byStep = new Map(((other && other.steps) || []).map((step) => [step.n, step]));
    const checks = (found.checks || []).slice();
    for (const step of found.steps || []) {
      if (!step.n) { made.append(pre(step)); continue; }
      const differs = other && bare(byStep.get(step.n)) !== bare(step);
      const box = make("div", differs ? "step differs" : "step"), head = make("h4", "", `${step.n} ${step.op} `);
      head.append(make("small", "", [step.user, step.session, step.at, step.ms + " ms", step.model, differs ? "differs" : ""].filter(Boolean).join(" · ")));
      box.append(head);
      const args = step.args || {}, said = Object.keys(args);
      if (said.length) box.append(pre(plainly(said, args)));
      if (step.error) box.append(pre("refused: " + step.error));
      else if (step.result !== undefined) box.append(...result(step.result));
      for (let at = 0; at < checks.length;) {
        if (checks[at].step === step.n) box.append(check(checks.splice(at, 1)[0])); else at += 1;
      }
      made.append(box);
    }
    for (const one of checks) made.append(one.where ? check(one) : pre(one));
    if (found.ended) made.append(block(`Ended${found.ended.step ? " in step " + found.ended.step : ""}: ${found.ended.kind}`, pre(found.ended.message), ...(found.ended.detail ? [pre(found.ended.detail)] : [])));
    if (found.scores) made.append(block("Scores", grid(["metric", "value", "95% interval", "n"], found.scores.map((one) => one.metric
      ? [one.metric + (one.level ? " " + JSON.stringify(one.level) : ""), (+one.value).toFixed(3), one.low === undefined ? "" : `${(+one.low).toFixed(2)} to ${(+one.high).toFixed(2)}`, one.questions] : [one, "", "", ""]))));
    for (const task of found.asked || []) {
      made.append(block(`${task.name} ${task.level || ""}: ${task.questions - (task.missed || 0)} of ${task.questions} questions found all they should, ${task.documents} documents, k = ${task.k}`,
        grid(["question", "category", "wanted", "got"], (task.examples || []).map((one) => [one.id, one.category, (one.wanted || []).join(", "), (one.got || []).join(", ")]))));
    }
    return made;
  };

  const dialog = byId("case");
  const show = async (at, column) => {
    const row = rows[at], story = await unpack(at), names = Object.keys(story.cases);
    const own = story.cases[column], others = names.filter((name) => name !== column);
    byId("c-title").replaceChildren(...row.cells[0].cloneNode(true).childNodes);
    const inner = byId("c-body");
    inner.textContent = "";
    inner.append(make("p", "note", [story.where, ...(story.tags || []), ...(story.covers || [])].join(" · ")));
    if (story.lines.length) {
      const bad = new Set((own.checks || []).filter((one) => one.passed === false).map((one) => +String(one.where).split(":").at(-2)));
      const source = make("details"), box = make("pre");
      source.open = own.outcome !== "passed";
      source.append(make("summary", "", "The story"));
      story.lines.forEach((text, number) => {
        const line = make("div", bad.has(story.first + number) ? "line bad" : "line");
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
    choice.append(new Option("beside it: nothing", ""));
    if (own.last) choice.append(new Option("the last run of " + column, " last"));
    others.forEach((name) => choice.append(new Option(name, name)));
    left.append(make("h3", "", column));
    if (own.same) left.append(make("p", "note", "The last run did the same."));
    sides.append(left, right);
    right.append(make("h3", "", "Beside it"), choice);
    const fill = () => {
      const other = choice.value === " last" ? own.last : story.cases[choice.value];
      left.querySelector(".shown")?.remove();
      right.querySelector(".shown")?.remove();
      const mine = make("div", "shown");
      mine.append(side(own, other));
      left.append(mine);
      if (other) {
        const theirs = make("div", "shown");
        theirs.append(side(other, own));
        right.append(theirs);
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
    byId("c-body").replaceChildren(pre(String(error)));
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
    if (current) current.focus();
  });
  window.addEventListener("hashchange", openHash);
  openHash();
})();
