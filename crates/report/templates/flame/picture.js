// Where each node of a flame graph stands, and how it is painted.

// Height of a row and narrowest node that is painted, px.
const ROW = 20;
const NARROWEST = 1;
// Hues of the style sheet.
const HUES = 6;

// The rows below and with the node that is zoomed to: in each, nodes from left to right. What is too narrow is one
// box without a node, which states how many they are.
function flameRows(tree, top, width) {
  const rows = [];
  const open = [{ node: top, x: 0, w: width, row: 0 }];
  while (open.length > 0) {
    const box = open.pop();
    (rows[box.row] ??= []).push(box);
    if (!box.node) continue;
    const scale = box.node.total === 0n ? 0 : box.w / Number(box.node.total), children = tree.children(box.node);
    let x = box.x;
    for (let at = 0; at < children.length; at++) {
      const w = Number(children[at].total) * scale;
      if (w < NARROWEST) {
        const rest = children.slice(at).reduce((sum, child) => sum + Number(child.total), 0) * scale;
        open.push({ narrow: children.length - at, above: box.node, x, w: rest, row: box.row + 1 });
        break;
      }
      open.push({ node: children[at], x, w, row: box.row + 1 });
      x += w;
    }
  }
  rows.forEach((row) => row.sort((a, b) => a.x - b.x));
  return rows;
}

// Objects with most of a measure have the hues; the others are grey.
function objectHues(calls, measure) {
  const sums = new Map();
  for (let call = 1; call < calls.count; call++) {
    const object = calls.functions[calls.functionOf[call]].object;
    if (object !== "") sums.set(object, (sums.get(object) ?? 0) + Number(measure.own[call]) + 1e-9);
  }
  const largest = [...sums].sort((a, b) => b[1] - a[1]).map(([object]) => object);
  return { hues: new Map(largest.slice(0, HUES).map((object, hue) => [object, hue])), others: largest.length - HUES };
}

// `#rrggbb` of one colour over another.
function mixedColor(color, other, share) {
  const parts = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [a, b] = [parts(color), parts(other)];
  return `rgb(${a.map((part, at) => Math.round(part * share + b[at] * (1 - share))).join()})`;
}

// The colours of the page's theme.
function flameColors() {
  const styles = getComputedStyle(document.documentElement);
  const value = (name) => styles.getPropertyValue(name).trim();
  const paper = value("--paper"), line = value("--line"), base = value("--hue-base");
  const hue = (number) => (number === undefined ? base : value(`--hue-${number}`));
  return {
    paper, line, ink: value("--ink"), muted: value("--muted"), band: value("--band"), font: value("--font"),
    dim: mixedColor(line, paper, 0.55),
    plain: (number) => mixedColor(hue(number), paper, 0.42),
    strong: (number) => mixedColor(hue(number), paper, 0.7),
    change: (share) => mixedColor(share === 0 ? base : hue(share > 0 ? MORE_HUE : LESS_HUE), paper, changeStrength(share) || 0.2),
  };
}

// As much of a name as fits into so many px; nothing where it would be less than five characters. Where the whole does
// not fit, what is in brackets and before the last parts is left out: the exact name is in the line above the picture.
function fittingText(context, name, width) {
  // Names may have a thousand characters; no character of this font is narrower than 2.5 px on average.
  if (name.length * 2.5 <= width && context.measureText(name).width <= width) return name;
  const text = shortName(name), start = text.slice(0, Math.ceil(width / 2.5));
  if (start.length === text.length && context.measureText(text).width <= width) return text;
  let [fits, over] = [0, start.length];
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (context.measureText(`${start.slice(0, middle)}\u2026`).width <= width) fits = middle;
    else over = middle;
  }
  return fits >= 5 ? `${start.slice(0, fits)}\u2026` : "";
}

function paintBox(context, box, y, colors, look) {
  const gap = box.w > 3 ? 1 : 0;
  context.fillStyle = look.fill;
  context.fillRect(box.x, y, Math.max(box.w - gap, 0.5), ROW - 1);
  if (look.isSelected) {
    context.strokeStyle = colors.ink;
    context.lineWidth = 2;
    context.strokeRect(box.x + 1, y + 1, Math.max(box.w - gap - 2, 1), ROW - 3);
  }
  if (look.name && box.w > 16) {
    context.fillStyle = look.ink;
    const mark = look.mark ?? "", offset = mark === "" ? 0 : context.measureText(mark).width;
    const name = fittingText(context, look.name, box.w - 9 - offset);
    context.fillText(mark + name, box.x + 4, y + ROW / 2);
  }
}
