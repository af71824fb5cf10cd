-- The function form of include/refusal.lua, for operations that write a single entry. deal.lua inlines the
-- file instead.
-- include: outbox
-- include: playerFlags
-- include: layouts/statuses
local function refuse(tail, own, before, debit, credit, enforces, funding, net)
  local status
  -- inline: refusal
  return status
end
