-- Ids of ledger entries: ms (41 bits), cell (8), sequence (14). They never go back, even where the clock does.
-- include: cell
local SEQUENCE_MAX = 16383
local idMs, idSequence, idHigh, idLow, idCellBits

local function setIdMs(ms)
  idMs = ms
  idHigh, idLow = floor(ms / 1024), (ms % 1024) * 4194304 + idCellBits
end

-- Continues after the newest entry of the cell.
local function beginEntryIds(last, nowMs)
  idCellBits = tonumber(ARGV[2]) * 16384
  idSequence = -1
  if last then
    local lastMs, lastSequence = unpackStruct('<I6I2', last)
    if lastMs >= nowMs then
      nowMs, idSequence = lastMs, lastSequence
    end
  end
  setIdMs(nowMs)
end

-- The low 32 bits of the next id; the high ones are `idHigh`.
local function nextEntryId()
  idSequence = idSequence + 1
  if idSequence > SEQUENCE_MAX then
    idSequence = 0
    setIdMs(idMs + 1)
  end
  return idLow + idSequence
end
