--[[
Writes fields of a hash on behalf of a cell's owner, once it has claimed the cell and while nobody has since.

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell (claimCell.lua)
KEYS[2]  hash to write, of the same cell (KEYS[1] itself, too)

ARGV[1]  fence of the caller
ARGV[2…] field, value, field, value, …

Reply    number of fields that are new
Errors   FENCED <fence>: the cell is claimed by another fence, or none: a later owner came, or Redis lost what it held.
         Nothing was done.
]]
-- include: library
local fence = ARGV[1]
-- include: ownerFence
return call('HSET', KEYS[2], unpack(ARGV, 2))
