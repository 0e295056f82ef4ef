// Lines that a call has here (`html/flame/lines.rs`); it may have more.
const KEPT_LINES = 6;

// The calls of a flame graph from the bytes that `html/flame/packed.rs` writes. Call 0 is the root, which has no
// function; a call is before what it calls. Values are exact: they may have 64 bits.
function decodedCalls(bytes) {
  let at = 0;

  function byte() {
    if (at >= bytes.length) throw new Error("the flame graph is cut off");
    return bytes[at++];
  }

  function number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const next = byte();
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
  }

  // Seven bytes are exact as a plain number, which is faster.
  function exact() {
    let low = 0;
    for (let count = 0, scale = 1; count < 7; count++, scale *= 128) {
      const next = byte();
      low += (next & 127) * scale;
      if (next < 128) return BigInt(low);
    }
    let high = 0n;
    for (let shift = 49n; ; shift += 7n) {
      const next = byte();
      high |= BigInt(next & 127) << shift;
      if (next < 128) return high | BigInt(low);
    }
  }

  const headLength = number();
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(at, at + headLength)));
  at += headLength;
  const texts = head.texts;
  const functions = Array.from({ length: number() }, () => ({}));
  for (const part of ["name", "object", "file"]) {
    for (const one of functions) one[part] = texts[number()];
  }
  const count = number() + 1;
  const parents = new Int32Array(count), ends = new Int32Array(count), functionOf = new Int32Array(count);
  const merged = new Float64Array(count);
  parents[0] = functionOf[0] = -1;
  for (let call = 1; call < count; call++) {
    let parent = call - 1;
    for (let up = number(); up > 0; up--) parent = parents[parent];
    parents[call] = parent;
  }
  for (let call = 1; call < count; call++) functionOf[call] = number();
  for (let call = 1; call < count; call++) merged[call] = number();
  const lineCounts = new Int32Array(count), lineStarts = new Int32Array(count + 1);
  for (let call = 1; call < count; call++) {
    lineCounts[call] = number();
    lineStarts[call + 1] = lineStarts[call] + Math.min(lineCounts[call], KEPT_LINES);
  }
  const lines = Int32Array.from({ length: lineStarts[count] }, number);

  function column() {
    const own = new BigUint64Array(count);
    for (let call = 1; call < count; call++) own[call] = exact();
    return own;
  }

  // A comparison has the values of the base after its own.
  const measures = head.measures.map((measure) => {
    const own = column();
    return { ...measure, own, base: head.sides ? column() : undefined };
  });
  // What a call calls is between it and its end.
  for (let call = count - 1; call >= 0; call--) {
    ends[call] = Math.max(ends[call], call + 1);
    if (call > 0) ends[parents[call]] = Math.max(ends[parents[call]], ends[call]);
  }
  return {
    functions, parents, ends, functionOf, merged, lineCounts, lineStarts, lines, measures, first: head.first, sides: head.sides, count,
  };
}
