-- Arithmetic of an event of a communal progressive, in whole micro-USD. The results are exact for amounts up
-- to TIER_AMOUNT_MAX.
-- include: communalRecords

-- Returns the amount that an event of a tier pays out of a budget, or nil if the event is skipped.
local function payable(amount, budget, paysRemaining)
  if budget >= amount then return amount end
  return paysRemaining and budget > 0 and budget or nil
end

-- Splits the amount of an event. Returns the part of the player who fired the event, the share of each member
-- of the community, and how many members get one micro-USD more (the most recent ones). If the community is
-- empty, the rules decide whether its part goes to the player who fired the event or stays in the budget.
local function splitAmount(amount, split, community, returnsToBudget)
  -- The part of the player who fired the event is computed from the quotient and the remainder of a division
  -- of the amount. The product of an amount and the split may be too large for an exact double.
  local remainder = amount % SPLIT_WHOLE
  local part = (amount - remainder) / SPLIT_WHOLE * split + floor(remainder * split / SPLIT_WHOLE)
  if community == 0 then return returnsToBudget and part or amount, 0, 0 end
  local rest = amount - part
  local leftOver = rest % community
  return part, (rest - leftOver) / community, leftOver
end
