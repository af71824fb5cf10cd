-- Reads the flags that follow a PLAYER in the player's record. Only this file reads them. Each flag is tested
-- by its bit, because other flags may be set as well.
-- include: records
local function isBlocked(tail)
  return tail and hasFlag(byte(tail), IS_BLOCKED)
end
-- True if the player's list has shares, beyond those in the record, that the player has not been notified of.
local function hasListed(tail)
  return tail and hasFlag(byte(tail), HAS_LISTED)
end
