"use strict";
// Draws the page's charts in SVG: traces of points in the units of their axes, and a note on what the reader points at.
(() => {
  const figures = JSON.parse(document.getElementById("charts").textContent);
  const places = [...document.querySelectorAll(".chart")];
  // px: the width of a chart that is folded away, how near to a point the reader must point, around the drawing.
  const UNSEEN = 700, NEAR = 24, TOP = 8, RIGHT = 14, LINE = 16, TICK = 5;
  // Characters of a name on an axis.
  const NAME = 20;
  const pen = document.createElement("canvas").getContext("2d");
  const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const drawn = new Map();

  function svg(parent, name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  const fixed = (value) => +value.toFixed(2);
  const short = (text) => (text.length > NAME ? `${text.slice(0, NAME - 1)}…` : text);
  const widest = (axis) => Math.max(0, ...axis.ticks.map((tick) => pen.measureText(short(tick[1])).width));

  // From the units of an axis to px.
  function scale({ log, ends }, from, to) {
    const of = log ? Math.log : Number;
    const [low, high] = ends.map(of);
    return (value) => from + ((to - from) * (of(Math.min(Math.max(value, ends[0]), ends[1])) - low)) / (high - low);
  }

  // How the labels of the axis across stand: upright where they have no room side by side.
  function stance(axis, width) {
    if (!axis.named) return { turn: 0, deep: LINE };
    const each = width / Math.max(1, axis.ticks.length), wide = widest(axis);
    if (wide + 8 <= each) return { turn: 0, deep: LINE };
    const turn = each < 20 ? 90 : 40;
    return { turn, deep: wide * Math.sin((turn * Math.PI) / 180) + 12 };
  }

  function frame(root, figure, width) {
    const { x, y, height } = figure;
    const left = 8 + widest(y) + TICK + (y.title ? LINE + 4 : 0), right = width - RIGHT;
    const { turn, deep } = stance(x, right - left), bottom = height - deep - TICK - (x.title ? LINE + 6 : 2);
    const [atX, atY] = [scale(x, left, right), scale(y, bottom, TOP)];
    for (const [low, high] of figure.shaded) {
      svg(root, "rect", { class: "shade", x: left, y: atY(high), width: right - left, height: atY(low) - atY(high) });
    }
    let free = -Infinity;
    for (const [place, label] of x.ticks) {
      const at = fixed(atX(place)), half = turn ? 6 : pen.measureText(short(label)).width / 2;
      if (!x.named) svg(root, "line", { class: "grid", x1: at, x2: at, y1: TOP, y2: bottom });
      if (at - half < free) continue;
      free = at + half + (turn ? 1 : 6);
      const below = bottom + TICK + (turn ? 6 : 11);
      const turned = { transform: `rotate(-${turn} ${at} ${below})`, "text-anchor": turn ? "end" : "middle" };
      svg(root, "text", { class: "xtick", x: at, y: below, ...turned }, short(label));
    }
    for (const [place, label] of y.ticks) {
      const at = fixed(atY(place));
      if (!y.named) svg(root, "line", { class: "grid", x1: left, x2: right, y1: at, y2: at });
      svg(root, "text", { class: "ytick", x: left - TICK, y: at + 4, "text-anchor": "end" }, short(label));
    }
    svg(root, "path", { class: "axes", d: `M${left} ${TOP}V${bottom}H${right}` });
    if (figure.upright !== null) {
      const at = atX(figure.upright);
      svg(root, "line", { class: "upright", x1: at, x2: at, y1: TOP, y2: bottom });
    }
    const middle = (TOP + bottom) / 2;
    svg(root, "text", { class: "title", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.title);
    const upwards = { transform: `rotate(-90 14 ${middle})`, "text-anchor": "middle" };
    svg(root, "text", { class: "title", x: 14, y: middle, ...upwards }, y.title);
    return { figure, root, atX, atY, left, right, bottom };
  }

  // Through the points; with steps, each height holds until the next point.
  function along(points, { atX, atY }, step) {
    return points.map(([x, y], index) => {
      const [px, py] = [fixed(atX(x)), fixed(atY(y))];
      if (index === 0) return `${px} ${py}`;
      return step ? `H${px}V${py}` : `L${px} ${py}`;
    }).join("");
  }

  function edge(points, { atX, atY }, step) {
    return points.map(([x, y], index) => {
      const [px, py] = [fixed(atX(x)), fixed(atY(y))];
      return step && index > 0 ? `V${py}H${px}` : `L${px} ${py}`;
    }).join("");
  }

  // The ends of the intervals, with their caps.
  function whiskers(trace, index, { figure, atX, atY }) {
    const [x, y] = trace.points[index], { cap } = trace;
    const ends = (pair, axis) => [pair[0] ?? axis.ends[0], pair[1] ?? axis.ends[1]];
    let path = "";
    if (trace.across) {
      const [from, to] = ends(trace.across[index], figure.x).map((end) => fixed(atX(end))), at = fixed(atY(y));
      path += `M${from} ${at}H${to}M${from} ${at - cap}v${2 * cap}M${to} ${at - cap}v${2 * cap}`;
    }
    if (trace.up) {
      const middle = trace.shape === "bars" ? x + trace.offset + trace.width / 2 : x;
      const [from, to] = ends(trace.up[index], figure.y).map((end) => fixed(atY(end))), at = fixed(atX(middle));
      path += `M${at} ${from}V${to}M${at - cap} ${from}h${2 * cap}M${at - cap} ${to}h${2 * cap}`;
    }
    return path;
  }

  const shapes = {
    line(root, trace, plot) {
      const style = `stroke:${trace.color};stroke-width:${trace.width};stroke-dasharray:${trace.dash || "none"}`;
      svg(root, "path", { class: "mark line", d: `M${along(trace.points, plot, trace.step)}`, style });
    },
    area(root, trace, plot) {
      const back = trace.points.map(([x], index) => [x, trace.base[index]]).reverse();
      const d = `M${along(trace.points, plot, trace.step)}${edge(back, plot, trace.step)}Z`;
      svg(root, "path", { class: "mark", d, style: `fill:${trace.color};fill-opacity:${trace.opacity}` });
    },
    marks(root, trace, plot) {
      const paint = trace.hollow
        ? `fill:var(--paper);stroke:${trace.color};stroke-width:2;stroke-linejoin:round`
        : `fill:${trace.color}`;
      trace.points.forEach(([x, y], index) => {
        const opacity = trace.pale[index] ? 0.45 : trace.opacity, ends = whiskers(trace, index, plot);
        if (ends) svg(root, "path", { class: "whisker", d: ends, style: `stroke:${trace.color};opacity:${opacity}` });
        const transform = `translate(${fixed(plot.atX(x))} ${fixed(plot.atY(y))}) scale(${fixed(trace.size / 10)})`;
        svg(root, "path", { class: "mark", d: trace.path, transform, style: `${paint};opacity:${opacity}` });
      });
    },
    bars(root, trace, plot) {
      const { atX, atY, bottom } = plot, style = `fill:${trace.color};opacity:${trace.opacity}`;
      // From nothing, or from the end of an axis that has no place for it.
      const floor = plot.figure.y.log ? bottom : atY(0);
      trace.points.forEach(([x, y], index) => {
        const [from, to, at] = [atX(x + trace.offset), atX(x + trace.offset + trace.width), atY(y)].map(fixed);
        const [top, height] = [Math.min(at, floor), Math.abs(floor - at)];
        svg(root, "rect", { class: "mark", x: from, y: top, width: Math.max(to - from - 1, 1), height, style });
        const ends = whiskers(trace, index, plot);
        if (ends) svg(root, "path", { class: "whisker", d: ends, style: "stroke:var(--ink)" });
      });
    },
  };

  function draw(place) {
    const figure = figures[place.id], width = place.clientWidth || UNSEEN;
    const root = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    root.setAttribute("viewBox", `0 0 ${width} ${figure.height}`);
    root.setAttribute("role", "img");
    root.setAttribute("aria-label", place.closest("figure").querySelector("h4")?.textContent ?? "");
    const plot = frame(root, figure, width);
    for (const trace of figure.traces) shapes[trace.shape](root, trace, plot);
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    place.replaceChildren(root, tip);
    drawn.set(place, { ...plot, tip, width });
  }

  // How far the point is from what the reader points at, px; of a bar, its nearest part.
  function distance(trace, [x, y], { atX, atY, bottom }, px, py) {
    if (trace.shape !== "bars") return Math.hypot(atX(x) - px, atY(y) - py);
    const [from, to, top] = [atX(x + trace.offset), atX(x + trace.offset + trace.width), atY(y)];
    return Math.hypot(Math.max(0, from - px, px - to), Math.max(0, top - py, py - bottom));
  }

  // The trace and the index of the nearest point.
  function nearest(plot, px, py) {
    let best = null, least = NEAR;
    for (const trace of plot.figure.traces.filter((trace) => trace.notes)) {
      trace.points.forEach((point, index) => {
        const far = distance(trace, point, plot, px, py);
        if (far < least) [best, least] = [[trace, index], far];
      });
    }
    return best;
  }

  function label(axis, value) {
    const name = axis.named && axis.ticks.find(([place]) => Math.abs(place - value) < 0.5);
    return name ? name[1] : numbers.format(value);
  }

  // A line of a note; its colour where it has one.
  function row(text, isHead, color) {
    const line = document.createElement(isHead ? "b" : "span");
    line.textContent = text;
    if (color) {
      const swatch = document.createElement("i");
      swatch.style.background = color;
      line.prepend(swatch);
    }
    return line;
  }

  function noteOnPoint({ figure }, [trace, index]) {
    const [x, y] = trace.points[index].map((value, axis) => label(axis ? figure.y : figure.x, value));
    const text = trace.notes[index] ?? (figure.y.named ? `${y}: ${x}` : `${x}: ${y}`);
    return [...(trace.name ? [row(trace.name, true)] : []), ...text.split("\n").map((line) => row(line))];
  }

  function noteOnPlace({ figure, atX }, px) {
    const [first] = figure.traces;
    const far = first.points.map(([x]) => Math.abs(atX(x) - px)), index = far.indexOf(Math.min(...far));
    const rows = figure.traces.filter((trace) => trace.shape === "area").reverse().map((trace) => {
      const value = numbers.format(trace.points[index][1] - trace.base[index]);
      return row(`${trace.name}: ${value}`, false, trace.color);
    });
    return [row(label(figure.x, first.points[index][0]), true), ...rows];
  }

  function point(event) {
    const plot = drawn.get(event.currentTarget), { tip, figure, root, width } = plot;
    const box = root.getBoundingClientRect(), ratio = width / box.width;
    const [px, py] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
    const isInside = px > plot.left - NEAR && px < plot.right + NEAR;
    const found = figure.together ? isInside : nearest(plot, px, py);
    tip.hidden = !found;
    if (!found) return;
    tip.replaceChildren(...(figure.together ? noteOnPlace(plot, px) : noteOnPoint(plot, found)));
    tip.style.top = `${(py + 12) / ratio}px`;
    const isLeft = px < width / 2;
    tip.style.left = isLeft ? `${(px + 12) / ratio}px` : "auto";
    tip.style.right = isLeft ? "auto" : `${(width - px + 12) / ratio}px`;
  }

  try {
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    places.forEach(draw);
    // Charts that are unfolded, and windows that change.
    const resized = new ResizeObserver((entries) => {
      const others = entries.map((entry) => entry.target);
      others.filter((place) => place.clientWidth && place.clientWidth !== drawn.get(place).width).forEach(draw);
    });
    for (const place of places) {
      resized.observe(place);
      place.addEventListener("pointermove", point);
      place.addEventListener("pointerdown", point);
      place.addEventListener("pointerleave", () => { drawn.get(place).tip.hidden = true; });
    }
    document.documentElement.dataset.charts = "drawn";
  } catch (error) {
    const note = document.getElementById("no-charts");
    note.textContent = `The charts cannot be drawn here (${error.message}). The tables contain the same figures.`;
    note.hidden = false;
    places.forEach((place) => { place.closest("figure").hidden = true; });
  }
})();
