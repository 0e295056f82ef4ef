// Buffers (blocks of malloc that only V8's own heap points to), JSON, zlib in the thread pool, crypto, workers.
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const crypto = require("crypto");
const fs = require("fs");
const zlib = require("zlib");

function churn(seed, rounds) {
  let state = seed;
  let kept = [];
  const hash = crypto.createHash("sha256");
  for (let round = 0; round < rounds; round++) {
    state = (state * 1103515245 + 12345) % 2147483648;
    const buffer = Buffer.alloc(8192 + (state % 20000), state & 255);
    kept.push(buffer);
    if (kept.length > 500) {
      const [old] = kept.splice(state % kept.length, 1);
      if (!old.every((byte) => byte === old[0])) throw new Error("a buffer has changed");
      hash.update(old.subarray(0, 64));
    }
  }
  for (const buffer of kept) if (!buffer.every((byte) => byte === buffer[0])) throw new Error("a buffer has changed");
  return hash.digest("hex");
}

if (!isMainThread) {
  parentPort.postMessage(churn(workerData.seed, 8000));
} else {
  (async () => {
    const text = fs.readFileSync(process.argv[2], "utf8");
    const counts = new Map();
    for (const word of text.split(/\s+/)) counts.set(word, (counts.get(word) || 0) + 1);
    console.log([...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 20).join(" "));
    console.log(churn(1, 15000));
    const squeezed = await Promise.all(
      [...Array(24).keys()].map(
        (i) => new Promise((yes, no) => zlib.deflate(text.slice(i * 1000), (error, data) => (error ? no(error) : yes(data))))
      )
    );
    console.log(squeezed.map((data) => zlib.inflateSync(data).length).join(" "));
    const keys = await Promise.all(
      [...Array(8).keys()].map(
        (i) => new Promise((yes, no) => crypto.scrypt("word" + i, "salt", 32, (error, key) => (error ? no(error) : yes(key))))
      )
    );
    console.log(keys.map((key) => key.toString("hex")).join(" "));
    const workers = await Promise.all(
      [2, 3].map(
        (seed) =>
          new Promise((yes, no) => {
            const worker = new Worker(__filename, { workerData: { seed } });
            worker.on("message", yes);
            worker.on("error", no);
          })
      )
    );
    console.log(workers.join(" "));
    const table = [...Array(60000).keys()].map((i) => ({ id: i, name: "name " + ((i * 7919) % 10007), tags: [i % 8] }));
    console.log(crypto.createHash("md5").update(JSON.stringify(JSON.parse(JSON.stringify(table)))).digest("hex"));
  })().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}
