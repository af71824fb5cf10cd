-- The record of a game's communal progressive (src/domain/layouts.ts, POT_STATE to TIER), and the list of its
-- recent players.
--
-- RECENT   text with one line per spin, newest last: "<partner id>:<playerId>". At the start, and wherever
--          the time changes, a line "=<ms since the Unix epoch>". No playerId contains a line feed.
-- include: records
-- include: layouts/communal
local gmatch = string.gmatch
local MOMENT = byte('=')
local NO_STATUS = rep('\0', PLAYER_STATUS_BYTES)

-- Splits a RECENT into its lines.
local function linesOf(recent)
  local lines, count = {}, 0
  for line in gmatch(recent, '[^\n]+') do
    count = count + 1
    lines[count] = line
  end
  return lines
end

local function readPot(record)
  local version, stateFlags, progress, budget = unpackStruct(POT_STATE_FORMAT, record)
  local partnerId, flags, interval, split, windowMinutes, communitySize, tierCount, at =
    unpackStruct(POT_RULES_FORMAT, record, POT_STATE_BYTES + 1)
  return {
    version = version, stateFlags = stateFlags, progress = progress, budget = budget,
    progressBefore = progress, budgetBefore = budget, rules = sub(record, POT_STATE_BYTES + 1),
    partner = format('%.0f:', partnerId), remembers = hasFlag(stateFlags, REMEMBERS_PLAYERS),
    enabled = hasFlag(flags, ENABLED),
    returnsToBudget = hasFlag(flags, RETURNS_TO_BUDGET), paysRemaining = hasFlag(flags, PAYS_REMAINING),
    interval = interval, split = split, windowMinutes = windowMinutes, communitySize = communitySize,
    tierCount = tierCount, tiersAt = at, record = record, recent = {}, recentCount = 0,
  }
end

-- Returns the tier that fires when the counter reaches its next value: the highest tier whose
-- `triggerAtSpins` divides that value, or nil.
local function nextTier(pot)
  local count = pot.progress + 1
  if count % pot.interval ~= 0 then return nil end
  local at, tier = pot.tiersAt, nil
  for level = 1, pot.tierCount do
    local spins, amount, name
    spins, amount, name, at = unpackStruct(TIER_FORMAT, pot.record, at)
    if count % spins == 0 then tier = { level = level, amount = amount, name = name } end
  end
  return tier
end

-- Encodes the note with which the ledger gets the changes that a call makes to a pot.
local function stateNote(pot, cause, reference)
  return pack(
    STATE_NOTE_FORMAT, STATE_NOTE, cause, reference,
    pot.progressBefore, pot.progress, pot.budgetBefore, pot.budget
  )
end

local function potRecord(pot)
  return pack(POT_STATE_FORMAT, pot.version, pot.stateFlags, pot.progress, pot.budget) .. pot.rules
end
