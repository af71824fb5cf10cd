/** The hash slots of a Redis Cluster, and which of them the cells are pinned to. */
import { CELL_MAX } from '../../domain/entryId.js';

export const SLOTS = 16_384;
/** Cells that there may be, whether they are used or not. */
export const CELLS = CELL_MAX + 1;
const SLOTS_A_CELL = SLOTS / CELLS;
const CELL_BITS = Math.log2(CELLS);

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** CRC-16/XMODEM of ASCII text, by which Redis finds the slot of a key's tag. @param begun of the text before */
function crc16(text: string, begun = 0): number {
  let crc = begun;
  for (let i = 0; i < text.length; i++)
    crc = ((crc << 8) ^ TABLE[((crc >> 8) ^ text.charCodeAt(i)) & 0xff]!) & 0xffff;
  return crc;
}

/** The slot of a tag: what stands between the braces of a key. */
export const slotOfTag = (tag: string): number => crc16(tag) % SLOTS;

/**
 * The slot of a cell, whatever nodes there are. The first cells lie far apart and further ones between them (the bits of the number
 * in reverse): however many cells there are, ranges of slots of the same length have nearly the same number of them.
 */
export function slotOfCell(cell: number): number {
  let reversed = 0;
  for (let bit = 0; bit < CELL_BITS; bit++) reversed |= ((cell >> bit) & 1) << (CELL_BITS - 1 - bit);
  return reversed * SLOTS_A_CELL + SLOTS_A_CELL / 2;
}

const names: (string | undefined)[] = [];

/** How the keys of a cell name it in a cluster: the least `5.<number>` whose tag `c5.<number>` is in the cell's slot. */
export function pinnedName(cell: number): string {
  let name = names[cell];
  if (name === undefined) {
    name = searchName(cell);
    names[cell] = name;
  }
  return name;
}

function searchName(cell: number): string {
  const slot = slotOfCell(cell);
  const begun = crc16(`c${cell}.`);
  for (let i = 0; ; i++) if (crc16(String(i), begun) % SLOTS === slot) return `${cell}.${i}`;
}

/** The cell whose node keeps what belongs to a text and to no cell, such as the address of a client. */
export const cellOfText = (text: string): number => crc16(text) % CELLS;
