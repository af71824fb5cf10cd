-- The flags behind a PLAYER, which are read here and nowhere else: each by its bit, since others may stand beside it.
-- include: records
local function isBlocked(tail)
  return tail and hasFlag(byte(tail), IS_BLOCKED)
end
-- More shares that are still to be notified of are in the player's list.
local function hasListed(tail)
  return tail and hasFlag(byte(tail), HAS_LISTED)
end
