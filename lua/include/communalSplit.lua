-- The arithmetic of an event of a communal progressive, in whole micro-USD; exact up to TIER_AMOUNT_MAX.
-- include: communalRecords

-- What an event of a tier pays of a budget; nil: it is skipped.
local function payable(amount, budget, paysRemaining)
  if budget >= amount then return amount end
  return paysRemaining and budget > 0 and budget or nil
end

-- Divides an amount. Gives the part of the player who fired, the share of each of the community, and how many of the community, the
-- most recent first, get one micro-USD more. Where nobody is in the community its part goes to the player who fired, or stays in the budget.
local function splitAmount(amount, split, community, returnsToBudget)
  -- By whole and remainder: the product of an amount and the split is no exact double.
  local remainder = amount % SPLIT_WHOLE
  local part = (amount - remainder) / SPLIT_WHOLE * split + floor(remainder * split / SPLIT_WHOLE)
  if community == 0 then return returnsToBudget and part or amount, 0, 0 end
  local rest = amount - part
  local leftOver = rest % community
  return part, (rest - leftOver) / community, leftOver
end
