-- Tables, strings, closures, coroutines, metatables with finalisers, full and stepwise collection.
local seed = 42
local function rnd(n) seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % n end
local sum = 0
local function mix(s) for i = 1, #s, 7 do sum = (sum * 33 + s:byte(i)) & 0xffffffff end end

local t = {}
for i = 1, 400000 do
  local k = "k" .. rnd(40000)
  local e = t[k] or {n = 0, list = {}}
  e.n = e.n + 1
  e.list[#e.list + 1] = string.rep("v", rnd(50))
  t[k] = i % 5 ~= 0 and e or nil
end
local keys = {}
for k in pairs(t) do keys[#keys + 1] = k end
table.sort(keys)
for _, k in ipairs(keys) do mix(k .. t[k].n .. table.concat(t[k].list)) end
print(#keys, sum)

local function tree(d) return d == 0 and {} or {tree(d - 1), tree(d - 1)} end
local function count(n) return n[1] and 1 + count(n[1]) + count(n[2]) or 1 end
for d = 4, 16, 3 do
  local c = 0
  for _ = 1, 1 << (16 - d) do c = c + count(tree(d)) end
  print(d, c)
end

local finished = 0
for _ = 1, 20000 do setmetatable({string.rep("g", rnd(100))}, {__gc = function() finished = finished + 1 end}) end
collectgarbage()
print("finished", finished)

local words = {}
for w in coroutine.wrap(function() for i = 1, 30000 do coroutine.yield("w" .. rnd(1000) .. i) end end) do
  words[#words + 1] = (w:gsub("(%d)(%d)", "%2%1"))
end
table.sort(words)
mix(table.concat(words, ","))
local buffer = ""
for i = 1, 4000 do buffer = buffer .. i end
mix(buffer)
local out = assert(io.open("result.txt", "w"))
for i = 1, #words, 10 do out:write(words[i], "\n") end
out:close()
print(sum)
