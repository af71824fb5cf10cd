-- The function of include/refusal.lua, for operations that book one entry: deal.lua inlines it.
-- include: outbox
-- include: playerFlags
-- include: layouts/statuses
local function refuse(tail, own, before, debit, credit, enforces, funding, net)
  local status
  -- inline: refusal
  return status
end
