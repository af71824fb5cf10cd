-- Decides an intent (an adjustment, a funding, new rules) once, and returns the result (INTENT_REPLY). An
-- intent that is carried out is bound to its requestId. If an intent is refused, the cell stores the highest
-- refused number, and never carries out an intent with that number or a lower one. If two calls have the same
-- intent and one of them is refused, the other call, which may be delayed in the network, therefore does
-- nothing. The caller assigns a new number to an intent that is still valid.
--
-- Needs `refusedField`, a field of KEYS[1] for each sequence of numbers, and `requestKeys` with one requestId
-- or none.
-- include: layouts/statuses
-- include: layouts/intents
-- include: idempotency
local function intentReply(status, core)
  return pack(INTENT_REPLY_FORMAT, byte(status), core)
end

-- True if this intent, or an intent with a higher number, was refused.
local function isLapsed(intent)
  return intent <= tonumber(call('HGET', KEYS[1], refusedField) or 0)
end

-- Returns the reply if an earlier call has decided the intent with this fingerprint, or has bound the
-- requestId to another intent; nil otherwise.
local function decidedEarlier(intent, fingerprint)
  local boundTo = bound[1]
  if boundTo then
    if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
      return intentReply(DEALT, sub(boundTo, 1, CORE_BYTES))
    end
    return intentReply(CONFLICT, NO_CORE)
  end
  return isLapsed(intent) and intentReply(LAPSED, NO_CORE) or nil
end

-- Refuses an intent permanently, together with all intents of lower numbers. Apart from this, the call writes
-- nothing.
local function refuseIntent(status, intent)
  call('HSET', KEYS[1], refusedField, format('%.0f', intent))
  return intentReply(status, NO_CORE)
end
