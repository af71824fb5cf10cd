--[[
Frees the queue of a game that is not being dealt from. Its blocks are removed, and loadBlock.lua loads them
again later. Dealt outcomes stay dealt, because the counter is unchanged and becomes the queue's end.

KEYS[1]  {cN}:cell                    hash: epoch; fence of the owner that has claimed the cell
                                      (claimCell.lua)
KEYS[2]  {cN}:games                   hash, game id -> GAME
KEYS[3…] {cN}:block:<game id>:<from>  the blocks up to the queue's end

ARGV[1]  epoch that the caller expects
ARGV[2]  game id
ARGV[3]  index of the queue's end, as read by the caller
ARGV[4]  fence of the caller

Reply    1: freed. 0: the queue's end has changed, or no block was ever loaded; nothing was done.
Errors   EPOCH <epoch>: the cell has another epoch or none. Nothing was done.
         FENCED <fence>: the cell is claimed by another fence or by none. Nothing was done.
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
-- The game's record keeps the start of a partly dealt block, so that the block can be loaded again at that
-- index.
call('HSET', KEYS[2], ARGV[2], pack(GAME_FORMAT, nextIndex, nextIndex, blockFrom, blockEnd, 0))
for i = 3, #KEYS do
  call('UNLINK', KEYS[i])
end
return 1
