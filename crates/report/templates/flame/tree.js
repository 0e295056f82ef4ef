// Sums of the calls by one measure, and the tree that is shown: from the first functions down, or from the innermost
// ones up. Nodes are made when they are needed: most are too narrow to be seen.

// The first function number stands for merged calls (`html/flame/functions.rs`).
const MERGED_CALLS = 0;

// As in the tool, sums saturate at 64 bits.
function exactSum(a, b) {
  const sum = a + b;
  return sum > 0xffffffffffffffffn ? 0xffffffffffffffffn : sum;
}

// Each call's sum with all that it calls.
function inclusiveSums(calls, own) {
  const sums = BigUint64Array.from(own);
  for (let call = calls.count - 1; call > 0; call--) {
    if (sums[call] > 0n) {
      const parent = calls.parents[call];
      sums[parent] = exactSum(sums[parent], sums[call]);
    }
  }
  return sums;
}

// What stacks with a matching function hold. A stack counts once, however many of its functions match.
function matchedSum(calls, sums, matches) {
  let sum = 0n;
  for (let call = 1; call < calls.count;) {
    if (matches[calls.functionOf[call]]) {
      sum = exactSum(sum, sums[call]);
      call = calls.ends[call];
    } else {
      call++;
    }
  }
  return sum;
}

// The own values of calls in stacks with a matching function; 0 of the others.
function matchedOwn(calls, own, matches) {
  const kept = new BigUint64Array(calls.count);
  for (let call = 1; call < calls.count;) {
    if (matches[calls.functionOf[call]]) {
      kept.set(own.subarray(call, calls.ends[call]), call);
      call = calls.ends[call];
    } else {
      call++;
    }
  }
  return kept;
}

// The largest first; equal ones by name.
function sortedNodes(calls, nodes) {
  const name = (node) => calls.functions[node.function].name;
  return nodes.sort((a, b) => (a.total === b.total ? (name(a) < name(b) ? -1 : 1) : a.total > b.total ? -1 : 1));
}

// From the first functions of threads down. Of a comparison, `sides` are the values of the base and of the new one.
function callersFirst(calls, own, sides) {
  const sums = inclusiveSums(calls, own), sideSums = sides?.map((side) => inclusiveSums(calls, side));
  const node = (call, parent) => ({
    call, parent, function: calls.functionOf[call], merged: calls.merged[call], total: sums[call], own: own[call],
    totals: sideSums?.map((side) => side[call]), owns: sides?.map((side) => side[call]),
  });
  function children(parent) {
    const found = [];
    for (let call = parent.call + 1; call < calls.ends[parent.call]; call = calls.ends[call]) {
      if (sums[call] > 0n) found.push(node(call, parent));
    }
    return found;
  }
  return { root: node(0, undefined), children, sums };
}

// From the innermost functions up to their callers. A node has the stacks that it stands for: the calls in which they
// end, and of each the call on its way out that has been reached. What is its own are stacks that begin with it.
function innermostFirst(calls, own, sides) {
  const ends = [];
  for (let call = 1; call < calls.count; call++) {
    if (own[call] > 0n) ends.push(call);
  }
  const sum = (all, values = own) => all.reduce((before, call) => exactSum(before, values[call]), 0n);
  const totals = (all) => sides?.map((side) => sum(all, side));
  const root = {
    parent: undefined, function: -1, merged: 0, total: sum(ends), totals: totals(ends), own: 0n, ends, reached: undefined,
  };
  function children(parent) {
    const groups = new Map();
    parent.ends.forEach((end, at) => {
      const call = parent.reached === undefined ? end : calls.parents[parent.reached[at]];
      if (call === 0) return;
      const key = calls.functionOf[call];
      let group = groups.get(key);
      if (!group) groups.set(key, group = { parent, function: key, ends: [], reached: [] });
      group.ends.push(end);
      group.reached.push(call);
    });
    for (const group of groups.values()) {
      group.total = sum(group.ends);
      group.totals = totals(group.ends);
      group.own = sum(group.ends.filter((_, at) => calls.parents[group.reached[at]] === 0));
      group.merged = group.reached.reduce((merged, call) => merged + calls.merged[call], 0);
    }
    return [...groups.values()];
  }
  return { root, children };
}

// The tree with what a node calls in order, made once.
function shownTree(calls, own, sides, isInverted) {
  const { root, children } = isInverted ? innermostFirst(calls, own, sides) : callersFirst(calls, own, sides);
  const known = new Map();
  return {
    root,
    children(node) {
      if (!known.has(node)) known.set(node, sortedNodes(calls, children(node)));
      return known.get(node);
    },
  };
}
