// Unpacks gzip (RFC 1951 and 1952) at once. The browser's own DecompressionStream gives its bytes later, and a page that
// is pictured as soon as it is loaded would have empty pictures.
function inflated(packed) {
  const out = new Uint8Array(new DataView(packed.buffer).getUint32(packed.length - 4, true));
  let at = 10, written = 0, held = 0, holds = 0;
  if (packed[0] !== 0x1f || packed[1] !== 0x8b || packed[3] !== 0) throw new Error("packed data are damaged");

  function bits(count) {
    while (holds < count) {
      held |= packed[at++] << holds;
      holds += 8;
    }
    const value = held & ((1 << count) - 1);
    held >>>= count;
    holds -= count;
    return value;
  }

  // Symbols by the length of their codes, and how many there are of each length.
  function coding(lengths) {
    const counts = new Uint16Array(16), starts = new Uint16Array(16), symbols = new Uint16Array(lengths.length);
    for (const length of lengths) counts[length]++;
    counts[0] = 0;
    for (let length = 1; length < 16; length++) starts[length] = starts[length - 1] + counts[length - 1];
    lengths.forEach((length, symbol) => { if (length > 0) symbols[starts[length]++] = symbol; });
    return { counts, symbols };
  }

  function symbol({ counts, symbols }) {
    for (let length = 1, code = 0, first = 0, before = 0; length < 16; length++) {
      code = (code << 1) | bits(1);
      first <<= 1;
      if (code - first < counts[length]) return symbols[before + code - first];
      first += counts[length];
      before += counts[length];
    }
    throw new Error("packed data are damaged");
  }

  // The first of the values that share a symbol; how many share it, as bits, is the other.
  function ranges(first, extras) {
    let next = first;
    return extras.map((extra) => {
      const range = [next, extra];
      next += 1 << extra;
      return range;
    });
  }
  const steps = (count, each, from) => Array.from({ length: count }, (_, n) => Math.max(0, Math.floor(n / each) - from));
  const lengthsOf = [...ranges(3, steps(28, 4, 1)), [258, 0]];
  const distancesOf = ranges(1, steps(30, 2, 1));

  function described() {
    const [literals, distances, count] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    const own = new Array(19).fill(0);
    for (let n = 0; n < count; n++) own[order[n]] = bits(3);
    const lengthCoding = coding(own), lengths = [];
    while (lengths.length < literals + distances) {
      const found = symbol(lengthCoding);
      if (found < 16) {
        lengths.push(found);
        continue;
      }
      const again = found === 16 ? lengths.at(-1) : 0;
      const times = found === 16 ? 3 + bits(2) : found === 17 ? 3 + bits(3) : 11 + bits(7);
      for (let n = 0; n < times; n++) lengths.push(again);
    }
    return [coding(lengths.slice(0, literals)), coding(lengths.slice(literals))];
  }

  function fixed() {
    const lengths = Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8));
    return [coding(lengths), coding(new Array(30).fill(5))];
  }

  function block([literals, distances]) {
    for (;;) {
      const found = symbol(literals);
      if (found === 256) return;
      if (found < 256) {
        out[written++] = found;
        continue;
      }
      const [length, lengthBits] = lengthsOf[found - 257];
      const end = written + length + bits(lengthBits);
      const [distance, distanceBits] = distancesOf[symbol(distances)];
      const back = distance + bits(distanceBits);
      for (; written < end; written++) out[written] = out[written - back];
    }
  }

  function stored() {
    held = holds = 0;
    const length = packed[at] | (packed[at + 1] << 8);
    out.set(packed.subarray(at + 4, at + 4 + length), written);
    at += 4 + length;
    written += length;
  }

  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) stored();
    else block(kind === 1 ? fixed() : described());
  }
  return out;
}

// The bytes of gzip in base64.
function unpacked(text) {
  return inflated(Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0)));
}
