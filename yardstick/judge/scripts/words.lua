-- A tree of words by their letters, and the lines that they came from.
local root, lines = {}, {}
for line in io.lines(arg[1]) do
  lines[#lines + 1] = line
  for word in line:gmatch("%a+") do
    local at = root
    for letter in (word .. #line):gmatch(".") do
      at[letter] = at[letter] or {}
      at = at[letter]
    end
    at.count = (at.count or 0) + 1
    at.last = line:sub(1, 20) .. word
  end
end
local function sum(at)
  local total = at.count or 0
  for _, below in pairs(at) do
    if type(below) == "table" then total = total + sum(below) end
  end
  return total
end
table.sort(lines)
print(sum(root), #table.concat(lines, "\n"))
