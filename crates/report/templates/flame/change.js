// Differences of a flame graph of two profiles: as values, as text, and as colours. Pairs are of the base and of the new one.

// What the widths of a comparison are: one side, or call stack by call stack the larger of both.
function comparedWidths(measure, side) {
  if (side !== "larger") return measure[side];
  return BigUint64Array.from(measure.own, (own, call) => (own > measure.base[call] ? own : measure.base[call]));
}

// From -1 (nothing is left) over 0 (the same) and 0.5 (doubled) to 1 (there was nothing before).
function changeShare([base, own]) {
  const larger = own > base ? own : base;
  return larger === 0n ? 0 : Number(own - base) / Number(larger);
}

function signOf([base, own]) {
  return own > base ? "+" : own < base ? "\u2212" : "";
}

// `+50.0 %`, `12.3 times`.
function ratioText([base, own]) {
  const ratio = Number(own) / Number(base);
  if (ratio >= 10) return `${threeDigits(ratio)} times`;
  const percent = Math.abs(ratio - 1) * 100;
  const digits = percent >= 99.95 && percent < 100 ? "> 99.9" : percent < 0.005 ? "< 0.01" : percent < 0.995 ? percent.toFixed(2) : percent.toFixed(1);
  return `${signOf([base, own])}${digits} %`;
}

// `before 10 bytes, after 15 bytes: +5 bytes (+50.0 %)`.
function changeText(pair, unit, names) {
  const [base, own] = pair;
  const both = `${names[0]} ${amountText(base, unit)}, ${names[1]} ${amountText(own, unit)}`;
  if (base === own) return `${both}: no difference`;
  const more = own > base ? own - base : base - own;
  const share = base === 0n ? `only in ${names[1]}` : own === 0n ? `only in ${names[0]}` : ratioText(pair);
  return `${both}: ${signOf(pair)}${amountText(more, unit)} (${share})`;
}

// A part of the whole difference, where both have the same direction.
function differenceShareText(pair, whole) {
  const part = pair[1] - pair[0], all = whole[1] - whole[0];
  if (part === 0n || all === 0n || (part > 0n) !== (all > 0n)) return "";
  const positive = (value) => (value < 0n ? -value : value);
  const [of, from] = [positive(part), positive(all)];
  return of > from ? "more than the whole difference" : `${percentText(of, from)} of the whole difference`;
}

// How much of its hue a change has.
function changeStrength(share) {
  return share === 0 ? 0 : 0.14 + 0.5 * Math.abs(share);
}

// The hues of the style sheet for more and for less: those that readers with any common colour blindness distinguish.
const MORE_HUE = 3;
const LESS_HUE = 0;

// Legend: changes and what they are called.
function changeLegend(names) {
  return [[-1, `only in ${names[0]}`], [-0.5, "half"], [0, "the same"], [0.5, "double"], [1, `only in ${names[1]}`]];
}
