--[[
Lets nothing more be done for a partner in a cell, which it leaves, or lets it be done again. On behalf of a cell's owner.

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell; away: between semicolons, each partner that is away,
                           its id; and each that was away and has come back, "<id>:<number of the move by which it came>";
                           step:<partner id>: the newest step of a move of the partner that the cell has seen

ARGV[1]  fence of the caller
ARGV[2]  partner id
ARGV[3]  "away"; or the number of the newest move by which it came back: who knows of no such move is turned away. 0: it was never
         away. "keep": as it is
ARGV[4]  number of the step, greater than that of every step before of the partner's moves

Reply    OK
Errors   FENCED <fence>: the cell is claimed by another fence, or none, or has seen a later step of the partner. Nothing was done.
]]
-- include: library
local fence = ARGV[1]
-- include: ownerFence
local away, step = unpack(call('HMGET', KEYS[1], 'away', 'step:' .. ARGV[2]))
if tonumber(step or 0) > tonumber(ARGV[4]) then
  return redis.error_reply('FENCED by step ' .. step)
end
if ARGV[3] == 'keep' then
  call('HSET', KEYS[1], 'step:' .. ARGV[2], ARGV[4])
  return redis.status_reply('OK')
end
away = away or ';'
local from, to = find(away, ';' .. ARGV[2] .. ':?%d*;')
local others = from and sub(away, 1, from) .. sub(away, to + 1) or away
local mark = ''
if ARGV[3] == 'away' then
  mark = ARGV[2] .. ';'
elseif ARGV[3] ~= '0' then
  mark = ARGV[2] .. ':' .. ARGV[3] .. ';'
end
call('HSET', KEYS[1], 'away', others .. mark, 'step:' .. ARGV[2], ARGV[4])
return redis.status_reply('OK')
