--[[
Counts a failed authentication against the fixed window (epoch minute) of a client address.

KEYS[1]  {auth}:<address>  string with expiry, "<minute>:<count>"

ARGV[1]  limit of the window

Reply    {count in the window, the limit at the most, plus 1 where this failure is over it; time in seconds}
]]
-- include: library
local second = tonumber(call('TIME')[1])
local minute = floor(second / 60)
local limit = tonumber(ARGV[1])
local value = call('GET', KEYS[1])
local count = 0
if value then
  local storedMinute, storedCount = string.match(value, '^(%d+):(%d+)$')
  if tonumber(storedMinute) == minute then
    count = tonumber(storedCount)
  end
end
if count <= limit then
  count = count + 1
  call('SET', KEYS[1], minute .. ':' .. count, 'EX', 120)
end
return { count, second }
