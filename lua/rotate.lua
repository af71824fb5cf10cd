--[[
Voids the sealed outcomes of a slot game that have not been dealt, up to an index. The game continues with
outcomes that are sealed later. The script is atomic. All reads and checks come before the first write, and no
write after the first can fail. A later attempt to load a block below that index is ignored (loadBlock.lua).

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  partner id
ARGV[9]  game id
ARGV[10] index up to which outcomes are voided, exclusive

Keys     include/gameSupply.lua
Reply    ROTATE_REPLY; statuses: DEALT (also if all outcomes up to that index have been dealt, so that none is
         voided), OUTBOX_FULL
Errors   EPOCH, STALE: include/cell.lua; AWAY: include/notAway.lua
]]
local awayPartner, gameId, toIndex = ARGV[8], ARGV[9], tonumber(ARGV[10])
-- include: notAway
-- include: layouts/statuses
-- include: layouts/rotation
-- include: notes
local record = call('HGET', KEYS[4], gameId)
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = 0, 0, 0, 0, 0
if record then
  nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = unpackStruct(GAME_FORMAT, record)
end
local noteId, isVoided = sub(NO_CORE, 1, ENTRY_ID_BYTES), false
local voided = {}
if toIndex > nextIndex and not isOutboxFull then
  isVoided = true
  noteId = addNote(
    ROTATION_ENTRY, tonumber(gameId), awayPartner .. ':', pack(ROTATION_FORMAT, toIndex), nextIndex
  )
  -- Loaded blocks below the index of the rotation are removed, and loaded blocks above it stay.
  local from = nextIndex < blockEnd and blockFrom or blockEnd
  while from < toIndex and from < queueEnd do
    local blockKey = cellPrefix .. 'block:' .. gameId .. ':' .. format('%.0f', from)
    local count = floor(call('STRLEN', blockKey) / 2)
    if count == 0 then break end
    voided[#voided + 1] = blockKey
    from = from + count
  end
end
local fromIndex = isVoided and nextIndex or toIndex
local status = (isVoided or toIndex <= nextIndex) and DEALT or OUTBOX_FULL
local reply = pack(ROTATE_REPLY_FORMAT, byte(status), noteId, fromIndex, toIndex)

-- From here on the script only writes.
if isVoided then
  -- include: writeStream
  call('HSET', KEYS[1], 'last', newLast, operationField, operationId .. reply)
  local game = pack(GAME_FORMAT, toIndex, max(queueEnd, toIndex), toIndex, toIndex,
    max(readyBlocks - #voided, 0))
  call('HSET', KEYS[4], gameId, game)
  if #voided > 0 then call('UNLINK', unpack(voided)) end
else
  call('HSET', KEYS[1], operationField, operationId .. reply)
end
return reply
