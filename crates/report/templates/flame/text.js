// Exact numbers and names of a flame graph as text.

// Grouped as in the tool's tables.
function exactText(value) {
  const digits = value.toString();
  return digits.length > 4 ? digits.replace(/\B(?=(\d{3})+$)/g, "\u202f") : digits;
}

function threeDigits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

// In the largest unit of these, each with its size, that leaves at least 1; nothing below the first.
function inUnit(value, units) {
  const fitting = units.filter(([, size]) => value >= size).at(-1);
  return fitting && `${threeDigits(value / fitting[1])} ${fitting[0]}`;
}

const BINARY_UNITS = [["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30], ["TiB", 2 ** 40]];
const TIME_UNITS = [["\u00b5s", 1e3], ["ms", 1e6], ["s", 1e9], ["h", 3600e9]];
const BY_INSTRUCTIONS = "\u00d7 10\u2079 instructions";
const INSTRUCTION_UNITS = [[`KiB ${BY_INSTRUCTIONS}`, 2 ** 10 * 1e6], [`MiB ${BY_INSTRUCTIONS}`, 2 ** 20 * 1e6], [`GiB ${BY_INSTRUCTIONS}`, 2 ** 30 * 1e6]];
const ALLOCATION_UNITS = [["KiB \u00d7 MiB allocated", 2 ** 20], ["MiB \u00d7 MiB allocated", 2 ** 30], ["MiB \u00d7 GiB allocated", 2 ** 40], ["GiB \u00d7 GiB allocated", 2 ** 50]];
const UNITS = {
  bytes: BINARY_UNITS, ns: TIME_UNITS, "bytes \u00d7 1000 instructions": INSTRUCTION_UNITS, "bytes \u00d7 KiB allocated": ALLOCATION_UNITS,
};

// `1 234 567 bytes (1.18 MiB)`. Sums saturate.
function amountText(value, unit) {
  const short = inUnit(Number(value), UNITS[unit] ?? []);
  const atLeast = value === 0xffffffffffffffffn ? "at least " : "";
  return `${atLeast}${exactText(value)}${unit && ` ${unit}`}${short ? ` (${short})` : ""}`;
}

// As the tool's `percent`: what is not nothing is not shown as nothing, and what is not all not as all.
function percentText(part, whole) {
  if (whole === 0n) return "\u2013";
  if (part === whole) return "100 %";
  const percent = Number(part) * 100 / Number(whole);
  if (percent <= 0) return "0 %";
  if (percent < 0.01) return "< 0.01 %";
  if (percent < 0.995) return `${percent.toFixed(2)} %`;
  return percent < 99.95 ? `${percent.toFixed(1)} %` : "> 99.9 %";
}

function nodeName(calls, node) {
  if (node.function < 0) return "all";
  if (node.function !== MERGED_CALLS) return calls.functions[node.function].name;
  return node.merged === 1 ? "(1 smaller call)" : `(${exactText(node.merged)} smaller calls)`;
}

// Source file and lines of a node: `parse.c:12, 40`. A node of the inverted tree has the lines of all its calls.
function positionText(calls, node) {
  const { file } = calls.functions[node.function] ?? { file: "" };
  if (file === "") return "";
  const own = node.reached ?? [node.call], lines = new Set();
  let most = 0;
  for (const call of own) {
    most = Math.max(most, calls.lineCounts[call]);
    for (let at = calls.lineStarts[call]; at < calls.lineStarts[call + 1]; at++) lines.add(calls.lines[at]);
  }
  if (lines.size === 0) return file;
  const shown = [...lines].sort((a, b) => a - b).slice(0, KEPT_LINES);
  const more = most > shown.length || lines.size > shown.length ? " and others" : "";
  return `${file}:${shown.join(", ")}${more}`;
}

// `get_pkg` of `<sources::registry::Source as Trait<T>>::get_pkg::<U>(int)`; a closure with its function. A name of only
// brackets, and one without them, stays as it is.
function shortName(name) {
  const parts = [""];
  let depth = 0;
  for (let at = 0; at < name.length; at++) {
    const letter = name[at], isArrow = letter === ">" && name[at - 1] === "-";
    if ("<(".includes(letter)) depth++;
    else if (")>".includes(letter) && !isArrow) depth--;
    else if (depth === 0 && name.startsWith("::", at)) {
      parts.push("");
      at++;
    } else if (depth === 0) {
      parts[parts.length - 1] += letter;
    }
  }
  const named = parts.filter((part) => part.trim() !== "");
  while (named.length > 1 && named.at(-1).startsWith("{")) {
    const closure = named.pop();
    named.push(`${named.pop()}::${closure}`);
  }
  return named.at(-1)?.trim() || name;
}

function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

// Which functions have a text or match a regular expression in their name, source file or object file, by number.
function matchingFunctions(calls, text, isPattern) {
  const lower = text.toLowerCase(), pattern = isPattern ? new RegExp(text, "i") : undefined;
  const has = pattern ? (part) => pattern.test(part) : (part) => part.toLowerCase().includes(lower);
  return Uint8Array.from(calls.functions, (one, number) =>
    (number !== MERGED_CALLS && (has(one.name) || has(one.file) || has(one.object)) ? 1 : 0));
}
