-- trees.lua DEPTH: builds, walks and drops binary trees; every node is a table, so an allocation or two each.
local depth = assert(tonumber(arg[1]), "usage: trees.lua DEPTH")

local function grow(level)
  if level == 0 then return { false, false } end
  return { grow(level - 1), grow(level - 1), name = "n" .. level }
end

local function count(tree)
  return tree[1] and 1 + count(tree[1]) + count(tree[2]) or 1
end

local kept, nodes = grow(depth), 0
for level = 2, depth, 2 do
  for _ = 1, 1 << (depth - level) do nodes = nodes + count(grow(level)) end
end
print(nodes, count(kept))
