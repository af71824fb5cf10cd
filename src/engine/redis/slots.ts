/** The hash slots of a Redis Cluster, and the slots that the cells are pinned to. */
import { CELL_MAX } from '../../domain/entryId.js';

export const SLOTS = 16_384;
/** Maximum number of cells, including those that are not in use. */
export const CELLS = CELL_MAX + 1;
const SLOTS_A_CELL = SLOTS / CELLS;
const CELL_BITS = Math.log2(CELLS);

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/**
 * Computes the CRC-16/XMODEM of ASCII text, from which Redis derives the hash slot of a tag.
 * @param begun checksum of the preceding text
 */
function crc16(text: string, begun = 0): number {
  let crc = begun;
  for (let i = 0; i < text.length; i++)
    crc = ((crc << 8) ^ TABLE[((crc >> 8) ^ text.charCodeAt(i)) & 0xff]!) & 0xffff;
  return crc;
}

/** Returns the hash slot of a tag, the part of a key between braces. */
export const slotOfTag = (tag: string): number => crc16(tag) % SLOTS;

/**
 * Returns the hash slot of a cell, which does not depend on the nodes. The slot is computed from the cell's
 * number with its bits reversed, so the first cells are far apart, and later cells lie between them. Slot
 * ranges of equal length therefore have nearly the same number of cells, however many cells there are.
 */
export function slotOfCell(cell: number): number {
  let reversed = 0;
  for (let bit = 0; bit < CELL_BITS; bit++) reversed |= ((cell >> bit) & 1) << (CELL_BITS - 1 - bit);
  return reversed * SLOTS_A_CELL + SLOTS_A_CELL / 2;
}

const names: (string | undefined)[] = [];

/**
 * Returns the name of a cell in the keys of a cluster: the first `5.<number>` whose tag `c5.<number>` hashes
 * to the cell's slot.
 */
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

/**
 * Returns a cell for data that does not belong to a cell, for example the data of a client address. The node
 * of the returned cell stores the data. The text decides which cell is returned.
 */
export const cellOfText = (text: string): number => crc16(text) % CELLS;
