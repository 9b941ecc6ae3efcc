-- Tables, strings and closures that come and go under the garbage collector.
local turns = tonumber(arg[1])
local seed, sum = 42, 0
local function random(n)
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return (seed >> 8) % n
end
local function mix(text)
  for i = 1, #text, 5 do sum = (sum * 33 + text:byte(i)) & 0xffffffff end
end

-- Entries under keys made anew each time; one in five is dropped with all its strings.
local function entries(count)
  local kept = {}
  for i = 1, count do
    local key = "key" .. random(count // 10)
    local entry = kept[key] or {n = 0, parts = {}}
    entry.n = entry.n + 1
    entry.parts[#entry.parts + 1] = string.rep("v", random(120)) .. i
    kept[key] = i % 5 ~= 0 and entry or nil
  end
  local names = {}
  for name in pairs(kept) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do mix(name .. table.concat(kept[name].parts)) end
end

local function tree(depth)
  return depth == 0 and {} or {tree(depth - 1), tree(depth - 1)}
end
local function count(node) return node[1] and 1 + count(node[1]) + count(node[2]) or 1 end

local function closures(number)
  local waiting = {}
  for i = 1, number do
    local text, at = "c" .. i, random(500) + 1
    if waiting[at] then mix(waiting[at]("!")) end
    waiting[at] = function(tail) return text .. tail end
  end
end

for turn = 1, turns do
  entries(150000)
  local nodes = 0
  for _ = 1, 6 do nodes = nodes + count(tree(14)) end
  closures(100000)
  print(turn, nodes, sum)
end
