--[[
Writes fields of a hash on behalf of a cell's owner, if the owner has claimed the cell and no other has
claimed it since.

KEYS[1]  {cN}:cell  hash   fence: fence of the owner that has claimed the cell (claimCell.lua)
KEYS[2]  hash of the same cell to write; may be the same key as KEYS[1]

ARGV[1]  fence of the caller
ARGV[2…] field, value, field, value, …

Reply    number of new fields
Errors   FENCED <fence>: the cell is claimed by another fence or by none, because a later owner has claimed it
         or Redis has lost its data. Nothing was done.
]]
-- include: library
local fence = ARGV[1]
-- include: ownerFence
return call('HSET', KEYS[2], unpack(ARGV, 2))
