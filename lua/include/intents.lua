-- What an intent came to (INTENT_REPLY), decided once and kept with its requestId: done (BOUND) or refused (REFUSED). So a call
-- that comes late, after its intent was refused to another call and has been withdrawn, does nothing any more. Needs
-- `requestKeys`, of one requestId.
-- include: layouts/statuses
-- include: layouts/intents
-- include: idempotency
local function intentReply(status, isEarlier, core)
  return pack(INTENT_REPLY_FORMAT, byte(status), isEarlier and 1 or 0, core)
end

-- The reply where an earlier call has decided the intent of this number and fingerprint, or one like no other; nil: none has.
local function decidedEarlier(intent, fingerprint)
  local boundTo = bound[1]
  if not boundTo then return nil end
  if #boundTo == REFUSED_BYTES then
    local status, refusedIntent = unpackStruct(REFUSED_FORMAT, boundTo)
    return intent <= refusedIntent and intentReply(char(status), true, NO_CORE) or nil
  end
  if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
    return intentReply(DEALT, true, sub(boundTo, 1, CORE_BYTES))
  end
  return intentReply(CONFLICT, true, NO_CORE)
end

-- Refuses an intent for good: the only write of its call.
local function refuseIntent(status, intent)
  call('HSET', idemKey, requestKeys[1], pack(REFUSED_FORMAT, byte(status), intent))
  return intentReply(status, false, NO_CORE)
end
