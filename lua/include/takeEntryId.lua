-- To inline. Goes on to the next id of an entry: its low 32 bits are `idLow + idSequence`, its high ones `idHigh`.
idSequence = idSequence + 1
if idSequence > 16383 then
  idMs, idSequence = idMs + 1, 0
  idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + idCellBits
end
