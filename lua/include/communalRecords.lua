-- The record of a game's communal progressive. The readers outside Lua are src/redis/communalRecords.ts.
--
-- STATE    version of the rules u32, flags u8 (1: players are remembered), spins counted u48, budget i64 (micro-USD)
-- RULES    partner id u32, flags u8 (1 enabled, 2 an empty community's part stays in the budget, 4 a short budget pays what
--          is left), interval u32, trigger part u16 (hundredths of a percent), window u16 (minutes), community u8,
--          tiers u8; each tier: spins u32, amount i64 (micro-USD), length of its name u16, its name
-- TOLD     what a spin tells of an event, the tail of its reply and of what its requestId is bound to: event id as low u32
--          and high u32, tier level u8, of the player who fired u8, paid in all i64, share i64, name of the tier
-- SHARE    a share that its player is still to be told of: length of the rest u16, entry id of the share u64, TOLD.
--          Oldest first: those behind PLAYER, then those of the player's list
--
-- RECENT   text, a line for each spin, the newest last: "<partner id>:<playerId>". Where it starts, and wherever the time
--          changes, a line "=<ms since the epoch>". No playerId has a line feed.
-- include: records
local STATE_FORMAT, STATE_BYTES = '<I4BI6i8', 19
local SPLIT_WHOLE, TIER_AMOUNT_MAX = 10000, 1e12
-- Players that a game remembers at the most, and calls after which their list is made one RECENT again.
local RECENCY_MAX, RECENCY_CALLS_MAX = 201, 32
-- Bytes behind PLAYER beyond which shares go to the list; shares that are taken off the list at a time; shares that may wait.
local UNTOLD_BYTES_MAX, UNTOLD_TAKEN, UNTOLD_MAX = 2048, 16, 10000
-- Ledger entries of a call that fires, at the most: no call holds up the cell for long.
local ENTRIES_MAX = 256
local gmatch = string.gmatch
local MOMENT = byte('=')
local NO_STATUS = rep('\0', PLAYER_STATUS_BYTES)

-- The lines of a RECENT.
local function linesOf(recent)
  local lines, count = {}, 0
  for line in gmatch(recent, '[^\n]+') do
    count = count + 1
    lines[count] = line
  end
  return lines
end

local function readPot(record)
  local version, stateFlags, progress, budget = unpackStruct(STATE_FORMAT, record)
  local partnerId, flags, interval, split, windowMinutes, communitySize, tierCount, at =
    unpackStruct('<I4BI4I2I2BB', record, STATE_BYTES + 1)
  return {
    version = version, stateFlags = stateFlags, progress = progress, budget = budget,
    progressBefore = progress, budgetBefore = budget, rules = sub(record, STATE_BYTES + 1),
    partner = format('%.0f:', partnerId), remembers = stateFlags % 2 == 1, enabled = flags % 2 == 1,
    returnsToBudget = floor(flags / 2) % 2 == 1, paysRemaining = floor(flags / 4) % 2 == 1,
    interval = interval, split = split, windowMinutes = windowMinutes, communitySize = communitySize,
    tierCount = tierCount, tiersAt = at, record = record, recent = {}, recentCount = 0,
  }
end

-- The tier that fires at the count after this one: the highest whose spins divide it; nil: none.
local function nextTier(pot)
  local count = pot.progress + 1
  if count % pot.interval ~= 0 then return nil end
  local at, tier = pot.tiersAt, nil
  for level = 1, pot.tierCount do
    local spins, amount, name
    spins, amount, name, at = unpackStruct('<I4i8I2c0', pot.record, at)
    if count % spins == 0 then tier = { level = level, amount = amount, name = name } end
  end
  return tier
end

-- What a call changed of a pot. Causes: 1 spins, 2 rules, 3 funding.
local function stateNote(pot, cause, reference)
  return '\1' .. char(cause) .. pack('<I6I6I6i8i8', reference, pot.progressBefore, pot.progress, pot.budgetBefore,
    pot.budget)
end

local function potRecord(pot)
  return pack(STATE_FORMAT, pot.version, pot.stateFlags, pot.progress, pot.budget) .. pot.rules
end
