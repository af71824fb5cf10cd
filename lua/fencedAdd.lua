--[[
Appends to a list on behalf of a cell's owner, once it has claimed the cell and while nobody has since.

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell (claimCell.lua)
KEYS[2]  key of the cell

ARGV[1]  fence of the caller
ARGV[2…] what is appended

Reply    length of the list
Errors   FENCED <fence>: the cell is claimed by another fence, or none: a later owner came, or Redis lost what it held.
         Nothing was done.
]]
-- include: library
local fence = ARGV[1]
-- include: ownerFence
return call('RPUSH', KEYS[2], unpack(ARGV, 2))
