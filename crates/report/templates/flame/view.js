// A flame graph: what is shown of it, what the reader does with it, and what is read aloud.
class FlameGraph {
  constructor(figure) {
    this.figure = figure;
    this.parts = Object.fromEntries([...figure.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
    this.canvas = this.parts.view.querySelector("canvas");
    this.calls = decodedCalls(unpacked(figure.querySelector(".calls").textContent));
    this.measure = this.calls.measures[this.calls.first];
    this.colors = flameColors();
    const { hues, others } = this.calls.sides ? { hues: new Map(), others: 0 } : objectHues(this.calls, this.measure);
    this.hues = hues;
    this.matches = undefined;
    figure.querySelector(".drawn").hidden = false;
    this.offerMeasures();
    if (this.calls.sides) this.nameChanges();
    else this.nameHues(others);
    this.listen();
    this.rebuild();
  }

  offerMeasures() {
    const options = this.calls.measures.map((measure, at) => new Option(measure.title, at));
    this.parts.measure.append(...options);
    this.parts.measure.value = this.calls.first;
  }

  // An entry of the legend; `color` is one of CSS.
  legendEntry(name, color, title) {
    const chip = document.createElement("span"), swatch = document.createElement("i"), text = document.createElement("bdi");
    chip.className = "chip";
    chip.title = title;
    swatch.className = "swatch";
    swatch.style.setProperty("--key", color);
    text.textContent = name;
    chip.append(swatch, text);
    return chip;
  }

  nameHues(others) {
    const color = (hue) => `color-mix(in srgb, var(--hue-${hue}) 60%, var(--paper))`;
    const entries = [...this.hues].map(([object, hue]) => this.legendEntry(baseName(object), color(hue), object));
    if (others > 0) entries.push(this.legendEntry(others === 1 ? "1 other object" : `${others} other objects`, color("base"), ""));
    this.parts.legend.append(...entries);
  }

  nameChanges() {
    const color = (share) => {
      const hue = share === 0 ? "base" : share > 0 ? MORE_HUE : LESS_HUE;
      return `color-mix(in srgb, var(--hue-${hue}) ${(changeStrength(share) || 0.2) * 100}%, var(--paper))`;
    };
    this.parts.legend.append(...changeLegend(this.calls.sides).map(([share, name]) => this.legendEntry(name, color(share), "")));
  }

  // What is shown changed: another measure, other stacks, another direction.
  rebuild() {
    const { calls, measure, parts, matches } = this;
    this.isInverted = parts.inverted.checked;
    const isFiltered = parts.only.checked && matches !== undefined;
    const before = this.top && { zoomed: this.steps(this.top), selected: this.steps(this.selected) };
    const widths = calls.sides ? comparedWidths(measure, parts.side.value) : measure.own;
    const sides = calls.sides && [measure.base, measure.own];
    const kept = (own) => (isFiltered ? matchedOwn(calls, own, matches) : own);
    this.all = inclusiveSums(calls, widths)[0];
    this.whole = sides?.map((side) => inclusiveSums(calls, side)[0]);
    this.tree = shownTree(calls, kept(widths), sides?.map(kept), this.isInverted);
    const isSame = before && before.zoomed.isInverted === this.isInverted;
    this.history = [];
    this.top = isSame ? this.found(before.zoomed) : this.tree.root;
    if (this.top !== this.tree.root) this.history.push(this.tree.root);
    this.selected = isSame ? this.found(before.selected) : this.top;
    this.layOut();
  }

  // The functions from the root to a node.
  steps(node) {
    const functions = [];
    for (; node.parent; node = node.parent) functions.push(node.function);
    return { functions: functions.reverse(), isInverted: node.call === undefined };
  }

  // The node at the end of such steps, or the last that is there.
  found({ functions }) {
    let node = this.tree.root;
    for (const number of functions) {
      const next = this.tree.children(node).find((child) => child.function === number);
      if (!next) break;
      node = next;
    }
    return node;
  }

  layOut() {
    this.width = this.parts.view.clientWidth;
    this.rows = flameRows(this.tree, this.top, this.width);
    this.boxes = new Map(this.rows.flat().filter((box) => box.node).map((box) => [box.node, box]));
    this.parts.view.querySelector(".height").style.height = `${this.rows.length * ROW}px`;
    // The whole picture, but no more of it than a screen shows.
    this.parts.view.style.height = `${Math.min(this.rows.length * ROW, Math.max(innerHeight * 0.7, 6 * ROW)) + 2}px`;
    if (this.parts.view.clientWidth !== this.width) {
      this.width = this.parts.view.clientWidth;
      this.rows = flameRows(this.tree, this.top, this.width);
      this.boxes = new Map(this.rows.flat().filter((box) => box.node).map((box) => [box.node, box]));
    }
    if (!this.boxes.has(this.selected)) this.selected = this.top;
    this.showPath();
    this.describe(this.selected);
    this.paint();
  }

  paint() {
    const { canvas, colors, rows } = this, view = this.parts.view, ratio = devicePixelRatio || 1;
    const height = view.clientHeight, context = canvas.getContext("2d");
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${height}px`;
    context.scale(ratio, ratio);
    context.font = `12px ${colors.font}`;
    context.textBaseline = "middle";
    const first = Math.floor(view.scrollTop / ROW), last = Math.min(rows.length, first + Math.ceil(height / ROW) + 1);
    for (let row = first; row < last; row++) {
      for (const box of rows[row]) paintBox(context, box, row * ROW - view.scrollTop, colors, this.look(box));
    }
  }

  look({ node }) {
    const { calls, colors, matches } = this;
    if (!node) return { fill: colors.line };
    const isSelected = node === this.selected;
    if (node.function <= MERGED_CALLS) {
      return { fill: node.function < 0 ? colors.band : colors.line, ink: colors.muted, name: nodeName(calls, node), isSelected };
    }
    const hue = this.hues.get(calls.functions[node.function].object);
    const isDim = matches && !matches[node.function];
    const ink = isDim ? colors.muted : colors.ink;
    if (node.totals) {
      const share = changeShare(node.totals), mark = share > 0 ? "\u25b2 " : share < 0 ? "\u25bc " : "";
      return { fill: isDim ? colors.dim : colors.change(share), ink, mark, name: nodeName(calls, node), isSelected };
    }
    const fill = isDim ? colors.dim : matches ? colors.strong(hue) : colors.plain(hue);
    return { fill, ink, name: nodeName(calls, node), isSelected };
  }

  // Exact numbers of a node, for the eye and for a screen reader.
  describe(node) {
    const { calls, measure, parts } = this, [name, numbers, place] = parts.status.children;
    name.textContent = nodeName(calls, node);
    const texts = node.totals ? this.changes(node) : this.amounts(node);
    numbers.textContent = `${measure.title}: ${texts.join("; ")}`;
    const { object } = calls.functions[node.function] ?? { object: "" };
    place.textContent = [object, positionText(calls, node)].filter((text) => text !== "").join(" \u00b7 ");
  }

  amounts(node) {
    const { measure, all } = this, texts = [amountText(node.total, measure.unit)];
    if (node.total !== all || node.parent) texts[0] += `, ${percentText(node.total, all)} of all`;
    if (node.parent?.parent) {
      texts.push(`${percentText(node.total, node.parent.total)} of ${this.isInverted ? "the frame above" : "its caller"}`);
    }
    if (node.function > MERGED_CALLS && !this.isInverted) {
      texts.push(node.own === 0n ? "itself 0" : `itself ${amountText(node.own, measure.unit)}, ${percentText(node.own, all)}`);
    }
    return texts;
  }

  changes(node) {
    const { calls, measure, whole } = this, texts = [changeText(node.totals, measure.unit, calls.sides)];
    const share = node.parent ? differenceShareText(node.totals, whole) : "";
    if (share !== "") texts.push(share);
    const isPart = node.owns?.some((own, side) => own > 0n && own !== node.totals[side]);
    if (isPart) texts.push(`itself ${changeText(node.owns, measure.unit, calls.sides)}`);
    return texts;
  }

  describeBox(box) {
    if (box.node) {
      this.describe(box.node);
      return;
    }
    const [name, numbers, place] = this.parts.status.children;
    name.textContent = `(${exactText(box.narrow)} too narrow to be drawn)`;
    numbers.textContent = `Zoom to ${nodeName(this.calls, box.above)} to see them.`;
    place.textContent = "";
  }

  // The zoomed node and its callers, each a button; of many the first and the last.
  showPath() {
    const path = [];
    for (let node = this.top; node; node = node.parent) path.unshift(node);
    const shown = path.length > 6 ? [path[0], undefined, ...path.slice(-4)] : path;
    const entries = shown.map((node) => {
      const entry = document.createElement(node ? "button" : "span");
      const name = node && nodeName(this.calls, node);
      entry.textContent = node ? shortName(name) : `\u2026 ${exactText(path.length - 5)} more \u2026`;
      if (node) {
        entry.type = "button";
        entry.title = name;
        entry.disabled = node === this.top;
        entry.addEventListener("click", () => { this.zoom(node); });
      }
      return entry;
    });
    this.parts.path.replaceChildren(...entries);
    this.parts.back.disabled = this.history.length === 0;
  }

  zoom(node) {
    if (!node || node === this.top) return;
    this.history.push(this.top);
    this.show(node, node);
  }

  back() {
    const before = this.history.pop();
    if (before) this.show(before, this.top);
  }

  show(top, selected) {
    this.top = top;
    this.selected = selected;
    this.parts.view.scrollTop = 0;
    this.layOut();
    this.reveal();
  }

  select(node) {
    this.selected = node;
    this.describe(node);
    this.reveal();
    this.paint();
  }

  // Scrolls to the selected node.
  reveal() {
    const view = this.parts.view, y = this.boxes.get(this.selected).row * ROW;
    if (y < view.scrollTop) view.scrollTop = y;
    else if (y + ROW > view.scrollTop + view.clientHeight) view.scrollTop = y + ROW - view.clientHeight;
  }

  // The node above, below, to the left or to the right of the selected one.
  move(key) {
    const box = this.boxes.get(this.selected), row = this.rows[box.row].filter((other) => other.node);
    if (key === "ArrowUp") {
      if (!this.selected.parent) return;
      if (this.selected === this.top) this.zoom(this.selected.parent);
      else this.select(this.selected.parent);
    } else if (key === "ArrowDown") {
      const largest = this.tree.children(this.selected)[0];
      if (!largest) return;
      // What it calls may be too narrow to be seen.
      if (!this.boxes.has(largest)) this.zoom(this.selected);
      if (this.boxes.has(largest)) this.select(largest);
    } else {
      const next = row[row.indexOf(box) + (key === "ArrowLeft" ? -1 : 1)];
      if (next) this.select(next.node);
    }
  }

  search() {
    const { parts, calls, measure } = this, text = parts.search.value;
    parts.found.textContent = "";
    this.matches = undefined;
    if (text !== "") {
      try {
        this.matches = matchingFunctions(calls, text, parts.pattern.checked);
      } catch (error) {
        parts.found.textContent = `This is no regular expression: ${error.message}`;
      }
    }
    if (this.matches) {
      const sums = inclusiveSums(calls, measure.own), sum = matchedSum(calls, sums, this.matches);
      const count = this.matches.reduce((all, one) => all + one, 0);
      // Call stacks that may match in calls that were merged.
      const possible = Uint8Array.from(this.matches);
      possible[MERGED_CALLS] = 1;
      const unknown = matchedSum(calls, sums, possible) - sum;
      const also = unknown > 0n ? ` Call stacks of ${percentText(unknown, sums[0])} more end in smaller calls, which are not searched.` : "";
      const base = calls.sides && matchedSum(calls, inclusiveSums(calls, measure.base), this.matches);
      const held = calls.sides ? `: ${changeText([base, sum], measure.unit, calls.sides)}` : ` hold ${amountText(sum, measure.unit)}, ${percentText(sum, sums[0])} of all`;
      parts.found.textContent = `${exactText(count)} function${count === 1 ? " matches" : "s match"}; call stacks with at least one of them${held}.${also}`;
    }
    this.rebuild();
  }

  boxAt(event) {
    const { top, left } = this.parts.view.getBoundingClientRect(), view = this.parts.view;
    const row = this.rows[Math.floor((event.clientY - top - view.clientTop + view.scrollTop) / ROW)] ?? [];
    const x = event.clientX - left - view.clientLeft;
    return row.find((box) => x >= box.x && x < box.x + box.w);
  }

  listen() {
    const { parts } = this, { view } = parts;
    const keys = {
      Enter: () => this.zoom(this.selected), Escape: () => this.back(), Backspace: () => this.back(),
      Home: () => (this.top === this.tree.root ? this.select(this.top) : this.zoom(this.tree.root)),
    };
    view.addEventListener("keydown", (event) => {
      const does = keys[event.key] ?? (event.key.startsWith("Arrow") ? () => this.move(event.key) : undefined);
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      does();
    });
    let touched = false;
    view.addEventListener("pointerdown", (event) => { touched = event.pointerType === "touch"; });
    view.addEventListener("pointermove", (event) => {
      const box = this.boxAt(event);
      if (box && event.pointerType !== "touch") this.describeBox(box);
    });
    view.addEventListener("pointerleave", () => this.describe(this.selected));
    view.addEventListener("click", (event) => {
      const box = this.boxAt(event), node = box && (box.node ?? box.above);
      if (!node) return;
      // A finger cannot hover: it selects first.
      if (touched && node !== this.selected) this.select(node);
      else if (node === this.top) this.back();
      else this.zoom(node);
    });
    view.addEventListener("scroll", () => requestAnimationFrame(() => this.paint()));
    parts.back.addEventListener("click", () => this.back());
    parts.measure.addEventListener("change", () => {
      this.measure = this.calls.measures[parts.measure.value];
      this.search();
    });
    parts.side?.addEventListener("change", () => this.rebuild());
    for (const name of ["search", "pattern"]) parts[name].addEventListener("input", () => this.search());
    for (const name of ["only", "inverted"]) parts[name].addEventListener("input", () => this.rebuild());
    new ResizeObserver(() => { if (view.clientWidth !== this.width) this.layOut(); }).observe(view);
    const recolor = () => {
      this.colors = flameColors();
      this.paint();
    };
    for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", recolor);
  }
}

for (const figure of document.querySelectorAll("figure.flame")) {
  try {
    figure.flame = new FlameGraph(figure);
    figure.dataset.flame = "drawn";
  } catch (error) {
    figure.querySelector(".drawn").hidden = true;
    const note = document.createElement("p");
    note.className = "alert";
    note.textContent = `The flame graph cannot be drawn here (${error.message}). The table contains its largest call stacks.`;
    figure.prepend(note);
  }
}
