--[[
Stops or resumes commands for a partner in a cell that the partner leaves or comes back to. The caller is the
cell's owner. Each move of a partner to another cell has a number. The steps of the partner's moves have
numbers, too, which grow from step to step and from move to move.

KEYS[1]  {cN}:cell  hash   fence: fence of the owner that has claimed the cell; away: partners between
                           semicolons, "<id>" for a partner that has left, "<id>:<number of the move back>"
                           for one that has left and come back; step:<partner id>: newest step of the
                           partner's moves that the cell has seen

ARGV[1]  fence of the caller
ARGV[2]  partner id
ARGV[3]  "away": stop the commands.
         A number: resume the commands. The number is that of the move by which the partner came back, and
         only callers that know of this move are served. 0: resume them, because the partner never left.
         "keep": change nothing, and only store the step.
ARGV[4]  number of the step

Reply    OK
Errors   FENCED <fence>: the cell is claimed by another fence or by none. Nothing was done.
         FENCED by step <step>: the cell has seen this later step of the partner. Nothing was done.
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
