--[[
Counts a failed authentication in the fixed window (minute of the Unix epoch) of a client address.

KEYS[1]  {auth}:<address>  string with expiry, "<minute>:<count>"

ARGV[1]  limit of the window

Reply    {number of failures in the window, at most the limit plus 1; time in seconds since the Unix epoch}
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
