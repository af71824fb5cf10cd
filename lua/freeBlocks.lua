--[[
Frees the queue of a game that is not dealt from: its blocks are removed, and loadBlock.lua loads them again. What is dealt
stays dealt: the counter is left as it is, and the queue ends there.

KEYS[1]  {cN}:cell                    hash, for the epoch and the fence of the owner that has claimed the cell (claimCell.lua)
KEYS[2]  {cN}:games                   hash, game id -> GAME
KEYS[3…] {cN}:block:<game id>:<from>  the blocks up to the queue's end

ARGV[1]  epoch that the caller believes in
ARGV[2]  game id
ARGV[3]  index at which the queue ends, as the caller has read it
ARGV[4]  fence of the caller

Reply    1 freed, 0 the queue ends elsewhere by now, or nothing was ever loaded; nothing was done.
Errors   EPOCH <epoch>: the cell is at another epoch, or none; nothing was done.
         FENCED <fence>: the cell is claimed by another fence, or none; nothing was done.
]]
-- include: records
-- include: epoch
local epoch = call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then
  return epochError(epoch)
end
local fence = ARGV[4]
-- include: ownerFence
local record = call('HGET', KEYS[2], ARGV[2])
if not record then
  return 0
end
local nextIndex, queueEnd, blockFrom, blockEnd = unpackStruct(GAME_FORMAT, record)
if queueEnd ~= tonumber(ARGV[3]) then
  return 0
end
-- Of a block that is partly dealt the record keeps its place.
call('HSET', KEYS[2], ARGV[2], pack(GAME_FORMAT, nextIndex, nextIndex, blockFrom, blockEnd, 0))
for i = 3, #KEYS do
  call('UNLINK', KEYS[i])
end
return 1
