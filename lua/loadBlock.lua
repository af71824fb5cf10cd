--[[
Appends a sealed block to a game's queue. A block that is already loaded stays unchanged.

KEYS[1]  {cN}:cell                    hash: epoch; fence of the owner that has claimed the cell
                                      (claimCell.lua)
KEYS[2]  {cN}:games                   hash, game id -> GAME
KEYS[3]  {cN}:block:<game id>:<from>  string, the packed outcomes

ARGV[1]  epoch that the caller expects
ARGV[2]  game id
ARGV[3]  index of the block's first outcome
ARGV[4]  packed outcomes, u16 each
ARGV[5]  fence of the caller

Reply    1: loaded now. 0: loaded before.
Errors   EPOCH <epoch>: the cell has another epoch or none. Nothing was done.
         FENCED <fence>: the cell is claimed by another fence or by none. Nothing was done.
         GAP <end>: the block does not begin at the queue's end. Nothing was done.
]]
-- include: records
-- include: epoch
local epoch = call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then
  return epochError(epoch)
end
local fence = ARGV[5]
-- include: ownerFence
local from = tonumber(ARGV[3])
local count = #ARGV[4] / 2
local record = call('HGET', KEYS[2], ARGV[2])
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = from, from, from, from, 0
if record then
  nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = unpackStruct(GAME_FORMAT, record)
end
if queueEnd >= from + count then
  return 0
end
-- A partly dealt block that was freed (freeBlocks.lua) is loaded again at its old start index.
local isFreed = from == blockFrom and from < nextIndex and queueEnd == nextIndex and from + count == blockEnd
if queueEnd ~= from and not isFreed then
  return redis.error_reply('GAP ' .. format('%.0f', queueEnd))
end
call('SET', KEYS[3], ARGV[4])
call('HSET', KEYS[2], ARGV[2],
  pack(GAME_FORMAT, nextIndex, from + count, blockFrom, blockEnd, readyBlocks + 1))
return 1
