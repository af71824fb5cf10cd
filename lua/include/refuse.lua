-- Function with the code of include/refusal.lua, for operations that write a single entry. deal.lua inlines
-- that file instead, because it decides many spins.
-- include: outbox
-- include: playerFlags
-- include: layouts/statuses
local function refuse(tail, own, before, debit, credit, enforces, funding, net)
  local status
  -- inline: refusal
  return status
end
