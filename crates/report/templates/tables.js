// Tables that sort by a column and, where they are long, show only rows with a text. Without scripts they are as written.
(() => {
  // Rows from which a table has a filter.
  const LONG = 8;
  const UNITS = {
    KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, k: 1e3, M: 1e6, G: 1e9,
    ns: 1e-9, "\u00b5s": 1e-6, "\u03bcs": 1e-6, us: 1e-6, ms: 1e-3, min: 60, h: 3600,
  };

  // The first number of a cell in its unit; nothing where there is none.
  function amount(text) {
    const plain = text.replace(/[\u2009\u202f\u00a0,]/g, "").replace(/\u2212/g, "-").trim();
    const found = /^[~<>+\u00d7]*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) *([A-Za-z\u00b5\u03bc]*)/.exec(plain);
    return found ? Number(found[1]) * (UNITS[found[2]] ?? 1) : undefined;
  }

  // Numbers by size, texts by the alphabet; cells without a value last in either order.
  function compare(a, b, sign, isNumeric) {
    if (!isNumeric) return sign * a.text.localeCompare(b.text, undefined, { numeric: true });
    if (a.amount === undefined || b.amount === undefined) {
      return (a.amount === undefined ? 1 : 0) - (b.amount === undefined ? 1 : 0);
    }
    return sign * (a.amount - b.amount);
  }

  function sorts(table) {
    const body = table.tBodies[0], written = [...body.rows], headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      if (heading.textContent.trim() === "") return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      const isNumeric = heading.classList.contains("num");
      button.addEventListener("click", () => {
        // Figures largest first, names from A; then the other way; then as written.
        const orders = isNumeric ? ["none", "descending", "ascending"] : ["none", "ascending", "descending"];
        const next = orders[(orders.indexOf(heading.getAttribute("aria-sort")) + 1) % 3];
        headings.filter((other) => other.hasAttribute("aria-sort")).forEach((other) => other.setAttribute("aria-sort", "none"));
        heading.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        const keyed = written.map((row) => {
          const text = row.cells[column]?.textContent.trim() ?? "";
          return { row, text, amount: isNumeric ? amount(text) : undefined };
        });
        if (next !== "none") keyed.sort((a, b) => compare(a, b, sign, isNumeric));
        body.append(...keyed.map((one) => one.row));
      });
    });
  }

  function filters(table) {
    const rows = [...table.tBodies[0].rows];
    const label = document.createElement("label"), input = document.createElement("input"), count = document.createElement("output");
    label.className = "filter";
    input.type = "search";
    label.append("Rows with ", input, " ", count);
    (table.closest(".scroll") ?? table).before(label);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      count.textContent = wanted === "" ? "" : `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    sorts(table);
    if (table.tBodies[0].rows.length >= LONG) filters(table);
  }
})();
